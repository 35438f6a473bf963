package cli

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster/plan"
	"tidemark.dev/tidemark/internal/report"
)

// printPlan prints a table of the workloads, wide with all that is known of each below; partial as far as they could be read.
func printPlan(out io.Writer, p v1.Plan, wide, partial bool) error {
	bound := ""
	if partial {
		bound = ", as far as may be read"
	}
	if len(p.Workloads) == 0 {
		_, err := fmt.Fprintf(out, "No workload is given, and none uses what is%s.\n", bound)
		return err
	}
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "NAMESPACE\tWORKLOAD\tFORECAST\tMODE\tPODS\tOWNER\tWHY")
	rolling, unknown, pods := 0, 0, 0
	for _, l := range p.Workloads {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", report.Plain(l.Namespace), report.Plain(l.Workload), l.Forecast,
			report.Plain(orNone(l.Mode)), replacedText(l), report.Plain(orNone(l.Owner)), report.Plain(l.Why))
		switch l.Forecast {
		case string(plan.Rolls):
			rolling, pods = rolling+1, pods+l.Replaced
		case string(plan.Undecided):
			unknown++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if wide {
		for _, l := range p.Workloads {
			planDetails(out, l)
		}
	}
	doubt := ""
	if unknown > 0 {
		doubt = fmt.Sprintf(", %d unknown", unknown)
	}
	_, err := fmt.Fprintf(out, "\n%d of %d workloads roll%s, and %d pods are replaced%s.\n", rolling, len(p.Workloads), doubt, pods, bound)
	return err
}

func replacedText(l v1.PlannedWorkload) string {
	if l.Replicas == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", l.Replaced, l.Replicas)
}

// planDetails prints what the table has no room for.
func planDetails(out io.Writer, l v1.PlannedWorkload) {
	var lines []string
	if l.Pace != "" {
		lines = append(lines, "strategy: "+l.Pace)
	}
	for _, b := range l.Budgets {
		lines = append(lines, fmt.Sprintf("disruption budget %s: evictions that it allows now: %d; it does not bound a rollout", b.Name, b.Allowed))
	}
	for _, r := range l.Reads {
		lines = append(lines, fmt.Sprintf("the next start reads %s of %s: %s", r.Key, r.Object, r.Change))
	}
	for _, s := range l.Secrets {
		lines = append(lines, s+" is given: whether it differs is not told")
	}
	for _, h := range l.HeldBack {
		lines = append(lines, h+" is held back by a rollback")
	}
	lines = append(lines, l.Notes...)
	for i := range lines {
		lines[i] = report.Plain(lines[i])
	}
	if len(lines) > 0 {
		fmt.Fprintf(out, "\n%s in %s\n  %s\n", report.Plain(l.Workload), report.Plain(l.Namespace), strings.Join(lines, "\n  "))
	}
}
