package cli

import (
	"context"
	"fmt"

	"tidemark.dev/tidemark/internal/guard"
	"tidemark.dev/tidemark/internal/release"
)

// recover refuses what it cannot do yet, naming what a person can.
func (o *guardOptions) recover(_ context.Context, _ *guard.Run, d guard.Deploy, f guard.Finding) error {
	remedy := fmt.Sprintf("helm rollback %s %d -n %s", d.Release.Name, f.Verdict.Good, d.Release.Namespace)
	if f.Plan.Action == release.DoUninstall || f.Verdict.Good == 0 {
		remedy = fmt.Sprintf("helm uninstall %s -n %s", d.Release.Name, d.Release.Namespace)
	}
	return fmt.Errorf("release %s needs a %s, which the guard does not do by itself yet: run %q first", d.Release, f.Plan.Action, remedy)
}
