package cli

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/printers"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/report"
)

// listedRule is a rule as `tidemark check --list-rules -o json` prints it.
type listedRule struct {
	Rule string `json:"rule"`
	// Severity unless --rule sets another.
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Fix      string `json:"fix"`
	// ComparesReleases says that it needs a release before.
	ComparesReleases bool `json:"comparesReleases"`
}

// printRules prints the rules, with the severities that the flags give them.
func (f *checkFlags) printRules() error {
	severities, err := parseSeverities(f.rules)
	if err != nil {
		return err
	}
	rules := make([]listedRule, 0, len(check.Rules()))
	for _, r := range check.Rules() {
		if s, set := severities[r.ID]; set {
			r.Severity = s
		}
		rules = append(rules, listedRule{string(r.ID), string(r.Severity), r.Summary, r.Detail, r.Fix, r.NeedsBefore})
	}
	switch report.Format(f.output) {
	case report.JSON:
		return printDocument(f.Out, "json", rules)
	case report.Wide:
		for _, r := range rules {
			fmt.Fprintf(f.Out, "%s (%s)\n  %s\n  %s\n  Fix: %s\n\n", r.Rule, r.Severity, r.Summary, r.Detail, r.Fix)
		}
		return nil
	case report.Text:
		w := printers.GetNewTabWriter(f.Out)
		fmt.Fprintln(w, "RULE\tSEVERITY\tCOMPARES\tSUMMARY")
		for _, r := range rules {
			compares := "-"
			if r.ComparesReleases {
				compares = "releases"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Rule, r.Severity, compares, r.Summary)
		}
		return w.Flush()
	case report.SARIF, report.GitHub, report.GitLab:
	}
	return usagef("--list-rules: %q is no format of it: write wide or json", f.output)
}
