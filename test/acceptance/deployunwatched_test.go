package acceptance

import (
	"fmt"
	"slices"
	"testing"
)

// TestReleasesAreNotWatchedWhereThatIsSwitchedOff has one release left pending, of which one controller tells and another does not.
func TestReleasesAreNotWatchedWhereThatIsSwitchedOff(t *testing.T) {
	v := alone(t)
	d := deployOn(v, "deploy-unwatched")
	c, err := d.Lab.HelmCommand(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--wait", "--set", "release=2,bootDelay=1h")
	d.must(err)
	d.must(d.CutOff(t.Context(), c))
	for _, watched := range []bool{true, false} {
		d.controller = v.control(slices.Concat(pendingFlags, []string{fmt.Sprintf("--watch-releases=%t", watched)})...)
		if watched {
			d.pendingIs("unguarded")
		}
		if _, shown, err := d.controller.Metric(t.Context(), "tidemark_release_errors_total"); err != nil || shown != watched {
			t.Errorf("--watch-releases=%t: metrics of releases are shown: %t, %v", watched, shown, err)
		}
		d.must(d.controller.Stop())
	}
}
