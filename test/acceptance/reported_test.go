package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"tidemark.dev/tidemark/internal/app"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// reporting is a workload whose pods say that their program tells at port 8080 what it loaded.
func reporting(name string, replicas int) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {tidemark.dev/loaded-port: "8080"}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: tidemark-sample
        command: [/sample]
        env: [{name: APP_MODE, valueFrom: {configMapKeyRef: {name: settings, key: MODE}}}]
`, name, replicas)
}

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {MODE: one}\n"

func TestWhatProgramsReportIsTakenWhereReadingIsSwitchedOn(t *testing.T) {
	v := alone(t)
	s := v.open("reported", "")
	s.apply(settings + reporting("honest", 2) + reporting("liar", 1) + reporting("silent", 3))
	s.rolledOut("deployment/honest", "deployment/liar", "deployment/silent")
	programs := newPrograms(t, s)

	// Off by default. The controller came after the pods, so what they loaded cannot be inferred.
	off := v.control("--fleet-interval=1s")
	s.eventually("a look at the fleets that tells nothing of what pods loaded", func() error {
		metrics, err := off.Metrics(t.Context())
		if err != nil {
			return err
		}
		return podsAre(metrics, "honest", map[string]int{"unknown": 2})
	})
	s.must(off.Stop())

	on := programs.controller(v)
	honest := func(want map[string]int) {
		t.Helper()
		s.eventually(fmt.Sprintf("the honest pods to be known as %v", want), func() error {
			metrics, err := scenario.Get(t.Context(), on.url)
			if err != nil {
				return err
			}
			return podsAre(metrics, "honest", want)
		})
	}
	honest(map[string]int{"applied": 2})
	s.loads(func(c wire.Start) string { return podOf(c) + " " + c.Env("APP_MODE") }, map[string]int{"honest one": 2, "liar one": 1, "silent one": 3})
	s.set("settings", "MODE", "two")
	honest(map[string]int{"older": 2})
	time.Sleep(apart) // so that what pods read from now on can be inferred
	one := s.podsOf("honest")[0]
	s.kubectl("delete", "pod", one, s.podsOf("liar")[0])
	s.rolledOut("deployment/honest", "deployment/liar")
	s.loads(func(c wire.Start) string { return podOf(c) + " " + c.Env("APP_MODE") },
		map[string]int{"honest one": 1, "honest two": 1, "liar two": 1, "silent one": 3})
	honest(map[string]int{"older": 1, "applied": 1})

	// One that lies is found out where its start tells what it read, and those that do not answer hold nobody up for long.
	s.eventually("a word about the liar", func() error {
		if log := on.log.String(); !strings.Contains(log, "reported/liar: 1 of 1 pod reports otherwise than other evidence tells") {
			return errors.New("the log says nothing of it")
		}
		return nil
	})
	metrics, err := scenario.Get(t.Context(), on.url)
	s.must(err)
	if err := podsAre(metrics, "silent", map[string]int{"unknown": 3}); err != nil {
		t.Error(err)
	}
	if looks, quick := valueIn(t, metrics, `tidemark_fleets_look_seconds_count`), valueIn(t, metrics, `tidemark_fleets_look_seconds_bucket{le="10"}`); looks != quick || looks < 3 {
		t.Errorf("of %v looks %v took less than ten seconds, with three pods that do not answer", looks, quick)
	}
	if n := programs.asked("silent"); n < 3 {
		t.Errorf("the silent pods were asked %d times", n)
	}
}

// podOf is the workload of a container's pod.
func podOf(c wire.Start) string {
	name, _, _ := strings.Cut(c.Pod, "-")
	return name
}

func (s *scene) podsOf(name string) []string {
	s.t.Helper()
	return strings.Fields(s.kubectl("get", "pods", "-l", "app="+name, "-o", "jsonpath={.items[*].metadata.name}"))
}

var fleetPods = regexp.MustCompile(`(?m)^tidemark_fleet_pods\{kind="Deployment",name="(\w+)",namespace="reported",state="(\w+)",version="\w*"\} (\d+)$`)

// podsAre is an error unless the metrics count so many pods of the fleet by their state.
func podsAre(metrics, fleet string, want map[string]int) error {
	got := map[string]int{}
	for _, m := range fleetPods.FindAllStringSubmatch(metrics, -1) {
		if n, err := strconv.Atoi(m[3]); err == nil && m[1] == fleet {
			got[m[2]] += n
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("pods of %s are %v, want %v", fleet, got, want)
	}
	return nil
}

// valueIn is the value of one series of the metrics.
func valueIn(t *testing.T, metrics, series string) float64 {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no series %s", series)
	return 0
}

// programs stand for those of the pods: each is a process that uses the package loaded, with the environment that the kubelet
// gave to the pod by the lab's record, reached at the pod's address.
type programs struct {
	*scene
	binary, dir string

	mu    sync.Mutex
	socks map[string]string // by pod
	count map[string]int    // of connections, by workload
}

func newPrograms(t *testing.T, s *scene) *programs {
	t.Helper()
	p := &programs{scene: s, socks: map[string]string{}, count: map[string]int{}}
	var err error
	p.dir, err = os.MkdirTemp("", "programs-") //nolint:usetesting // the test's own is too long for sockets
	s.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(p.dir) })
	p.binary = filepath.Join(p.dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, "./program")
	build.Dir = filepath.Join("..", "agreement")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return p
}

func (p *programs) asked(workload string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[workload]
}

// dial connects to the program at a pod's address.
func (p *programs) dial(ctx context.Context, _, address string) (net.Conn, error) {
	starts, err := p.Running(ctx)
	if err != nil {
		return nil, err
	}
	for _, start := range starts {
		if net.JoinHostPort(start.PodIP, "8080") == address {
			return p.connect(ctx, start)
		}
	}
	return nil, errors.New("no pod has the address")
}

func (p *programs) connect(ctx context.Context, start wire.Start) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[podOf(start)]++
	if podOf(start) == "silent" {
		here, _ := net.Pipe() // nobody reads the other end
		return here, nil
	}
	socket, err := p.socket(start)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", socket)
}

// socket is where the pod's program listens, which is started when it is asked first.
func (p *programs) socket(start wire.Start) (string, error) {
	if socket, ok := p.socks[start.Pod]; ok {
		return socket, nil
	}
	socket := filepath.Join(p.dir, strconv.Itoa(len(p.socks))+".sock")
	c := exec.Command(p.binary, "--namespace", p.Namespace, "--configmap", "settings", "--env", "MODE=APP_MODE", "--socket", socket)
	for name, value := range start.Environment {
		if podOf(start) == "liar" {
			value = []byte("a lie")
		}
		c.Env = append(c.Env, name+"="+string(value))
	}
	in, err := c.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	p.t.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
	for range 100 {
		if _, err := os.Stat(socket); err == nil {
			p.socks[start.Pod] = socket
			return socket, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", errors.New("the program does not listen")
}

// reader is a controller in this process, which asks the programs.
type reader struct {
	url string
	log *safeBuffer
}

// controller starts the controller within this process, because pods' addresses can be reached through its dialer only.
func (p *programs) controller(v venue) reader {
	p.t.Helper()
	o := app.Defaults()
	r := reader{log: &safeBuffer{}}
	o.Log = funcr.New(func(prefix, args string) { _, _ = io.WriteString(r.log, prefix+" "+args+"\n") }, funcr.Options{})
	o.FleetInterval, o.ReadReports, o.DialPods = time.Second, true, p.dial
	var err error
	o.Config, err = v.lab.RESTConfigForServiceAccount(p.t.Context(), scenario.SystemNamespace, scenario.ServiceAccount)
	p.must(err)
	o.MetricsAddress, err = scenario.FreeAddress()
	p.must(err)
	o.ProbeAddress, err = scenario.FreeAddress()
	p.must(err)
	r.url = "http://" + o.MetricsAddress + "/metrics"
	a, err := app.New(p.t.Context(), o)
	p.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Start(ctx) }()
	p.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	return r
}
