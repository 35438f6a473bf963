package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// What a kind that is there no more, or not allowed, is in the metrics.
const (
	noCronJobs = `tidemark_watch_problem{kind="CronJob.batch"}`
	noMachines = `tidemark_watch_problem{kind="Machines.example.tidemark.dev"}`
)

func TestAKindThatCannotBeWatchedAnyMoreIsSaidOnceAndSeenToComeBack(t *testing.T) {
	v := alone(t)
	v.serveMachines()
	b := v.bridge()
	c := v.start(scenario.Program{Flags: []string{machinesKind}, Through: b.address()})
	s := v.open("rights", v1.ModeRoll)
	s.controller = c
	s.apply(webConfig + cronJob("nightly", false, readsWeb) + machine("fleet", machineReadsWeb))
	s.known("cronjob/nightly", "machines/fleet")
	s.metricIs(noCronJobs, 0)
	s.metricIs(noMachines, 0)

	v.takeRightToCronJobs()
	s.mayList("cronjobs.batch", "no")
	b.cut() // a watch that was granted goes on until it ends
	s.kubectl("delete", "crd/machines.example.tidemark.dev")

	s.metricIs(noCronJobs, 1)
	s.metricIs(noMachines, 1)
	s.caughtUp() // everything else goes on
	s.must(scenario.Install(t.Context(), v.lab))
	labtest.Apply(t, v.lab, machines)
	s.metricIs(noCronJobs, 0)
	s.metricIs(noMachines, 0)
	s.logsOnce("any more", "cronjobs", "batch", "ClusterRole")
	s.logsOnce("any more", "Machines", "not served")

	s.set("web", "MODE", "two")
	s.stampedAgain("cronjob/nightly", "")
}

func TestARightThatIsMissingBesideThoseToWatchIsSaidForWhatItIs(t *testing.T) {
	v := alone(t)
	v.serve(strings.Replace(machines, "list, watch, patch]", "list, watch]", 1))
	v.changeRights("  - replicasets\n", "")
	c := v.control(machinesKind)
	s := v.open("patch", v1.ModeRoll)
	s.controller = c
	s.apply(webConfig + program("deployment/web", 0, readsWeb) + machine("fleet", machineReadsWeb))
	s.known("deployment/web")

	const patch = `tidemark_missing_right{kind="Machines.example.tidemark.dev",verb="patch"}`
	s.metricIs(patch, 1)
	s.metricIs(`tidemark_missing_right{kind="Deployment.apps",verb="patch"}`, 0)
	s.metricIs(`tidemark_missing_right{kind="ReplicaSet.apps",verb="list"}`, 1)
	s.logsOnce("right to patch machines.example.tidemark.dev", "do not roll", "ClusterRole")
	s.logsOnce("right to list replicasets.apps", "rollback", "ClusterRole")
	s.tells("machines/fleet", "WriteRefused", "forbidden")
	s.set("web", "MODE", "two")
	s.stampedAgain("deployment/web", "")

	s.kubectl("rollout", "undo", "deployment/web")
	s.tells("deployment/web", "ReadRefused", "replicasets")

	labtest.Apply(t, v.lab, machines)
	s.must(scenario.Install(t.Context(), v.lab))
	s.metricIs(patch, 0)
	s.metricIs(`tidemark_missing_right{kind="ReplicaSet.apps",verb="list"}`, 0)
	s.known("machines/fleet")
	s.tells("deployment/web", "RolledBack", "configmap/web")
}

// Whoever does without Secrets gives no right to them, and configuration in ConfigMaps rolls all the same.
func TestTheControllerWorksWithoutTheRightToSecrets(t *testing.T) {
	v := alone(t)
	v.changeRights("  - namespaces\n  - secrets\n", "  - namespaces\n")
	s := v.open("no-secrets", v1.ModeRoll)
	s.controller = v.control("--secrets=false")
	s.must(s.Lab.ResetRequests(t.Context()))
	s.apply(webConfig + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: door}\nstringData: {KEY: one}\n" +
		program("deployment/web", 0, sample+"envFrom: [{configMapRef: {name: web}}, {secretRef: {name: door}}]\n"))
	s.known("deployment/web")

	s.kubectl("patch", "secret/door", "-p", `{"stringData":{"KEY":"two"}}`)
	s.caughtUp()
	if got := s.stamp("deployment/web"); got != "" {
		t.Errorf("the change of the Secret gave the stamp %q", got)
	}
	s.set("web", "MODE", "two")
	s.stampedAgain("deployment/web", "")
	requests, err := s.Lab.Requests(t.Context())
	s.must(err)
	for _, r := range requests {
		if byController(r) && r.Resource == "secrets" {
			t.Errorf("the controller made a request: %+v", r)
		}
	}
}

// mayList waits until the API answers so to whether the controller may list the resource.
func (s *scene) mayList(resource, want string) {
	s.t.Helper()
	who := fmt.Sprintf("--as=system:serviceaccount:%s:%s", scenario.SystemNamespace, scenario.ServiceAccount)
	s.eventually("the controller's right to list "+resource+" to be "+want, func() error {
		out, _, err := s.Lab.Kubectl(s.t.Context(), "auth", "can-i", "list", resource, "--all-namespaces", who)
		if out == "" {
			return err
		}
		return labtest.Equal("the answer", strings.TrimSpace(out), want) // no comes with an error
	})
}

// bridge passes connections on to the lab's API.
type bridge struct {
	listener net.Listener
	to       string

	mu   sync.Mutex
	open []net.Conn
	// gate is held while nothing passes.
	gate sync.RWMutex
}

func (v venue) bridge() *bridge {
	v.t.Helper()
	api, err := url.Parse(v.lab.RESTConfig().Host)
	if err != nil {
		v.t.Fatal(err)
	}
	b := &bridge{to: api.Host}
	if b.listener, err = new(net.ListenConfig).Listen(v.t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		v.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.serve(); !errors.Is(err, net.ErrClosed) {
			v.t.Error(err)
		}
	}()
	v.t.Cleanup(func() {
		_ = b.listener.Close()
		<-ended
		b.cut()
	})
	return b
}

func (b *bridge) address() string { return b.listener.Addr().String() }

func (b *bridge) serve() error {
	for {
		near, err := b.listener.Accept()
		if err != nil {
			return err
		}
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", b.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		b.mu.Lock()
		b.open = append(b.open, near, far)
		b.mu.Unlock()
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(gated{to, &b.gate}, from)
			_ = to.Close()
		}
		go pass(near, far)
		go pass(far, near)
	}
}

// gated passes on what is written to it when the gate is not held.
type gated struct {
	io.Writer
	gate *sync.RWMutex
}

// Write implements io.Writer.
func (g gated) Write(text []byte) (int, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Writer.Write(text)
}

// part lets nothing pass any more, and connections are neither refused nor ended. What was under way in one is lost when it is healed.
func (b *bridge) part() (heal func()) {
	b.gate.Lock()
	return func() {
		b.cut()
		b.gate.Unlock()
	}
}

// cut ends the connections that are open, and with them every watch.
func (b *bridge) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.open {
		_ = c.Close()
	}
	b.open = nil
}
