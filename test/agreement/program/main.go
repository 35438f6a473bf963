// Command program stands for a pod's program that states by the public library what it loaded.
//
// Tests run it in the place of a pod's program, with the pod's environment and files: the lab runs programs within its own
// process, whose environment is no container's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"tidemark.dev/tidemark/loaded"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until its standard input ends, so that it does not outlive who started it.
func run() error {
	namespace := flag.String("namespace", "", "namespace of the `ConfigMap`")
	name := flag.String("configmap", "", "`name` of the ConfigMap")
	dir := flag.String("dir", "", "`directory` in which it is mounted; none where empty")
	env := flag.String("env", "", "`KEY=VARIABLE,...` of the keys that are in the environment")
	socket := flag.String("socket", "", "unix `socket` to serve on")
	flag.Parse()

	reporter, err := loaded.New(*namespace)
	if err != nil {
		return err
	}
	load := reporter.ConfigMap(*name).Begin()
	for pair := range strings.SplitSeq(*env, ",") {
		if key, variable, ok := strings.Cut(pair, "="); ok {
			load.Getenv(key, variable)
		}
	}
	if *dir != "" {
		if _, err := load.ReadDir(*dir); err != nil {
			return err
		}
	}
	load.Done()

	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(loaded.Path, reporter)
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
