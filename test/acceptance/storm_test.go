package acceptance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
)

// storm is how long a Secret flaps, how fast, for how many workloads, with which settings.
type storm struct {
	workloads   int
	every, last time.Duration
	flags       []string
}

// storms gives the storm of `make test`, or with TIDEMARK_SOAK those of `make soak`: with the settings that ship.
func storms() map[string]storm {
	if !soaking() {
		return map[string]storm{"short": {
			workloads: 4, every: 300 * time.Millisecond, last: 20 * time.Second,
			flags: []string{"--settle=500ms", "--settle-max=2s", "--storm-quiet=6s", "--storm-window=1m"},
		}}
	}
	return map[string]storm{
		"one-minute":  {workloads: 20, every: time.Second, last: time.Minute},
		"ten-minutes": {workloads: 20, every: time.Second, last: 10 * time.Minute},
	}
}

func TestSoakASecretThatFlapsIsHeldAndRollsOnceMoreWhenItIsQuiet(t *testing.T) {
	t.Parallel()
	for name, w := range storms() {
		t.Run(name, func(t *testing.T) { weather(t, "storm-"+name, w) })
	}
}

// mostRolls is how often one workload may roll in a storm that lasts shorter than the storm window, the final time included.
const mostRolls = 5

func weather(t *testing.T, namespace string, w storm) {
	v := alone(t)
	c := v.control(w.flags...)
	s := v.open(namespace, v1.ModeRoll)
	s.controller = c
	manifest := webConfig + program("deployment/elsewhere", 0, readsWeb) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: flapping}\nstringData: {MODE: calm}\n"
	var workloads []string
	for i := range w.workloads {
		name := fmt.Sprintf("deployment/stormy-%d", i)
		workloads = append(workloads, name)
		manifest += program(name, 1, sample+"envFrom: [{secretRef: {name: flapping}}]")
	}
	s.apply(manifest)
	s.known(append(workloads, "deployment/elsewhere")...)
	s.rolledOut(workloads...)

	begin := time.Now()
	calmDown := s.flap("flapping", "MODE", w.every)
	before := map[string]int{}
	for _, name := range workloads {
		s.tells(name, "Held", "storm")
		before[name] = s.revisions(name)
	}
	s.must(c.Kill()) // what is known of the storm is in the API, so the next one holds without a rollout
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.DefaultNamespace, Name: v1.LeaseLeader}}
	s.must(s.API.Delete(t.Context(), lease)) // in place of waiting until it has run out
	s.controller = v.control(w.flags...)
	for _, name := range workloads {
		if status := s.verdict(name, "held"); !strings.Contains(status.Reason, "storm") {
			t.Errorf("status of %s is held because %q, want the storm named", name, status.Reason)
		}
		s.metricIs(fmt.Sprintf(`tidemark_held{kind="Deployment",name=%q,namespace=%q,reason="storm"}`, nameOf(name), namespace), 1)
		if now := s.revisions(name); now != before[name] {
			t.Errorf("%s has %d revisions after the controller started anew in the storm, %d before", name, now, before[name])
		}
	}
	s.set("web", "MODE", "two")
	s.stampedAgain("deployment/elsewhere", "") // while the storm goes on
	time.Sleep(w.last - time.Since(begin))
	calmDown()

	s.setSecret("flapping", "MODE", "last")
	s.loads(mode, map[string]int{"last": len(workloads)})
	s.rolledOut(workloads...)
	for _, name := range workloads {
		s.verdict(name, "in-step")
		rolls := s.revisions(name) - 1
		if rolls < 1 || rolls > mostRolls {
			t.Errorf("%s rolled %d times, want 1 to %d", name, rolls, mostRolls)
		}
		t.Logf("%s rolled %d times", name, rolls)
	}
}

// flap changes a Secret's key to and fro until the function that it returns is called.
func (s *scene) flap(secret, key string, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			err := s.SetSecret(ctx, secret, key, []string{"ping", "pong"}[i%2])
			if ctx.Err() != nil || err != nil {
				ended <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}()
	return func() {
		s.t.Helper()
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Fatal(err)
		}
	}
}

// metricIs waits until a series of the controller's metrics has the value.
func (s *scene) metricIs(series string, want float64) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s to be %v", series, want), func() error {
		got, found, err := s.controller.Metric(s.t.Context(), series)
		if err == nil && !found {
			err = errors.New("there is no such series")
		}
		if err != nil {
			return err
		}
		return labtest.Equal("the value", got, want)
	})
}

// nameOf is the name in KIND/NAME.
func nameOf(object string) string {
	_, name, _ := strings.Cut(object, "/")
	return name
}
