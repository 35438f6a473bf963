package alerts

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// usedFile says which metrics with which labels alerts and dashboard use. The acceptance tests hold it against a scrape of the real
// controller.
const usedFile = "testdata/used.txt"

var update = flag.Bool("update", false, "write "+usedFile)

// used are the labels by metric.
type used map[string]map[string]bool

func (u used) add(metric string, names ...string) {
	if u[metric] == nil {
		u[metric] = map[string]bool{}
	}
	for _, n := range names {
		u[metric][n] = true
	}
}

// Labels that Prometheus, its operator or whoever runs several clusters adds, and the one of histograms' buckets.
var added = []string{"instance", "job", "pod", "container", "endpoint", "service", "cluster", "le"}

// expression notes every metric of an expression with the labels by which it is selected. Labels that an aggregation or a
// matching of vectors names count for the metrics below it; those that a text shows of the result, for the first of them.
func (u used) expression(t *testing.T, where, text string, shown [][]string) {
	t.Helper()
	root, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	u.node(root, nil)
	first := ""
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if selector, ok := n.(*parser.VectorSelector); ok && first == "" {
			first = selector.Name
		}
		return nil
	})
	for _, m := range shown {
		if !slices.Contains(added, m[1]) {
			u.add(first, m[1])
		}
	}
}

func (u used) node(n parser.Node, names []string) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		for _, m := range n.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				names = append(slices.Clone(names), m.Name)
			}
		}
		u.add(n.Name, slices.DeleteFunc(slices.Clone(names), func(l string) bool { return slices.Contains(added, l) })...)
		return
	case *parser.AggregateExpr:
		if !n.Without {
			names = append(slices.Clone(names), n.Grouping...)
		}
	case *parser.BinaryExpr:
		if m := n.VectorMatching; m != nil && m.On {
			names = append(slices.Clone(names), m.MatchingLabels...)
		}
	}
	for child := range parser.ChildrenIter(n) {
		u.node(child, names)
	}
}

// Labels in the texts of annotations and legends.
var (
	annotationLabel = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	legendLabel     = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// dashboard is what is looked at of Grafana's JSON.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

var labelValues = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)

// collect reads what alerts and dashboard use.
func collect(t *testing.T) used {
	t.Helper()
	out := used{}
	for _, r := range load[ruleGroups](t, rulesFile).all() {
		texts := strings.Join(slices.Collect(maps.Values(r.Annotations)), "\n")
		out.expression(t, r.Alert, r.Expr, annotationLabel.FindAllStringSubmatch(texts, -1))
	}
	text, err := os.ReadFile("../../deploy/dashboards/tidemark.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			out.expression(t, p.Title, expr, legendLabel.FindAllStringSubmatch(target.LegendFormat, -1))
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("variable %s: %q", v.Name, v.Definition)
			continue
		}
		out.add(m[1])
		if !slices.Contains(added, m[2]) {
			out.add(m[1], m[2])
		}
	}
	return out
}

// table reads the labels by metric from docs/metrics.md.
func table(t *testing.T) used {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(text), "\n## Of programs")
	out := used{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`tidemark_") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		out.add(name)
		for label := range strings.SplitSeq(cells[2], ",") {
			if label = strings.Trim(label, " `"); label != "-" {
				out.add(name, label)
			}
		}
	}
	return out
}

func TestAlertsAndDashboardUseOnlyMetricsOfTheTable(t *testing.T) {
	known, uses := table(t), collect(t)
	if len(known) < 30 || len(uses) < 20 {
		t.Fatalf("read %d metrics of the table, and %d uses", len(known), len(uses))
	}
	for metric, names := range uses {
		of, ok := known[strings.TrimSuffix(metric, "_bucket")]
		if !ok {
			t.Errorf("%s is not in docs/metrics.md", metric)
			continue
		}
		for name := range names {
			if !of[name] {
				t.Errorf("%s has no label %s in docs/metrics.md", metric, name)
			}
		}
	}
}

func TestListOfWhatIsUsedIsCurrent(t *testing.T) {
	var text strings.Builder
	text.WriteString("# The metrics, each with the labels, that deploy/alerts and deploy/dashboards use: go test -run ListOfWhatIsUsed -update\n")
	uses := collect(t)
	for _, metric := range slices.Sorted(maps.Keys(uses)) {
		text.WriteString(strings.TrimSpace(metric+" "+strings.Join(slices.Sorted(maps.Keys(uses[metric])), " ")) + "\n")
	}
	if *update {
		if err := os.WriteFile(usedFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(usedFile)
	if err != nil || string(have) != text.String() {
		t.Errorf("%s is not current (-update writes it): %v\nwant:\n%s", usedFile, err, text.String())
	}
}
