package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

const nodes = 4

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Getenv("ONCE") != "")
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays all incidents, and unless it is told to do so once stays up until the context ends.
func run(ctx context.Context, out io.Writer, once bool) (err error) {
	binary, err := controllerBinary()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Starting a Kubernetes of %d nodes in one process, and installing deploy/manifests on it ...\n", nodes)
	// No incident takes a node away, so a node that is silent on a busy machine is not to be taken for lost, or for cut off.
	lab, err := client.Start(ctx, client.Options{Nodes: nodes, NodeMonitorGracePeriod: 3 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Stop()) }()
	if err := scenario.Install(ctx, lab); err != nil {
		return err
	}
	s := &stage{lab: lab, binary: binary, teller: teller{out}}
	defer func() { err = errors.Join(err, s.stopController()) }()

	judged := s.playAll(ctx, []incident{dormant, lease, rollback, canary, pending})
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	fmt.Fprintln(out)
	failed := 0
	for _, j := range judged {
		fmt.Fprintln(out, j)
		if !j.ok() {
			failed++
		}
	}
	if !once {
		s.stay(ctx)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d incidents did not come out as they should", failed, len(judged))
	}
	return nil
}

// controllerBinary is the controller program beside this one.
func controllerBinary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "tidemark-controller")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the controller is not built: run `make build` (%w)", err)
	}
	return path, nil
}

// stay leaves the cluster to the person who started the demo.
func (s *stage) stay(ctx context.Context) {
	fmt.Fprintf(s.out, `
The cluster stays up until you press Ctrl-C. To look around, in another terminal:
  export KUBECONFIG=%s
  bin/tidemark status -A
  bin/tidemark explain deployment/sender -n lease-observe
  bin/kubectl get pods -A
`, s.lab.Kubeconfig())
	select {
	case <-ctx.Done():
	case <-s.lab.Ended():
	}
}
