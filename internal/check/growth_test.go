package check_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/manifest"
)

// growing are inputs of n parts; what differs between releases is in the version.
var growing = map[string]struct {
	parts int
	text  func(n, version int) string
}{
	"pairs of a ConfigMap and its reader": {60, func(n, version int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata:\n  app.yaml: |\n", i)
			for j := range 50 {
				fmt.Fprintf(&b, "    section%d:\n      setting: %d\n      other: %d\n", j, version, i)
			}
			b.WriteString(reader(i, fmt.Sprintf("configMapRef: {name: c%d}", i)))
		}
		return b.String()
	}},
	"readers of optional objects that are not there": {400, func(n, _ int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: b}\n", i)
			b.WriteString(reader(i, fmt.Sprintf("secretRef: {name: absent-%d, optional: true}", i)))
		}
		return b.String()
	}},
	"settings of which half are replaced": {1500, func(n, version int) string {
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n")
		for i := range n {
			fmt.Fprintf(&b, "  KEPT_%d: a\n  IN_%d_ONLY_%d: b\n", i, version, i)
		}
		return b.String() + reader(0, "configMapRef: {name: c}")
	}},
	"keys of one ConfigMap": {4000, func(n, version int) string {
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n")
		for i := range n {
			fmt.Fprintf(&b, "  KEY_%d: value-%d\n", i, version)
		}
		return b.String() + reader(0, "configMapRef: {name: c}")
	}},
}

func reader(i int, from string) string {
	return fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w%d}\nspec: {template: {spec: {containers: [{name: app, envFrom: [{%s}]}]}}}\n", i, from)
}

// Four times as much takes about four times as long, by the processor's time of this process, so nothing else runs beside it.
func TestWorkGrowsWithTheInput(t *testing.T) {
	for name, g := range growing {
		t.Run(name, func(t *testing.T) {
			once, fourfold := time.Duration(1<<62), time.Duration(1<<62)
			for range 3 {
				once = min(once, used(t, g.text(g.parts, 1), g.text(g.parts, 2)))
				fourfold = min(fourfold, used(t, g.text(4*g.parts, 1), g.text(4*g.parts, 2)))
			}
			t.Logf("%d parts take %v, %d take %v", g.parts, once, 4*g.parts, fourfold)
			if fourfold > 9*once {
				t.Errorf("four times as much takes %.1f times as long", fourfold.Seconds()/once.Seconds())
			}
		})
	}
}

// used is the processor time of a check.
func used(t *testing.T, was, is string) time.Duration {
	t.Helper()
	begin := processorTime(t)
	before, after := &manifest.Set{Kinds: manifest.Kinds()}, &manifest.Set{Kinds: manifest.Kinds()}
	if err := before.Read("before.yaml", was); err != nil {
		t.Fatal(err)
	}
	if err := after.Read("after.yaml", is); err != nil {
		t.Fatal(err)
	}
	check.Run(check.Input{Before: []check.Release{{Name: "before", Set: before}}, After: check.Release{Name: "after", Set: after}, Now: time.Now()})
	return processorTime(t) - begin
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano())
}
