package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

const (
	pricing      = "deployment/pricing"
	firstRelease = "image 1 with discount_rules_path"
	nextRelease  = "image 2 with rules.discount_path"
)

// pricingRuns words which image a container of the incident `rollback` ran with which setting.
func pricingRuns(s wire.Start) string {
	setting, _, _ := strings.Cut(s.File("/etc/pricing/pricing.conf"), "=")
	return "image " + s.Image[strings.LastIndexByte(s.Image, ':')+1:] + " with " + setting
}

// releaseTwice plays the incident `rollback` up to where somebody goes back.
func (s *scene) releaseTwice() {
	s.t.Helper()
	s.applyScene("rollback")
	s.rolledOut(pricing)
	if s.controller != nil {
		s.pinned(pricing, "pricing-config", "")
		s.rolledOut(pricing)
	}
	s.loads(pricingRuns, map[string]int{firstRelease: 4})
	s.applyScene("rollback-2")
	s.loads(pricingRuns, map[string]int{nextRelease: 4})
	s.rolledOut(pricing)
}

func (s *scene) applyScene(name string) {
	s.t.Helper()
	manifest, err := scenario.Manifest(name)
	s.must(err)
	s.apply(manifest)
}

func TestRollbackIsFoundInThePullRequestAndTwoStepsPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, want string }{
		"the rename in one step": {"rollback", "rollback-2", "rename-in-one-step pricing.conf:discount_rules_path pricing.conf:rules.discount_path"},
		"the first of two steps": {"rollback", "rollback-both", ""},
		"the second":             {"rollback-both", "rollback-2", ""},
	} {
		_, found, err := scenario.Check(t.Context(), c.before, c.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found.Findings {
			got = append(got, f.Rule+" "+f.Key+" "+f.To)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// What runs is known to check and plan with nothing but the right to read.
func TestCheckAndPlanKnowWhatRuns(t *testing.T) {
	s := openQuiet(t, "rollback-checked")
	s.applyScene("rollback")
	s.rolledOut(pricing)
	s.applyScene("rollback-both")
	s.rolledOut(pricing)
	file := func(name string) string {
		manifest, err := scenario.Manifest(name)
		s.must(err)
		path := filepath.Join(t.TempDir(), name+".yaml")
		s.must(os.WriteFile(path, []byte(manifest), 0o600))
		return path
	}
	last := file("rollback-2")

	// The revision before still reads the old name, the present one both.
	s.does("check --against live -o wide -f "+last, "key-removed-while-read", "pods of revision 1 may read it", "revision 2")
	s.does("plan -o wide -f "+last, "deployment/pricing", "its template changes, and what it reads", "4/4", "at most 1 unavailable, 1 extra",
		"the next start reads pricing.conf of configmap/pricing-config: changed")
	s.does("plan -f "+file("rollback-both"), "stays", "0 of 1 workloads roll")
}

func TestRollbackWithoutTidemarkLeavesOldPodsOnTheNewConfiguration(t *testing.T) {
	v := alone(t)
	s := v.open("rollback-without", "")
	s.releaseTwice()

	s.kubectl("rollout", "undo", pricing)

	s.refusedAre(2)
	s.loads(pricingRuns, map[string]int{nextRelease: 3})
}

func TestRollbackWithTheWebhookIsCompleteAtOnce(t *testing.T) {
	v := alonePinned(t)
	s := v.open("rollback-pin", v1.ModePin)
	s.controller = v.begin(scenario.StartPinned(t.Context(), v.lab, scenario.Program{Binary: shared.binary}))
	s.releaseTwice()
	revisions := s.revisions(pricing)

	s.kubectl("rollout", "undo", pricing)

	s.loads(pricingRuns, map[string]int{firstRelease: 4})
	s.rolledOut(pricing)
	s.verdict(pricing, "rolled-back")
	if now := s.revisions(pricing); now != revisions {
		t.Errorf("%d revisions after the undo, want %d as before", now, revisions)
	}
	if refused, err := s.Refused(t.Context()); err != nil || len(refused) > 0 {
		t.Errorf("%v refused their configuration, error %v", refused, err)
	}
	data, _ := s.get("configmap/pricing-config").Object["data"].(map[string]any)
	if text, _ := data["pricing.conf"].(string); !strings.HasPrefix(text, "rules.discount_path=") {
		t.Errorf("the ConfigMap that people apply holds %q, want what they applied", text)
	}
	s.caughtUp()
	s.loads(pricingRuns, map[string]int{firstRelease: 4})
}

// Without the webhook the new image runs for a moment with the old configuration: a revision of its own, on which a plain undo
// lands. `tidemark rollback` passes over it.
func TestRollbackWithoutTheWebhookMayLandInBetween(t *testing.T) {
	t.Parallel()
	s := openPinned(t, "rollback-between")
	s.releaseTwice()
	s.revisionsAre(pricing, 4) // before the first pins, the first release, the one in between, the second release

	s.kubectl("rollout", "undo", pricing)

	s.refusedAre(2)
}
