package acceptance

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// seriesLine matches one line of a scrape: name, labels.
var seriesLine = regexp.MustCompile(`^(tidemark_[a-z_]+)(?:\{(.*)\})? `)

var labelName = regexp.MustCompile(`([a-z_]+)="`)

// scraped are the labels by metric, of all series of a scrape.
func scraped(text string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		m := seriesLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if out[m[1]] == nil {
			out[m[1]] = map[string]bool{}
		}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			out[m[1]][l[1]] = true
		}
	}
	return out
}

// usedByAlerts reads which metrics, with which labels, the alerts and the dashboard use: test/alerts keeps the list.
func usedByAlerts() (map[string][]string, error) {
	root, err := scenario.Root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "test", "alerts", "testdata", "used.txt"))
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			out[words[0]] = words[1:]
		}
	}
	if len(out) < 20 {
		return nil, errors.New("the list of what alerts and dashboard use is too short to be one")
	}
	return out, nil
}

// missingIn says what alerts and dashboard use that no scrape so far has had; each scrape adds to seen.
func missingIn(seen map[string]map[string]bool, scrape string, used map[string][]string) (missing []string) {
	for metric, names := range scraped(scrape) {
		if seen[metric] == nil {
			seen[metric] = map[string]bool{}
		}
		maps.Copy(seen[metric], names)
	}
	for metric, names := range used {
		if seen[metric] == nil {
			missing = append(missing, metric)
			continue
		}
		for _, name := range names {
			if !seen[metric][name] {
				missing = append(missing, fmt.Sprintf("%s{%s}", metric, name))
			}
		}
	}
	return missing
}

// One scene in which everything is amiss that alerts and dashboard show.
func TestEveryMetricThatAlertsAndDashboardUseIsScrapedFromTheController(t *testing.T) {
	used, err := usedByAlerts()
	if err != nil {
		t.Fatal(err)
	}
	v := alonePinned(t)
	in := newInbox(t)
	if err := in.AlsoTo("http://127.0.0.1:1"); err != nil { // nobody listens there
		t.Fatal(err)
	}
	c := v.watchful(append(in.flags, "--rollout-interval=1s", "--gc-interval=1s", "--release-interval=1s", "--kind=example.tidemark.dev/v1/Nowhere=spec.template")...)
	s := v.open("alerts", v1.ModeRoll)
	s.controller = c
	s.kubectl("label", "namespace", s.Namespace, v1.AnnotationOwner+"=mail")
	s.apply(webConfig + program("deployment/good", 2, readsWeb) + program("deployment/held", 1, readsWeb) + program("deployment/stuck", 1, readsWeb) +
		program("deployment/pinned", 1, readsWeb) + program("deployment/old", 2, readsWeb) + program("statefulset/left", 2, readsWeb) + tornRecord("torn", "1"))
	s.kubectl("annotate", "deployment/pinned", v1.AnnotationMode+"="+v1.ModePin)
	s.kubectl("annotate", "deployment/old", "statefulset/left", v1.AnnotationMode+"="+v1.ModeObserve)
	s.kubectl("annotate", "statefulset/left", v1.AnnotationUnfinishedAfter+"=1s")
	s.kubectl("annotate", "deployment/old", v1.AnnotationRolloutBudget+"=1s")
	for _, w := range []string{"deployment/good", "deployment/held", "deployment/stuck", "deployment/old", "statefulset/left", "deployment/pinned"} {
		s.rolledOut(w)
	}
	first := s.pinned("deployment/pinned", "web", "")
	s.known("deployment/good", "deployment/held", "deployment/stuck")
	s.tidemark("pause", "deployment/held", "-n", s.Namespace)
	labtest.Apply(t, s.Lab, refuseStuck)
	s.kubectl("patch", "statefulset/left", "--type=merge", "-p",
		`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
	s.must(s.Aged(t.Context(), apart))
	s.set("web", "MODE", "two")
	s.pinned("deployment/pinned", "web", first)
	s.rolledOut("deployment/pinned")
	s.kubectl("delete", "configmap", first) // the first revision cannot be gone back to
	for _, part := range []string{"mutatingadmissionpolicybinding", "mutatingadmissionpolicy"} {
		_, _, err := v.lab.Kubectl(t.Context(), "delete", part, v1.PolicyPin)
		s.must(err)
	}
	used["tidemark_pods_off_their_pins"] = []string{"namespace"}
	seen := map[string]map[string]bool{}
	s.eventually("scrapes to have had all that is used", func() error {
		// Until a pod has been made without the policy, and one of the old fleet by what is applied.
		if _, err := s.Kubectl(t.Context(), "delete", "pods", "-l", "app=pinned", "--wait=false"); err != nil {
			return err
		}
		scrape, err := c.Metrics(t.Context())
		if err != nil {
			return err
		}
		if missing := missingIn(seen, scrape, used); len(missing) > 0 {
			return fmt.Errorf("none had %s", strings.Join(missing, ", "))
		}
		return nil
	})
	s.eventually("an event about a pod that does not read what its pins say", func() error {
		said, err := s.Kubectl(t.Context(), "get", "events", "--field-selector=reason=PinsNotInForce,involvedObject.kind=Pod", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(said, "reads configmap/web, which is pinned to") {
			err = fmt.Errorf("events say %q", said)
		}
		return err
	})
}

func TestAChangeOfLeaderTellsNobodyAgain(t *testing.T) {
	v := alone(t)
	in := newInbox(t)
	first := v.watchful(in.flags...)
	s := v.open("leaders", v1.ModeObserve)
	s.controller = first
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.must(s.Aged(t.Context(), apart))
	s.set("web", "MODE", "two")
	told := in.gets(s, "web", "TidemarkChangeDormant", "firing")
	s.must(first.Stop())

	s.controller = v.control(in.flags...)
	s.metricIs(`tidemark_fleet_verdict{kind="Deployment",name="web",namespace="leaders",owner="",verdict="dormant"}`, 1)
	s.set("web", "MODE", "one")
	ended := in.gets(s, "web", "TidemarkChangeDormant", "resolved")
	in.gets(s, "web", "TidemarkChangeDormant", "firing") // still one
	if told.Key != ended.Key || !strings.Contains(told.Key, "lab/fleet/Deployment.apps/leaders/web/dormant") {
		t.Errorf("told under %q, ended under %q", told.Key, ended.Key)
	}
	if n := len(in.of("TidemarkSummary", "", "", "firing")); n > 1 {
		t.Errorf("%d summaries came", n)
	}
}
