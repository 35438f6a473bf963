package guard

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"tidemark.dev/tidemark/internal/release"
)

// Preflight is what is found out about a release before a command is run on it.
type Preflight struct {
	Release types.NamespacedName
	// Operation of the command; [release.NoOperation] where it is not known.
	Operation release.Operation
	// Verdict on the release, and Plan of what is done about it before the command is run.
	Verdict release.Verdict
	Plan    release.Plan
}

// Remark says what the release is in, where that is worth a word.
func (p Preflight) Remark() string {
	v := p.Verdict
	switch {
	case v.Operation != release.NoOperation:
		return fmt.Sprintf("release %s is %s since %s, and that is %s: %s",
			p.Release, v.Newest.Status, v.Since.UTC().Format(time.RFC3339), v.State, p.Plan.Why)
	case v.State == release.Healthy || v.State == "":
		return ""
	}
	return fmt.Sprintf("release %s is %s: %s", p.Release, v.State, v.Reason)
}

// MayRun reports whether the command may be run on the release as it is, or as it is after the plan.
func (p Preflight) MayRun() bool {
	return p.Verdict.Operation == release.NoOperation || p.Plan.Action.Writes() || p.mends()
}

// mends reports whether the command is itself what a person does about an operation that nobody is at work on any more.
func (p Preflight) mends() bool {
	byHand := p.Operation == release.Rollback || p.Operation == release.Uninstall
	return p.Verdict.State == release.Abandoned && byHand ||
		p.Verdict.State == release.Unguarded && p.Verdict.Operation == release.Uninstall && p.Operation == release.Uninstall
}

// Next is the number that Helm gives to the revision that the command writes, where newest is the highest there is; 0 where
// nothing tells. To uninstall, it writes to the newest.
func (p Preflight) Next(newest int64) int64 {
	switch p.Operation {
	case release.Install, release.Upgrade, release.Rollback:
		return newest + 1
	case release.Uninstall:
		return newest
	case release.NoOperation:
	}
	return 0
}
