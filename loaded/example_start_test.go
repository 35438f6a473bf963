package loaded_test

import (
	"fmt"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/loaded"
)

// A program that reads its configuration when it starts: `envFrom` with the prefix SENDER_, of a ConfigMap in the namespace mail.
func Example_readsAtStart() {
	_ = os.Setenv("SENDER_LEASE_DURATION", "10m") // as the kubelet does
	_ = os.Setenv("SENDER_QUEUE", "outgoing")

	reporter, err := loaded.New("mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	load := reporter.ConfigMap("sender-config").Begin()
	settings, err := load.EnvFrom("SENDER_")
	if err != nil {
		fmt.Println(err)
		return
	}
	load.Done()

	registry := prometheus.NewRegistry()
	registry.MustRegister(reporter)
	http.Handle(loaded.Path, reporter)

	fmt.Println("lease:", settings["LEASE_DURATION"])
	for _, o := range reporter.Report().Objects {
		fmt.Println(o.Kind, o.Name, o.Digest)
		for _, key := range o.Env {
			fmt.Println("  read:", key.Name)
		}
	}
	// Output:
	// lease: 10m
	// ConfigMap sender-config v1-oh6zmfnq6dg4k3qt2jkdzyfln6phtbbmkjuhzgkeprn2p7np4seq
	//   read: LEASE_DURATION
	//   read: QUEUE
}
