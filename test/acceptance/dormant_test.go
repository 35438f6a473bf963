package acceptance

import (
	"fmt"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

const (
	// goodGateway and badGateway differ in one letter. Both are valid YAML, and valid settings files.
	goodGateway = "upstream=http://catalog:8080\ntimeout=5s\n"
	badGateway  = "upstream=http://catalog:8080\ntimeouts=5s\n"
)

// service sets the scene of the dormant incident.
func (v venue) service(namespace, mode string) *scene {
	v.t.Helper()
	s := v.open(namespace, mode)
	manifest, err := scenario.Manifest("dormant")
	s.must(err)
	s.apply(manifest)
	s.rolledOut("deployment/gateway")
	s.loads(gatewayFile, map[string]int{goodGateway: 8})
	return s
}

var gatewayFile = scenario.File("/etc/gateway/gateway.conf")

func TestDormantWithoutTidemarkABadEditTakesEverythingDownAtTheNextUpgradeOfTheNodes(t *testing.T) {
	s := alone(t).service("dormant-without", "")

	s.set("gateway-config", "gateway.conf", badGateway)
	s.must(s.AwaitReady(t.Context(), "gateway", 8)) // nothing notices it
	s.refusedAre(0)
	for _, node := range s.Lab.Nodes() {
		s.must(s.Drain(t.Context(), node))
	}

	s.eventually("no pod to be ready", func() error {
		ready, err := s.Ready(t.Context(), "gateway")
		if err != nil {
			return err
		}
		return labtest.Equal("the number of ready pods", ready, 0)
	})
	s.refusedAre(8)
}

func TestDormantInModeRollABadEditFailsInTheFirstPodWhileTheOldOnesServe(t *testing.T) {
	v := alone(t)
	v.watchful()
	s := v.service("dormant-roll", v1.ModeRoll)
	s.known("deployment/gateway")
	s.must(s.Aged(t.Context(), filesApart))
	low, err := s.WatchReady(t.Context(), "gateway")
	s.must(err)

	s.set("gateway-config", "gateway.conf", badGateway)

	s.refusedAre(1)
	status := s.why("deployment/gateway", "CrashLoopBackOff")
	if status.Verdict != "rolling" || !strings.Contains(status.Reason, "8 of 9 pods run an earlier version") {
		t.Errorf("status is %s: %s; want rolling, and the old pods counted", status.Verdict, status.Reason)
	}
	s.loads(gatewayFile, map[string]int{goodGateway: 8})
	// From the next edit on, the pod that fails may get well under the stamp that is just being replaced, and Kubernetes take an
	// old pod away for it and then the pod itself.
	if lowest := low.Stop(); lowest < 8 {
		t.Errorf("at one time only %d pods were ready, want 8 throughout", lowest)
	}

	s.set("gateway-config", "gateway.conf", goodGateway)

	s.rolledOut("deployment/gateway")
	s.loads(gatewayFile, map[string]int{goodGateway: 8})
	s.verdict("deployment/gateway", "in-step")
}

// refusedAre waits until so many of the pods that are there have refused their configuration more than once.
func (s *scene) refusedAre(want int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d pods to have refused their configuration more than once", want), func() error {
		refused, err := s.Refused(s.t.Context())
		if err != nil {
			return err
		}
		return labtest.Equal("the number of such pods", len(refused), want)
	})
}
