package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
)

// chartPair reads a pair of releases of a chart, with the lines of what is found in it.
func chartPair(t *testing.T, path string) (mode, before, after string, want []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]*strings.Builder{"": {}}
	part := ""
	for line := range strings.Lines(string(data)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "-- "); is {
			part = strings.TrimSuffix(name, " --")
			parts[part] = &strings.Builder{}
			continue
		}
		parts[part].WriteString(line)
	}
	for line := range strings.Lines(parts["want"].String()) {
		if severity, _, _ := strings.Cut(line, " "); severity == "error" || severity == "warning" {
			want = append(want, strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(parts[""].String()) {
		if given, is := strings.CutPrefix(strings.TrimSpace(line), "mode="); is {
			mode = given
		}
	}
	return mode, parts["before"].String(), parts["after"].String(), want
}

// findingLines gives the findings of a report as the pairs have them.
func findingLines(t *testing.T, out string) []string {
	t.Helper()
	var r v1.CheckReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var lines []string
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Object)
		if f.Key != "" {
			line += " key " + f.Key
		}
		if f.To != "" {
			line += " to " + f.To
		}
		place := f.Source
		if place == "" {
			place = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		lines = append(lines, fmt.Sprintf("%s (%s) at %s", line, f.Confidence, place))
	}
	slices.Sort(lines)
	return lines
}

// placeless gives the lines without where it is.
func placeless(lines []string) []string {
	var out []string
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " at ")
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// The charts in the shapes of well-known ones give through each of the inputs what they give by themselves.
func TestCheckOfCharts(t *testing.T) {
	charts, err := filepath.Glob("../check/testdata/charts/*.txt")
	if err != nil || len(charts) < 10 {
		t.Fatalf("%d charts, %v", len(charts), err)
	}
	for i, path := range charts {
		if charts[i], err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range charts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			mode, before, after, want := chartPair(t, path)
			t.Chdir(t.TempDir())
			file(t, ".", "before.yaml", before)
			file(t, ".", "after.yaml", after)
			for how, args := range map[string][]string{
				"from a command": {"--render", "cat after.yaml", "--against", "before.yaml"},
				"from stdin":     {"-f", "-", "--against", "before.yaml"},
			} {
				status, out, errOut := checkRun(t, after, append(args, "--mode", mode, "-o", "json", "--strict")...)
				if status != min(len(want), 1) {
					t.Fatalf("%s: status %d: %s", how, status, errOut)
				}
				slices.Sort(want)
				if got := findingLines(t, out); !slices.Equal(got, want) {
					t.Errorf("%s: got\n%s\nwant\n%s", how, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			file(t, ".", "k/kustomization.yaml", "resources: [after.yaml]\n")
			file(t, ".", "k/after.yaml", after)
			status, out, errOut := checkRun(t, "", "-k", "k", "--against", "before.yaml", "--mode", mode, "-o", "json")
			if got := placeless(findingLines(t, out)); status != 0 || !slices.Equal(got, placeless(want)) {
				t.Errorf("as a kustomization: status %d: %s\ngot %q\nwant %q", status, errOut, got, placeless(want))
			}
			for _, format := range []string{"", "wide", "sarif", "github", "gitlab"} {
				if status, out, errOut := checkRun(t, "", "-f", "after.yaml", "--against", "before.yaml", "--mode", mode, "-o", format); status != 0 || strings.Contains(out+errOut, "MARKER") {
					t.Errorf("as %s: status %d: %s%s", format, status, out, errOut)
				}
			}
		})
	}
}
