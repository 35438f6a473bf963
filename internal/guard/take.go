package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// Keeper takes the leases of deploys.
type Keeper struct {
	Client client.Client
	// Clock is this machine's. What is concluded from the silence of another guard is by this clock alone.
	Clock clock.WithTicker
	// Server is the API server's clock.
	Server func() time.Time
	// Say tells a person what is waited for.
	Say func(text string)
}

// HeldError says that another guard is at work on the release.
type HeldError struct {
	Deploy Deploy
	Before helm.Before
	Now    time.Time
}

// Error names who is at work since when, and what to do.
func (e *HeldError) Error() string {
	l := e.Before.Lease
	if l == nil {
		return fmt.Sprintf("release %s is being deployed: %s", e.Deploy.Release, e.Before.Problem)
	}
	text := fmt.Sprintf("release %s is being deployed by %s", e.Deploy.Release, Who(l))
	if !l.Began.IsZero() {
		text += " since " + l.Began.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, with a sign of life %s ago: wait for its end with --wait-for-lock", text, l.Unchanged.Round(time.Second))
}

// Who is who a lease says is at work, for people.
func Who(l *release.Lease) string {
	var places []string
	for _, p := range []string{l.Holder, l.Job} {
		if p != "" {
			places = append(places, p)
		}
	}
	who, where := l.Starter, strings.Join(places, ", ")
	switch {
	case who == "" && where == "":
		return "somebody"
	case who == "":
		return where
	case where == "":
		return who
	}
	return who + " (" + where + ")"
}

const defaultDuration = 180 * time.Second

// observation is what was seen of a Lease, by this machine's clock.
type observation struct {
	version string
	since   time.Time
}

// Take takes the lease of the deploy's release. The lease of a guard that gives no sign of life is watched for its whole
// duration first. One that lives is waited for, for so long; then, or when wait is 0, the error is a [HeldError].
func (k Keeper) Take(ctx context.Context, d Deploy, wait time.Duration) (*Hold, helm.Before, error) {
	began, said := k.Clock.Now(), ""
	var seen observation
	var held *HeldError
	for {
		current, err := k.get(ctx, d)
		if err != nil {
			if err := k.unread(ctx, held, began, wait, err); err != nil {
				return nil, helm.Before{}, err
			}
			continue
		}
		now := k.Clock.Now()
		before, free := k.judge(current, &seen, now)
		if free {
			h, err := k.write(ctx, d, current)
			if err == nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				return h, before, err
			}
			continue // somebody else was faster
		}
		held = &HeldError{d, before, k.Server()}
		if alive(before) && now.Sub(began) >= wait {
			return nil, before, held
		}
		if text := waitingFor(held); text != said {
			said = text
			k.Say(text)
		}
		if err := k.pause(ctx, before); err != nil {
			return nil, before, err
		}
	}
}

// unread waits for the next look where a read failed, or gives the error that ends the wait: whoever was seen at work is not gone because
// of it.
func (k Keeper) unread(ctx context.Context, held *HeldError, began time.Time, wait time.Duration, failure error) error {
	switch {
	case held == nil || ctx.Err() != nil:
		return failure
	case k.Clock.Since(began) >= max(wait, durationOf(held.Before)):
		return held
	}
	return k.pause(ctx, held.Before)
}

func (k Keeper) get(ctx context.Context, d Deploy) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: d.Release.Namespace, Name: v1.DeployLeasePrefix + d.Release.Name}, l)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer, and no error
	case err != nil:
		return nil, fmt.Errorf("get the lease of release %s: %w", d.Release, err)
	}
	return l, nil
}

// judge reports whether the Lease may be taken: none is there, its guard said that it ended, or it was seen unchanged for its
// whole duration.
func (k Keeper) judge(l *coordinationv1.Lease, seen *observation, now time.Time) (helm.Before, bool) {
	if l == nil {
		return helm.Before{}, true
	}
	if seen.version != l.ResourceVersion {
		*seen = observation{l.ResourceVersion, now}
	}
	quiet := now.Sub(seen.since)
	lease, err := helm.DecodeLease(l, k.Server())
	if err != nil {
		return helm.Before{Problem: err.Error()}, quiet >= defaultDuration
	}
	lease.Unchanged = max(lease.Unchanged, quiet)
	free := lease.Finished != nil || quiet >= lease.Duration
	if !free && lease.Unchanged >= lease.Duration {
		return helm.Before{Lease: lease}, false
	}
	if free {
		lease.Unchanged = quiet // what follows is concluded from this machine's clock alone
	}
	return helm.Before{Lease: lease}, free
}

// alive reports whether a guard has given a sign of life within its lease, by the API server's clock. It is good for telling a
// person at once; to take the lease, silence is observed.
func alive(b helm.Before) bool { return b.Lease != nil && b.Lease.Unchanged < b.Lease.Duration }

func waitingFor(held *HeldError) string {
	b := held.Before
	switch {
	case alive(b):
		return fmt.Sprintf("release %s is being deployed by %s: waiting for its end", held.Deploy.Release, Who(b.Lease))
	case b.Lease != nil:
		return fmt.Sprintf("the guard of %s, which deployed release %s, gives no sign of life: watching its lease for %s to be certain",
			Who(b.Lease), held.Deploy.Release, b.Lease.Duration)
	}
	return fmt.Sprintf("the lease of release %s cannot be read (%s): watching it for %s", held.Deploy.Release, b.Problem, defaultDuration)
}

// durationOf is that of the lease; the default one where it cannot be read.
func durationOf(b helm.Before) time.Duration {
	if b.Lease == nil {
		return defaultDuration
	}
	return b.Lease.Duration
}

// pause waits for the next look at a Lease.
func (k Keeper) pause(ctx context.Context, b helm.Before) error {
	timer := k.Clock.NewTimer(min(durationOf(b)/10, 5*time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// write takes the Lease over as it was seen, or makes it.
func (k Keeper) write(ctx context.Context, d Deploy, former *coordinationv1.Lease) (*Hold, error) {
	now := k.Clock.Now()
	l := d.lease(former, now, k.Server())
	var err error
	if former == nil {
		err = k.Client.Create(ctx, l)
	} else {
		// The whole object, with its resourceVersion: a Lease is its guard's alone, and two that saw it free must not both have it.
		err = k.Client.Update(ctx, l)
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease of release %s: %w", d.Release, err)
	}
	return &Hold{keeper: k, deploy: d, former: former, lease: l, renewed: now}, nil
}

// IsOut reports whether an error of [Keeper.Take] says that no lease can be had: the right is missing, or the API does not answer.
func IsOut(err error) bool {
	var held *HeldError
	return err != nil && !errors.As(err, &held) && !errors.Is(err, context.Canceled)
}
