package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// report is what a benchmark found, in parts of markdown.
type report struct{ parts []string }

func (r *report) table(head []string, rows ...[]string) {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	fmt.Fprintf(&b, "|%s|\n", strings.Join(rule, "|"))
	for _, row := range rows {
		line(row)
	}
	r.parts = append(r.parts, b.String())
}

func (r *report) text(format string, args ...any) {
	r.parts = append(r.parts, fmt.Sprintf(format, args...)+"\n")
}

func (r *report) markdown() string { return strings.Join(r.parts, "\n") }

// kubernetesVersion is that of the lab.
const kubernetesVersion = "1.37"

// circumstances says on what the figures were taken, and no more of the machine than matters to them.
func circumstances() string {
	return fmt.Sprintf("Taken on %s with %d cores (shared by the API server, etcd, the controller manager and what is measured), %s, Kubernetes %s.\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), kubernetesVersion)
}
