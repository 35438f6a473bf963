package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// apart is how far apart things happen that must be told apart later: beyond the margins of what is inferred from times.
// Files are read for some time after a start, so it takes longer with them.
const (
	apart      = 6 * time.Second
	filesApart = 10 * time.Second
)

const quarter = 6 // of the 24 pods, on each of four nodes

var leaseDuration = scenario.Env("LEASE_DURATION")

// fleetOf24 sets the scene of the lease incident, with a quarter of the pods on each node.
func (v venue) fleetOf24(namespace, mode string) *scene {
	v.t.Helper()
	s := v.open(namespace, mode)
	manifest, err := scenario.Manifest("lease")
	s.must(err)
	s.apply(manifest)
	s.rolledOut("deployment/sender")
	s.loads(leaseDuration, map[string]int{"10m": 24})
	s.loads(func(start wire.Start) string { return start.Node }, map[string]int{"node-0": quarter, "node-1": quarter, "node-2": quarter, "node-3": quarter})
	return s
}

func TestLeaseWithoutTidemarkADrainSplitsTheFleetThatAnEditLeftAlone(t *testing.T) {
	s := alone(t).fleetOf24("lease-without", "")

	s.set("sender-config", "LEASE_DURATION", "2m")
	s.must(s.Drain(t.Context(), "node-1"))
	s.rolledOut("deployment/sender")

	s.loads(leaseDuration, map[string]int{"10m": 18, "2m": 6})
}

func TestLeaseInModeRollTheEditReachesAllPodsAndADrainChangesNothing(t *testing.T) {
	v := alone(t)
	v.watchful()
	s := v.fleetOf24("lease-roll", v1.ModeRoll)
	s.known("deployment/sender")
	s.must(s.Aged(t.Context(), apart))

	s.set("sender-config", "LEASE_DURATION", "2m")
	s.loads(leaseDuration, map[string]int{"2m": 24})
	s.rolledOut("deployment/sender")
	s.revisionsAre("deployment/sender", 2)
	s.verdict("deployment/sender", "in-step")

	s.must(s.Drain(t.Context(), "node-1"))
	s.rolledOut("deployment/sender")
	s.loads(leaseDuration, map[string]int{"2m": 24})
	s.revisionsAre("deployment/sender", 2)
	s.verdict("deployment/sender", "in-step")
}

func TestLeaseInModeObserveTheDormantEditIsSeenAndThenTheSplitFleet(t *testing.T) {
	v := alone(t)
	in := newInbox(t)
	c := v.watchful(in.flags...)
	s := v.fleetOf24("lease-observe", v1.ModeObserve)
	s.controller = c
	s.must(s.Aged(t.Context(), apart))
	s.verdict("deployment/sender", "in-step")

	s.set("sender-config", "LEASE_DURATION", "2m")
	s.verdict("deployment/sender", "dormant")
	if m := in.gets(s, "sender", "TidemarkChangeDormant", "firing"); m.Severity != "message" || m.Fact("configmap/sender-config LEASE_DURATION") != `"10m" → "2m" (24 pods)` {
		t.Errorf("people were told %+v", m)
	}

	time.Sleep(apart) // after the edit
	s.must(s.Drain(t.Context(), "node-1"))
	s.rolledOut("deployment/sender")
	s.loads(leaseDuration, map[string]int{"10m": 18, "2m": 6})
	s.eventually("status to know what each of the pods loaded", func() error {
		if applied, behind := counts(s.verdict("deployment/sender", "split")); applied != 6 || behind != 18 {
			return fmt.Errorf("it counts %d pods on the applied version and %d behind, want 6 and 18", applied, behind)
		}
		return nil
	})
	split := s.verdict("deployment/sender", "split")
	s.agreesWithRecord(split, leaseDuration)
	// The leader exports the same, with the rights that it ships with.
	const fleet = `kind="Deployment",name="sender",namespace="lease-observe"`
	s.metricIs(`tidemark_fleet_verdict{`+fleet+`,owner="",verdict="split"}`, 1)
	s.metricIs(`tidemark_fleet_pods_behind{`+fleet+`}`, 18)
	for _, v := range split.Versions {
		state, pods := "older", 18
		if v.Applied {
			state, pods = "applied", 6
		}
		s.metricIs(fmt.Sprintf(`tidemark_fleet_pods{%s,state=%q,version=%q}`, fleet, state, v.Version), float64(pods))
	}
	s.metricIs(`tidemark_fleet_versions{`+fleet+`}`, 2)
	s.metricIs(`tidemark_fleet_differing_keys{`+fleet+`}`, 1)
	s.metricIs("tidemark_fleets_remarks", 0)
	// And whoever is paged, when it has been so for a minute, sees how many run what: by value, because the scene's ConfigMap
	// says that it may be shown.
	m := in.gets(s, "sender", "TidemarkFleetSplit", "firing")
	if m.Severity != "page" || m.Fact("configmap/sender-config LEASE_DURATION") != `"10m" → "2m" (18 pods)` {
		t.Errorf("people were told %+v", m)
	}
	for _, part := range []string{"6 applied", "18 older"} {
		if !strings.Contains(m.Fact("pods"), part) {
			t.Errorf("the pods are told as %q, want %s", m.Fact("pods"), part)
		}
	}
	in.gets(s, "sender", "TidemarkChangeDormant", "resolved")
	if s.stamp("deployment/sender") != "" {
		t.Error("mode observe wrote a stamp")
	}
}
