package guard

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// Preflight finds out what a release is in before a command is run on it.
type Preflight struct {
	Client client.Reader
	// Now is the API server's clock.
	Now     func() time.Time
	Release types.NamespacedName
	// Before is what the lease was before this guard took it; nil where none could be had, and the Lease that is there counts.
	Before *Before
	// Operation of the command; [release.NoOperation] where it is not known.
	Operation release.Operation
	// Policy says what may be done about what an earlier deploy left.
	Policy release.Policy
	// UnguardedAfter is the age from which an operation without a lease counts as abandoned; 0 for never.
	UnguardedAfter time.Duration
}

// Finding is what a preflight found.
type Finding struct {
	Verdict release.Verdict
	// Plan is what to do about it before the command is run; it may be nothing.
	Plan release.Plan
	// Revision that the command writes; 0 where nothing tells.
	Revision int64
	// Refusal is why the command must not be run as things are; "" when it may.
	Refusal string
	// Remarks are for people.
	Remarks []string
}

// Look reads the release's records and judges them by what its lease said before.
func (p Preflight) Look(ctx context.Context) (Finding, error) {
	sight, err := helm.Survey{Client: p.Client, Now: p.Now, Namespace: p.Release.Namespace, Name: p.Release.Name}.Find(ctx)
	if err != nil {
		return Finding{}, err
	}
	if len(sight.Releases) == 0 {
		return Finding{Revision: p.next(release.Verdict{}), Remarks: sight.Remarks}, nil
	}
	in := sight.Releases[0].Input
	if p.Before != nil {
		in.Lease, in.LeaseProblem = p.Before.Lease, p.Before.Problem
	}
	f := p.judge(in)
	f.Remarks = append(sight.Remarks, f.Remarks...)
	return f, nil
}

// judge decides whether the command may be run, and what is to be done before.
func (p Preflight) judge(in release.Input) Finding {
	v := release.Judge(in)
	f := Finding{Verdict: v, Revision: p.next(v)}
	if v.Operation == release.NoOperation {
		if v.State != release.Healthy {
			f.Remarks = append(f.Remarks, fmt.Sprintf("release %s is %s: %s", p.Release, v.State, v.Reason))
		}
		return f
	}
	f.Plan = release.Decide(v, release.Request{Now: in.Now, Actor: release.ByPreflight, Policy: p.Policy, UnguardedAfter: p.UnguardedAfter})
	said := fmt.Sprintf("release %s is %s since %s, and that is %s: %s",
		p.Release, v.Newest.Status, v.Since.UTC().Format(time.RFC3339), v.State, f.Plan.Why)
	switch {
	case f.Plan.Action.Writes(), p.mends(v):
		f.Remarks = append(f.Remarks, said)
	default:
		f.Refusal = said
	}
	return f
}

// mends reports whether the command is itself what a person does about an operation that nobody is at work on any more.
func (p Preflight) mends(v release.Verdict) bool {
	byHand := p.Operation == release.Rollback || p.Operation == release.Uninstall
	return v.State == release.Abandoned && byHand ||
		v.State == release.Unguarded && v.Operation == release.Uninstall && p.Operation == release.Uninstall
}

// next is the number that Helm gives to the revision that the command writes. To uninstall, it writes to the newest.
func (p Preflight) next(v release.Verdict) int64 {
	switch p.Operation {
	case release.Install, release.Upgrade, release.Rollback:
		return v.Newest.Number + 1
	case release.Uninstall:
		return v.Newest.Number
	case release.NoOperation:
	}
	return 0
}
