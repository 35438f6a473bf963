package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
)

var update = flag.Bool("update", false, "write what was found into the pairs")

// day is the day of the pairs, by which excuses expire.
var day = time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)

// pair is a release before and after a change: a file with parts, each under a line "-- NAME --". The first lines are the
// sentence that it is about, then options such as "mode=pin".
type pair struct {
	head  []string
	parts map[string]string
}

func readPair(t *testing.T, file string) pair {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{parts: map[string]string{}}
	part := ""
	for line := range strings.Lines(string(data)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "-- "); is {
			part = strings.TrimSuffix(name, " --")
			p.parts[part] = ""
			continue
		}
		if part == "" {
			p.head = append(p.head, strings.TrimSpace(line))
			continue
		}
		p.parts[part] += line
	}
	return p
}

func (p pair) write(t *testing.T, file string) {
	t.Helper()
	text := strings.Join(p.head, "\n") + "\n"
	for _, name := range []string{"before", "after", "want"} {
		if part, has := p.parts[name]; has {
			text += "-- " + name + " --\n" + part
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func release(t *testing.T, name, text string) check.Release {
	t.Helper()
	set := &manifest.Set{Kinds: manifest.Kinds(), Rendered: strings.Contains(text, "# Source: ")}
	file := name + ".yaml"
	if strings.Contains(text, "runs-on:") {
		file = ".github/workflows/deploy.yaml"
	}
	if err := set.Read(file, text); err != nil {
		t.Fatal(err)
	}
	r := check.Release{Name: name, Set: set, Schemas: check.Schemas{}}
	for _, w := range set.Workloads {
		if text := w.Annotation(v1.AnnotationSchema); text != "" {
			schema, err := check.CompileSchema(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Schemas[w.String()] = schema
		}
	}
	return r
}

// run checks a pair; the result is what "want" should be.
func (p pair) run(t *testing.T) string {
	t.Helper()
	in := check.Input{After: release(t, "after", p.parts["after"]), Now: day}
	if before, has := p.parts["before"]; has {
		in.Before = append(in.Before, release(t, "before", before))
	}
	for _, o := range p.head[1:] {
		if mode, is := strings.CutPrefix(o, "mode="); is {
			in.Mode = mode
		}
	}
	result := check.Run(in)
	var out strings.Builder
	for _, f := range result.Findings {
		fmt.Fprintf(&out, "%s %s %s", f.Severity, f.Rule, f.Object)
		if f.Key != "" {
			fmt.Fprintf(&out, " key %s", f.Key)
		}
		if f.To != "" {
			fmt.Fprintf(&out, " to %s", f.To)
		}
		fmt.Fprintf(&out, " (%s) at %s", f.Confidence, f.At)
		if f.Excused != nil {
			fmt.Fprintf(&out, " excused: %s", f.Excused.Reason)
		}
		fmt.Fprintf(&out, "\n  %s\n", f.Why)
	}
	for _, c := range result.Matrix {
		fmt.Fprintf(&out, "%s of %s with configuration of %s: %s", c.Workload, c.Revision, c.Configuration, c.Outcome)
		if c.Why != "" {
			fmt.Fprintf(&out, " (%s)", c.Why)
		}
		out.WriteByte('\n')
	}
	for _, r := range result.Remarks {
		fmt.Fprintf(&out, "remark: %s\n", r)
	}
	return out.String()
}

func TestPairs(t *testing.T) {
	t.Parallel()
	pairs(t, "pairs", 60)
}

// The charts are small ones, in the shapes in which well-known ones refer to their configuration.
func TestCharts(t *testing.T) {
	t.Parallel()
	pairs(t, "charts", 10)
}

// pairs checks those of a directory, of which there are so many at least.
func pairs(t *testing.T, dir string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d pairs, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			p := readPair(t, file)
			got := p.run(t)
			if *update {
				p.parts["want"] = got
				p.write(t, file)
			}
			if diff := cmp.Diff(p.parts["want"], got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", p.head[0], diff)
			}
			if strings.Contains(got, "MARKER") {
				t.Errorf("a credential is shown:\n%s", got)
			}
			silent, found := strings.HasSuffix(file, "-silent.txt"), strings.Contains("\n"+got, "\nerror ") || strings.Contains("\n"+got, "\nwarning ")
			if silent == found {
				t.Errorf("%s: the name says silent %v, and there are findings: %v", p.head[0], silent, found)
			}
		})
	}
}
