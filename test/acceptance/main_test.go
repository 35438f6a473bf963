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
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

const (
	// nodes is how many each lab has.
	nodes = 4
	// places is how many labs there are, beside the shared one, for tests that need one alone.
	places = 2
	// turns is how many tests run at the same time on the labs that they share: they wait more than they compute.
	turns = 3
	// parallel is as good as no limit: a test waits for its turn or for a place, and takes none from those that wait for the other.
	parallel = "1000"
)

// labOptions are those of the labs on which no node is cut off for long: one that is silent on a busy machine is not to be taken for lost,
// or for cut off.
var labOptions = client.Options{Nodes: nodes, NodeMonitorGracePeriod: 3 * time.Minute}

// suite is what the tests of the package share: a lab with one controller, on which most keep out of each other's way by
// namespaces, and a few labs for those that need one alone.
type suite struct {
	// dir has the controller's binary.
	dir, binary string
	lab         *client.Lab
	// places are the labs for one test at a time; each starts when the first test needs it.
	places chan *place
	// turns has one element for each test that runs on a shared lab.
	turns chan struct{}

	start    sync.Once
	program  *scenario.Controller
	startErr error

	// pins is the lab on which mode pin is installed.
	pins estate
}

// estate is a lab that tests share by namespaces, with a controller that works on all of it.
type estate struct {
	start   sync.Once
	lab     *client.Lab
	program *scenario.Controller
	err     error
}

// place is where a lab is, or will be.
type place struct{ lab *client.Lab }

var shared = suite{places: make(chan *place, places), turns: make(chan struct{}, turns)}

// TestMain holds what is shared: no test can, as it would end with the first of them.
func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // that of the clients in this process; the controller's is its own
	if err := flag.Set("test.parallel", parallel); err != nil {
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
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.begin(context.Background()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func (s *suite) begin(ctx context.Context) error {
	var err error
	if s.dir, err = os.MkdirTemp("", "tidemark-acceptance-"); err != nil {
		return err
	}
	s.binary = filepath.Join(s.dir, "tidemark-controller")
	args := append(append([]string{"build"}, buildFlags...), "-o", s.binary, "tidemark.dev/tidemark/cmd/tidemark-controller")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build controller: %w\n%s", err, out)
	}
	for range places {
		s.places <- &place{}
	}
	first := &place{}
	s.lab, err = first.open()
	return err
}

// end stops all that runs. What ended badly is an error, a race that the controller's race detector found among it.
func (s *suite) end() error {
	var errs []error
	if s.program != nil {
		errs = append(errs, s.program.Stop())
	}
	errs = append(errs, s.pins.end())
	for range len(s.places) {
		if p := <-s.places; p.lab != nil {
			errs = append(errs, p.lab.Stop())
		}
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// open returns the place's lab, which it starts when it is needed first. Only one test has the place at a time.
func (p *place) open() (*client.Lab, error) {
	if p.lab != nil {
		return p.lab, nil
	}
	ctx := context.Background() // the lab outlives the test
	lab, err := client.Start(ctx, labOptions)
	if err != nil {
		return nil, err
	}
	if err := scenario.Install(ctx, lab); err != nil {
		return nil, errors.Join(err, lab.Stop())
	}
	p.lab = lab
	return lab, nil
}

// close stops the place's lab; the next test has a fresh one.
func (p *place) close(t *testing.T) {
	t.Helper()
	if p.lab == nil {
		return
	}
	if err := p.lab.Stop(); err != nil {
		t.Error(err)
	}
	p.lab = nil
}

// controller is the one that works on the shared lab. It starts when the first test needs it.
func (s *suite) controller() (*scenario.Controller, error) {
	s.start.Do(func() {
		ctx := context.Background() // it outlives the test
		s.program, s.startErr = scenario.Start(ctx, s.lab, scenario.Program{Binary: s.binary})
		if s.startErr == nil {
			s.startErr = s.program.HasWatched(ctx)
		}
	})
	return s.program, s.startErr
}
