package acceptance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

// suite is what the tests of the package share: one lab with Tidemark's manifests on it, and for the tests that run in
// parallel one controller. Tests keep out of each other's way by namespaces. Those that need a controller, nodes or an API
// of their own do not run in parallel: go test runs them before the first that does.
type suite struct {
	lab    *client.Lab
	binary string

	start      sync.Once
	controller *scenario.Controller
	startErr   error
}

var shared suite

// TestMain holds the one lab of the package: a test cannot, as it would end with the first of them.
func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // that of the clients in this process; the controller's is its own
	// The tests wait more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code, err := shared.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func (s *suite) run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "tidemark-acceptance-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.binary = filepath.Join(dir, "tidemark-controller")
	args := append(append([]string{"build"}, buildFlags...), "-o", s.binary, "tidemark.dev/tidemark/cmd/tidemark-controller")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build controller: %w\n%s", err, out)
	}
	ctx := context.Background()
	if s.lab, err = client.Start(ctx, client.Options{Nodes: 4}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.lab.Stop()) }()
	if err := scenario.Install(ctx, s.lab); err != nil {
		return 1, err
	}
	code = m.Run()
	if s.controller != nil {
		err = s.controller.Stop()
	}
	return code, err
}
