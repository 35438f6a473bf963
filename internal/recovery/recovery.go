// Package recovery brings a Helm release whose operation cannot come back to where Helm accepts the next one.
//
// [Observe] looks at the release until it is as certain as it can be; [Run] decides by internal/release, looks once more, and acts
// only on exactly what was decided on.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// DefaultTimeout is that of Helm's own command line.
const DefaultTimeout = 5 * time.Minute

// ErrNotFound says that there is no record of the release.
var ErrNotFound = errors.New("no record of the release is there")

// Clients are what a recovery reads and writes through, with the rights of whoever they belong to.
type Clients struct {
	// API reads and writes without a cache.
	API client.Client
	// Getter leads Helm's SDK to the same cluster, with the release's namespace as its own. Only rollback and uninstall use it.
	Getter genericclioptions.RESTClientGetter
	// Records is the kind of object in which Helm keeps the records, "Secret" or "ConfigMap"; "" where that is not known.
	Records string
	// Now is the API server's clock.
	Now func() time.Time
	// Clock is this process's own. What a guard has not said for a while is measured by it alone.
	Clock clock.Clock
}

// Request says what may be done.
type Request struct {
	// Request is who would act, and how far they may go. Its Now and Foreign are filled in from what was seen.
	release.Request
	// DryRun decides and changes nothing.
	DryRun bool
	// NoHooks leaves out the hooks of a rollback or an uninstall.
	NoHooks bool
	// Wait waits until what was rolled back is ready.
	Wait bool
	// Timeout bounds each single step of a rollback or an uninstall, as Helm's own does. Default 5m.
	Timeout time.Duration
	// HistoryMax is how many revisions a rollback leaves, 0 or less for all. Helm does not record it for a release; it is an option
	// of whoever runs Helm.
	HistoryMax int
}

// Result is what was decided and done.
type Result struct {
	Verdict release.Verdict
	// Plan is what was decided; its Why is a sentence for people.
	Plan release.Plan
	// Done says that the plan was carried out.
	Done bool
}

// Run decides what the request allows about a release as it was seen, and does it. A plan that changes nothing is not an error:
// Done is false then. Before anything is written, the release is read again: when its newest revision or its lease is not what was
// seen, or the decision would be another, nothing is written and the error is [helm.ErrChanged].
func Run(ctx context.Context, c Clients, seen *Seen, q Request) (Result, error) {
	out := decide(seen.Release, q)
	if !out.Plan.Action.Writes() || q.DryRun {
		return out, nil
	}
	again, err := find(ctx, c, seen.Namespace, seen.Name, seen.before)
	if err != nil {
		return out, err
	}
	if err := sameAs(seen, again, c.Clock.Now()); err != nil {
		return out, fmt.Errorf("release %s in namespace %s: %w", seen.Name, seen.Namespace, err)
	}
	if now := decide(again.Release, q); now.Plan.Action != out.Plan.Action || now.Plan.To != out.Plan.To {
		return now, fmt.Errorf("release %s in namespace %s: %w: %s", seen.Name, seen.Namespace, helm.ErrChanged, now.Plan.Why)
	}
	if err := c.act(ctx, seen, out, q); err != nil {
		return out, err
	}
	out.Done = true
	return out, nil
}

// Decide says what Run would do about the release as it was seen.
func Decide(seen *Seen, q Request) Result { return decide(seen.Release, q) }

func decide(r helm.Release, q Request) Result {
	q.Now, q.Foreign = r.Now, r.Foreign
	v := release.Judge(r.Input)
	return Result{Verdict: v, Plan: release.Decide(v, q.Request)}
}

// sameAs is an error when the newest revision or the lease is not the one that was seen. What was observed of the lease goes over
// to the newer look. Who has taken the lease keeps it, and what it was before does not change.
func sameAs(seen *Seen, again *Seen, now time.Time) error {
	before, after := release.Judge(seen.Input).Newest, release.Judge(again.Input).Newest
	if before.Record != after.Record || before.Kind != after.Kind || before.ResourceVersion != after.ResourceVersion {
		return fmt.Errorf("revision %d: %w", before.Number, helm.ErrChanged)
	}
	switch {
	case seen.before != nil:
	case seen.Lease == nil && again.Lease == nil:
	case seen.Lease == nil || again.Lease == nil || seen.Lease.ResourceVersion != again.Lease.ResourceVersion:
		return fmt.Errorf("the lease of its guard: %w", helm.ErrChanged)
	default:
		again.Lease.Unchanged = seen.Lease.Unchanged + now.Sub(seen.at)
	}
	return nil
}

// act carries out a plan. The pending revision is marked failed first, whatever follows: only one of several that try can do so,
// and no revision is left pending below the newer one.
func (c Clients) act(ctx context.Context, seen *Seen, r Result, q Request) error {
	if err := helm.MarkFailed(ctx, c.API, seen.Namespace, r.Verdict.Newest, helm.Mark{Description: helm.LeftByItsProcess}); err != nil {
		return err
	}
	switch r.Plan.Action {
	case release.DoRollback:
		return c.rollback(ctx, seen, r, q)
	case release.DoUninstall:
		return c.uninstall(ctx, seen, r, q)
	case release.DoForward, release.DoNothing, release.DoReport:
	}
	return nil
}

func (q Request) timeout() (out time.Duration) {
	if out = q.Timeout; out <= 0 {
		out = DefaultTimeout
	}
	return out
}
