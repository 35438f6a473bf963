package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var check = benchmark{
	name: "check", title: "Check: `tidemark check` on 10 MB of rendered manifests",
	off: true,
	run: runCheck,
}

// checkSize of each release, in bytes.
const checkSize = 10 << 20

func runCheck(ctx context.Context, s *site) (rep report, err error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-")
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	released, objects := manifests(0)
	tenth, _ := manifests(10)
	all, _ := manifests(1)
	for name, text := range map[string]string{"released": released, "tenth": tenth, "all": all} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return rep, err
		}
	}
	var rows [][]string
	for _, c := range []struct {
		what, file string
		against    bool
	}{
		{"with nothing", "released", false},
		{"with a release of which one in ten differs", "tenth", true},
		{"with a release of which every one differs", "all", true},
	} {
		args := []string{"check", "-f", filepath.Join(dir, c.file), "-o", "json"}
		if c.against {
			args = append(args, "--against", filepath.Join(dir, "released"))
		}
		var times, used, peaks spread
		for range s.rounds {
			_, took, peak, err := s.timed(ctx, args...)
			if err != nil {
				return rep, err
			}
			times.add(took)
			used.add(s.used)
			peaks = append(peaks, float64(peak)/1e6)
		}
		rows = append(rows, []string{c.what, times.seconds(), used.seconds(), peaks.text("%.0f", " MB")})
	}
	rep.table([]string{"compared", "time", "processor time", "peak memory"}, rows...)
	rep.text("%s ConfigMaps with files of 200 settings, each with its Deployment. Median of %d runs, with the lowest and the highest.", grouped(objects), s.rounds)
	return rep, nil
}

// manifests are of one release: pairs of a ConfigMap with a file and a Deployment that reads it. In every n-th file a
// setting differs from that of the release with 0.
func manifests(every int) (text string, objects int) {
	var b strings.Builder
	for ; b.Len() < checkSize; objects++ {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\ndata:\n  app.yaml: |\n", objects)
		differs := every > 0 && objects%every == 0
		for j := range 100 {
			fmt.Fprintf(&b, "    section%d:\n      setting: value-%d\n      other: %t\n", j, objects, differs)
		}
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w%d\nspec:\n  template:\n    spec:\n      containers:\n"+
			"        - name: app\n          envFrom:\n            - configMapRef:\n                name: c%[1]d\n", objects)
	}
	return b.String(), objects
}
