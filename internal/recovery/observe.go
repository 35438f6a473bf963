package recovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// Seen is a release as it was observed.
type Seen struct {
	helm.Release
	// Remarks say what could not be told.
	Remarks []string
	// at is when, by the observer's own clock.
	at time.Time
	// before is what its lease was before the observer took it; nil where the observer has not.
	before *helm.Before
}

// Look looks at a release whose lease the caller has taken, with what that was before: the caller has observed its silence. The
// error is [ErrNotFound] when there is no record.
func Look(ctx context.Context, c Clients, namespace, name string, before helm.Before) (*Seen, error) {
	return find(ctx, c, namespace, name, &before)
}

// looks is into how many parts the duration of a lease is divided when it is watched.
const looks = 12

// Observe looks at a release. Where it depends on whether a guard gives signs of life, it watches the guard's lease, for its whole
// duration (3m by default) unless a sign comes before; tell is called once then, to say how long it may take. The error is
// [ErrNotFound] when there is no record.
func Observe(ctx context.Context, c Clients, namespace, name string, tell func(time.Duration)) (*Seen, error) {
	seen, err := find(ctx, c, namespace, name, nil)
	if err != nil {
		return nil, err
	}
	first, told := seen, false
	for {
		if seen.Lease == nil || seen.Lease.Finished != nil {
			return seen, nil
		}
		seen.Lease.Unchanged = seen.at.Sub(first.at)
		left := seen.Lease.Duration - seen.Lease.Unchanged
		if changed(first, seen) || left <= 0 || !silenceMatters(seen.Release) {
			return seen, nil
		}
		if tell != nil && !told {
			tell(left)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.Clock.After(min(left, seen.Lease.Duration/looks)):
		}
		if seen, err = find(ctx, c, namespace, name, nil); err != nil {
			return nil, err
		}
	}
}

// changed reports whether the lease was written, or another took its place.
func changed(first, seen *Seen) bool {
	return first.Lease == nil || first.Lease.ResourceVersion != seen.Lease.ResourceVersion
}

// silenceMatters reports whether the release would be taken for abandoned if its guard stayed silent.
func silenceMatters(r helm.Release) bool {
	silent := *r.Lease
	silent.Unchanged = silent.Duration
	r.Lease = &silent
	// The guard's own timeout may pass while it is watched.
	r.Now = r.Now.Add(silent.Duration)
	return release.Judge(r.Input).State == release.Abandoned
}

// find reads one release, with what its lease was before where the caller has taken that.
func find(ctx context.Context, c Clients, namespace, name string, before *helm.Before) (*Seen, error) {
	sight, err := helm.Survey{Client: c.API, Now: c.Now, Namespace: namespace, Name: name, Before: before}.Find(ctx)
	if err != nil {
		return nil, err
	}
	if len(sight.Releases) == 0 {
		if unseen := slices.DeleteFunc(sight.Refused, func(kind string) bool { return c.Records != "" && kind != c.Records }); len(unseen) > 0 {
			return nil, fmt.Errorf("missing the right to list %ss in namespace %s, among which the records of release %s may be; grant it with a Role",
				strings.ToLower(unseen[0]), namespace, name)
		}
		return nil, fmt.Errorf("release %s in namespace %s: %w", name, namespace, ErrNotFound)
	}
	return &Seen{Release: sight.Releases[0], Remarks: sight.Remarks, at: c.Clock.Now(), before: before}, nil
}
