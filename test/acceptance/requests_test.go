package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

func TestEditsOfMetadataAreAnsweredWithNoRequestAtAll(t *testing.T) {
	const n = 20
	v := alone(t)
	v.control("--fleet-interval=0") // what it exports of fleets it reads by the clock
	s := v.open("metadata", v1.ModeRoll)
	s.apply(many(n))
	s.manyKnown(n)
	s.caughtUp() // and the history of all of it is written
	s.must(s.Lab.ResetRequests(t.Context()))

	for i := range n {
		s.kubectl("label", "configmap", fmt.Sprintf("web-%d", i), "checked=yes")
	}

	s.caughtUp()
	requests, err := s.Lab.Requests(t.Context())
	s.must(err)
	patches, reads := int64(0), int64(0)
	for _, r := range requests {
		switch {
		case !byController(r), standing(r):
		case r.Verb == "patch" && r.Resource == "deployments":
			patches += r.Count
		case r.Verb == "get" && r.Resource == "configmaps":
			reads += r.Count
		default:
			t.Errorf("the controller made a request: %+v", r)
		}
	}
	if reads > 2 {
		t.Errorf("the controller read ConfigMaps %d times, want at most the one that tells that it has caught up, for the values in its history", reads)
	}
	if patches != 1 {
		t.Errorf("the controller patched Deployments %d times, want once, for the change that tells that it has caught up", patches)
	}
}

func byController(r wire.Request) bool {
	return r.User == fmt.Sprintf("system:serviceaccount:%s:%s", scenario.SystemNamespace, scenario.ServiceAccount)
}

// byTheClock are the groups that the controller asks every so often, whatever happens: whether pins are in force, and which
// rights it has.
var byTheClock = []string{"admissionregistration.k8s.io", "authorization.k8s.io"}

// standing reports whether a request belongs to what goes on whatever the cluster does, or to the change that tells that
// the controller has caught up: the Lease, what goes by the clock, watches that are renewed, that change's event and its
// history.
func standing(r wire.Request) bool {
	return r.Resource == "leases" || slices.Contains(byTheClock, r.Group) || r.Verb == "watch" || r.Resource == "events" && r.Verb != "list" ||
		r.Verb == "patch" && r.Resource == "configmaps" || strings.HasPrefix(r.Path, "/api")
}
