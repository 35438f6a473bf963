package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/internal/controller"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/webhook"
)

// described notes what collectors describe when they are registered.
type described struct {
	prometheus.Registerer
	rows []string
}

// The text of a description is the only way to its parts.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", unit: "", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// Register implements prometheus.Registerer.
func (d *described) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() { c.Describe(descs); close(descs) }()
	for desc := range descs {
		m := description.FindStringSubmatch(desc.String())
		if m == nil {
			d.rows = append(d.rows, desc.String())
			continue
		}
		labels := "-"
		if m[3] != "" {
			labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		}
		d.rows = append(d.rows, "| `"+m[1]+"` | "+labels+" | "+m[2]+" |")
	}
	return d.Registerer.Register(c)
}

// The table of docs/metrics.md is what dashboards and alerts are held against.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	d := &described{Registerer: prometheus.NewPedanticRegistry()}
	_, err := controller.NewMetrics(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controller.NewCleanupMetrics(d); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.NewFleetMetrics(d); err != nil {
		t.Fatal(err)
	}
	if _, err := notify.NewMetrics(d); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.NewDeployMetrics(d); err != nil {
		t.Fatal(err)
	}
	if _, err := webhook.NewMetrics(d); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(text), "\n## Of programs")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `tidemark_") {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(rows)
	slices.Sort(d.rows)
	if diff := cmp.Diff(d.rows, rows); diff != "" {
		t.Errorf("docs/metrics.md is not what the code says (-code +docs):\n%s", diff)
	}
}
