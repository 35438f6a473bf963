package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const rulesFile = "../../deploy/alerts/rules.yaml"

// rule is what is looked at of an alert.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

type ruleGroups struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

func (g ruleGroups) all() []rule {
	var out []rule
	for _, group := range g.Groups {
		out = append(out, group.Rules...)
	}
	return out
}

func load[T any](t *testing.T, path string) T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// promtool runs Prometheus' own tool, as go.mod pins it. It is built without service discovery, whose clients of every cloud are
// more than half of its code.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", append([]string{"tool", "promtool"}, args...)...)
	c.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -tags=remove_all_sd"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFireAndStaySilentAsTheirTestsSay(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v: %v", files, err)
	}
	promtool(t, append([]string{"test", "rules"}, files...)...)
}

// ruleTests are what promtool is asked.
type ruleTests struct {
	Tests []struct {
		Name          string
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func TestEachAlertIsTestedForFiringAndForStayingSilent(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	healthy := map[string]int{}
	for _, file := range []string{"testdata/fires.yaml", "testdata/silent.yaml"} {
		for _, test := range load[ruleTests](t, file).Tests {
			for _, at := range test.AlertRuleTest {
				fires[at.Alertname] = fires[at.Alertname] || len(at.ExpAlerts) > 0
				silent[at.Alertname] = silent[at.Alertname] || len(at.ExpAlerts) == 0
				if strings.HasPrefix(test.Name, "healthy rollouts every five minutes for an hour") && len(at.ExpAlerts) == 0 {
					healthy[at.Alertname]++
				}
			}
		}
	}
	for _, r := range load[ruleGroups](t, rulesFile).all() {
		if !fires[r.Alert] || !silent[r.Alert] || healthy[r.Alert] < 3 {
			t.Errorf("%s: tested for firing %v, for silence %v, and at %d moments of healthy rollouts", r.Alert, fires[r.Alert], silent[r.Alert], healthy[r.Alert])
		}
	}
}

func TestEachAlertLeadsToItsPageAndTheNextCommand(t *testing.T) {
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, r := range load[ruleGroups](t, rulesFile).all() {
		named[r.Alert] = true
		page := "../../docs/runbooks/" + r.Alert + ".md"
		if r.Annotations["runbook_url"] != "https://tidemark.dev/docs/runbooks/"+r.Alert+".md" || !slices.Contains(pages, page) {
			t.Errorf("%s leads to %q", r.Alert, r.Annotations["runbook_url"])
			continue
		}
		if !strings.HasPrefix(r.Annotations["command"], "kubectl ") || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: annotations %v", r.Alert, r.Annotations)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if severity := r.Labels["severity"]; !strings.Contains(string(text), "Severity: "+severity+".") || severity != "page" && severity != "message" {
			t.Errorf("%s has the severity %q, and its page another", r.Alert, severity)
		}
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); !named[name] && !strings.Contains(string(messages), "| `"+name+"` |") {
			t.Errorf("%s is the page of no alert and of no message", page)
		}
	}
}

// The operator's form is generated; this holds the generator.
func TestPrometheusRuleHasTheSameGroups(t *testing.T) {
	type operator struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       any
	}
	got := load[operator](t, "../../deploy/alerts/prometheusrule.yaml")
	want := load[any](t, rulesFile)
	a, err := yaml.Marshal(got.Spec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != "PrometheusRule" || got.APIVersion != "monitoring.coreos.com/v1" || string(a) != string(b) {
		t.Errorf("%s %s differs from %s: run make generate", got.APIVersion, got.Kind, rulesFile)
	}
}

// Without honorLabels the namespace of a workload becomes exported_namespace, and no alert finds it.
func TestServiceMonitorKeepsTheLabelsOfWorkloads(t *testing.T) {
	type monitor struct {
		Spec struct {
			Endpoints []struct {
				Port        string
				HonorLabels bool `yaml:"honorLabels"`
			}
		}
	}
	endpoints := load[monitor](t, "../../deploy/alerts/servicemonitor.yaml").Spec.Endpoints
	if len(endpoints) != 1 || !endpoints[0].HonorLabels || endpoints[0].Port != "metrics" {
		t.Errorf("got %+v", endpoints)
	}
}
