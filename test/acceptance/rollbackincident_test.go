package acceptance

import (
	"fmt"
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
	c := v.begin(scenario.StartPinned(t.Context(), v.lab, scenario.Program{Binary: shared.binary}))
	for name, goBack := range map[string]func(*scene){"kubectl": (*scene).undoneByKubectl, "helm": (*scene).undoneByHelm} {
		t.Run(name, func(t *testing.T) {
			s := venue{t, v.lab}.open("rollback-by-"+name, v1.ModePin)
			s.controller = c
			goBack(s)
		})
	}
}

func (s *scene) undoneByKubectl() {
	s.t.Helper()
	s.releaseTwice()
	revisions := s.revisions(pricing)

	s.kubectl("rollout", "undo", pricing)

	s.loads(pricingRuns, map[string]int{firstRelease: 4})
	s.rolledOut(pricing)
	s.verdict(pricing, "rolled-back")
	if now := s.revisions(pricing); now != revisions {
		s.t.Errorf("%d revisions after the undo, want %d as before", now, revisions)
	}
	if refused, err := s.Refused(s.t.Context()); err != nil || len(refused) > 0 {
		s.t.Errorf("%v refused their configuration, error %v", refused, err)
	}
	data, _ := s.get("configmap/pricing-config").Object["data"].(map[string]any)
	if text, _ := data["pricing.conf"].(string); !strings.HasPrefix(text, "rules.discount_path=") {
		s.t.Errorf("the ConfigMap that people apply holds %q, want what they applied", text)
	}
	s.caughtUp()
	s.loads(pricingRuns, map[string]int{firstRelease: 4})
}

// undoneByHelm goes back with the real Helm, which brings back the ConfigMap of the chart with the image.
func (s *scene) undoneByHelm() {
	s.t.Helper()
	d := s.deploysOf()
	d.installed()
	first := s.pinned(charted, service+"-config", "")
	s.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=2,fee=4"))
	s.loads(checkoutRuns, map[string]int{"image 2 with 4": 2})
	revisions := s.revisions(charted)

	s.must(d.helm("rollback", service, "1", "--wait"))

	s.loads(checkoutRuns, map[string]int{"image 1 with 3": 2})
	s.verdict(charted, "in-step")
	if pin := s.pinned(charted, service+"-config", ""); pin != first {
		s.t.Errorf("pinned to %s, want %s as before", pin, first)
	}
	s.caughtUp()
	s.revisionsAre(charted, revisions+1) // Helm makes a release of it
	if ever := s.everRan(); len(ever) != 2 || !ever["image 1 with 3"] || !ever["image 2 with 4"] {
		s.t.Errorf("there ran %v", ever)
	}
}

// charted is the Deployment of the chart.
const charted = "deployment/" + service

// checkoutRuns words which image a container of the chart ran with which setting.
func checkoutRuns(s wire.Start) string {
	return "image " + s.Image[strings.LastIndexByte(s.Image, ':')+1:] + " with " + s.Env("FEE")
}

func (s *scene) deploysOf() *deploys {
	s.t.Helper()
	chart, err := scenario.Chart(s.t.TempDir())
	s.must(err)
	return &deploys{scene: s, chart: chart, driver: "secret"}
}

// everRan is what containers of the chart ever ran.
func (s *scene) everRan() map[string]bool {
	s.t.Helper()
	starts, err := s.Starts(s.t.Context())
	s.must(err)
	ever := map[string]bool{}
	for _, c := range starts {
		ever[checkoutRuns(c)] = true
	}
	return ever
}

// What `helm rollback` brings back without the webhook on workloads: in the end the ConfigMap of the chart with the image, but
// over a revision in between, of the old image with the newer configuration.
func TestHelmRollbackWithoutTheWebhookEndsRightOverARevisionInBetween(t *testing.T) {
	turn(t)
	s := openPinned(t, "helm-between")
	d := s.deploysOf()
	d.installed()
	first := s.pinned(charted, service+"-config", "")
	s.rolledOut(charted)
	s.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=2,fee=4"))
	s.loads(checkoutRuns, map[string]int{"image 2 with 4": 2})
	s.rolledOut(charted)
	s.caughtUp()
	revisions := s.revisions(charted)

	s.must(d.helm("rollback", service, "1", "--wait"))

	s.loads(checkoutRuns, map[string]int{"image 1 with 3": 2})
	s.verdict(charted, "in-step")
	if pin := s.pinned(charted, service+"-config", ""); pin != first {
		t.Errorf("pinned to %s, want %s as before", pin, first)
	}
	s.caughtUp()
	if ever := s.everRan(); !ever["image 1 with 4"] {
		t.Errorf("there ran %v, want the old image with the newer configuration among it", ever)
	}
	s.revisionsAre(charted, revisions+2) // the one in between, and the release that Helm makes: no text of a stamp comes back
}

// Configuration that is not in the chart stays as it is applied when Helm goes back; `tidemark rollback` brings it back too.
func TestHelmRollbackLeavesConfigurationOutsideTheChartAsItIsApplied(t *testing.T) {
	turn(t)
	s := openPinned(t, "helm-outside")
	d := s.deploysOf()
	const config = service + "-config"
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + config + "}\ndata: {FEE: \"3\"}\n")
	d.installed("--set", "config=false")
	first := s.pinned(charted, config, "")
	s.rolledOut(charted)
	s.set(config, "FEE", "4")
	second := s.pinned(charted, config, first)
	s.rolledOut(charted)
	s.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "config=false,release=2"))
	s.loads(checkoutRuns, map[string]int{"image 2 with 4": 2})
	released := s.revisionWith(first)

	s.must(d.helm("rollback", service, "1", "--wait"))

	s.loads(checkoutRuns, map[string]int{"image 1 with 4": 2})
	s.caughtUp()
	if pin := s.pinned(charted, config, ""); pin != second {
		t.Errorf("pinned to %s, want %s, which holds what is applied", pin, second)
	}
	s.verdict(charted, "in-step")

	s.does(fmt.Sprintf("rollback %s --to-revision %d --wait", charted, released), "is rolled out")
	s.loads(checkoutRuns, map[string]int{"image 1 with 3": 2})
	s.verdict(charted, "rolled-back")
}

// revisionWith is the number of the revision whose pods read a copy.
func (s *scene) revisionWith(copied string) int64 {
	s.t.Helper()
	for _, r := range s.listed(charted) {
		if len(r.Configuration) > 0 && r.Configuration[0].Copy == copied {
			return r.Revision
		}
	}
	s.t.Fatalf("no revision reads the copy %s", copied)
	return 0
}

// Without the webhook the new image runs for a moment with the old configuration: a revision of its own, on which a plain undo
// lands. `tidemark rollback` passes over it.
func TestRollbackWithoutTheWebhookMayLandInBetween(t *testing.T) {
	turn(t)
	s := openPinned(t, "rollback-between")
	s.releaseTwice()
	s.revisionsAre(pricing, 4) // before the first pins, the first release, the one in between, the second release

	s.kubectl("rollout", "undo", pricing)

	s.refusedAre(2)
}
