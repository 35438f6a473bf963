package guard

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"tidemark.dev/tidemark/internal/release"
)

func TestACommandRunsOnlyWhereNobodyIsAtWork(t *testing.T) {
	none := release.NoOperation
	for name, c := range map[string]struct {
		command, pending release.Operation
		state            release.State
		action           release.Action
		runs             bool
	}{
		"an upgrade of a healthy release":             {release.Upgrade, none, release.Healthy, release.DoNothing, true},
		"an upgrade of one with residue":              {release.Upgrade, none, release.Residue, release.DoNothing, true},
		"an upgrade after one that was recovered":     {release.Upgrade, release.Upgrade, release.Abandoned, release.DoForward, true},
		"an upgrade of an abandoned one under report": {release.Upgrade, release.Upgrade, release.Abandoned, release.DoReport, false},
		"an upgrade of an unguarded one":              {release.Upgrade, release.Upgrade, release.Unguarded, release.DoReport, false},
		"an upgrade of a live one":                    {release.Upgrade, release.Upgrade, release.Live, release.DoNothing, false},
		"a script on an unknown one":                  {none, release.Upgrade, release.Unknown, release.DoNothing, false},
		"a rollback of an abandoned one":              {release.Rollback, release.Upgrade, release.Abandoned, release.DoReport, true},
		"a rollback of a live one":                    {release.Rollback, release.Upgrade, release.Live, release.DoNothing, false},
		"a rollback of an unguarded one":              {release.Rollback, release.Upgrade, release.Unguarded, release.DoReport, false},
		"an uninstall of an unguarded uninstall":      {release.Uninstall, release.Uninstall, release.Unguarded, release.DoReport, true},
		"an uninstall of a live uninstall":            {release.Uninstall, release.Uninstall, release.Live, release.DoReport, false},
		"a rollback of an unguarded uninstall":        {release.Rollback, release.Uninstall, release.Unguarded, release.DoReport, false},
	} {
		p := Preflight{
			types.NamespacedName{Namespace: "prod", Name: "web"}, c.command,
			release.Verdict{State: c.state, Operation: c.pending, Newest: release.Revision{Number: 3, Status: "pending-upgrade"}}, release.Plan{Action: c.action, Why: "so"},
		}
		if p.MayRun() != c.runs {
			t.Errorf("%s: %t", name, !c.runs)
		}
		if said := p.Remark(); (said == "") != (c.state == release.Healthy) || c.pending != none && !strings.Contains(said, "that is "+string(c.state)+": so") {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

func TestTheRevisionOfACommandIsTheOneThatHelmGivesIt(t *testing.T) {
	for operation, want := range map[release.Operation]int64{
		release.Install: 8, release.Upgrade: 8, release.Rollback: 8, release.Uninstall: 7, release.NoOperation: 0,
	} {
		if got := (Preflight{Operation: operation}).Next(7); got != want {
			t.Errorf("%s: %d, want %d", operation, got, want)
		}
	}
}
