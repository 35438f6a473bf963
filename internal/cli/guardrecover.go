package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/guard"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/helmline"
	"tidemark.dev/tidemark/internal/recovery"
	"tidemark.dev/tidemark/internal/release"
)

// preflight looks at the release, recovers it where that is called for, and finds out which revision the command writes. before is
// what the lease was before this guard took it; nil where it could not be taken.
func (o *guardOptions) preflight(ctx context.Context, r *guard.Run, d guard.Deploy, c *cluster.Connection, before *helm.Before) error {
	driver := helmline.DriverOf(o.getenv)
	if o.helm != nil {
		driver = o.helm.Driver
	}
	if driver == helmline.SQL {
		o.remark("helm keeps its records in a database, so whether the release is pending is not looked at")
		return nil
	}
	p := guard.Preflight{Release: d.Release, Operation: o.operation()}
	clients := recovery.Clients{API: c.Client, Getter: o.clusterFlags(), Records: "Secret", Now: c.Now, Clock: o.Clock}
	if driver == helmline.ConfigMaps {
		clients.Records = "ConfigMap"
	}
	seen, err := o.see(ctx, clients, d, before)
	switch {
	case errors.Is(err, recovery.ErrNotFound):
		r.Revision = p.Next(0)
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil && evident(before):
		return fmt.Errorf("whether release %s is pending is not known (%w), and only the lease tells of the deploy before, which may have left it so: the command is not run", d.Release, err)
	case err != nil:
		o.remark(fmt.Sprintf("whether release %s is pending is not known: %v", d.Release, err))
		return nil
	}
	for _, text := range seen.Remarks {
		o.remark(text)
	}
	request := o.request()
	decided := recovery.Decide(seen, request)
	p.Verdict, p.Plan = decided.Verdict, decided.Plan
	if !p.MayRun() {
		return fmt.Errorf("%s: the command is not run", p.Remark())
	}
	if text := p.Remark(); text != "" {
		o.remark(text)
	}
	newest := p.Verdict.Newest.Number
	if p.Plan.Action.Writes() {
		if newest, err = o.recover(ctx, clients, seen, request, p); err != nil {
			return err
		}
	}
	r.Revision = p.Next(newest)
	return nil
}

// evident reports whether the lease, before this guard took it, told of a deploy that may have left its release pending: of its death
// there is no other evidence, and the end of another command would replace it.
func evident(before *helm.Before) bool {
	switch {
	case before == nil:
		return false
	case before.Lease == nil:
		return before.Problem != ""
	case before.Lease.Finished == nil:
		return true
	}
	return before.Lease.Finished.ExitStatus != 0 && !before.Lease.Began.IsZero()
}

// request is what the preflight may do about the release, with the limits that the guarded helm has.
func (o *guardOptions) request() recovery.Request {
	q := recovery.Request{
		Request:    release.Request{Actor: release.ByPreflight, Policy: o.policy, UnguardedAfter: o.flags.recoverUnguarded},
		HistoryMax: helmline.HistoryMax(o.getenv),
	}
	if o.helm != nil {
		q.Timeout, q.HistoryMax = o.helm.Timeout, o.helm.HistoryMax
	}
	return q
}

// see looks at the release. Without a lease of its own it watches that of another guard, as anybody would.
func (o *guardOptions) see(ctx context.Context, clients recovery.Clients, d guard.Deploy, before *helm.Before) (*recovery.Seen, error) {
	if before != nil {
		return recovery.Look(ctx, clients, d.Release.Namespace, d.Release.Name, *before)
	}
	return recovery.Observe(ctx, clients, d.Release.Namespace, d.Release.Name, func(left time.Duration) {
		o.remark(fmt.Sprintf("watching the lease of release %s for %s, to be certain whether its guard lives", d.Release, left.Round(time.Second)))
	})
}

// recover recovers the release, and gives the number of its newest revision then.
func (o *guardOptions) recover(
	ctx context.Context, clients recovery.Clients, seen *recovery.Seen, q recovery.Request, p guard.Preflight,
) (int64, error) {
	if _, err := recovery.Run(ctx, clients, seen, q); err != nil {
		return 0, fmt.Errorf("recover release %s by a %s: %w: the command is not run", p.Release, p.Plan.Action, err)
	}
	o.remark(fmt.Sprintf("release %s is recovered: %s", p.Release, recovered(p)))
	again, err := recovery.Look(ctx, clients, p.Release.Namespace, p.Release.Name, helm.Before{})
	switch {
	case errors.Is(err, recovery.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return release.Judge(again.Input).Newest.Number, nil
}

// recovered says what was done.
func recovered(p guard.Preflight) string {
	switch p.Plan.Action {
	case release.DoForward:
		return fmt.Sprintf("revision %d is marked failed, and no workload was touched", p.Plan.To)
	case release.DoRollback:
		return fmt.Sprintf("it is rolled back to revision %d", p.Plan.To)
	case release.DoUninstall:
		return "its first install is uninstalled"
	case release.DoNothing, release.DoReport:
	}
	return "nothing was done"
}
