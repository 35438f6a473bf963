package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// Why a command must be stopped.
var (
	// ErrLost says that another guard has taken the lease.
	ErrLost = errors.New("another guard has taken the lease")
	// ErrSilent says that the lease could not be renewed for two thirds of its duration.
	ErrSilent = errors.New("the lease could not be renewed for two thirds of its duration")
)

// Hold is a lease that was taken.
type Hold struct {
	keeper Keeper
	deploy Deploy
	// former is the Lease as it was before; nil where there was none.
	former *coordinationv1.Lease

	mu      sync.Mutex
	lease   *coordinationv1.Lease
	renewed time.Time // when the last write that went through was begun
	owed    []*note   // what is not known to be written
}

// note is something that a guard notes on its lease; noting it again changes nothing.
type note struct{ put func(*coordinationv1.Lease) }

// Started notes that the command starts, at this time by the API server's clock, and which revision it writes; 0 where that is
// not known. What cannot be noted now comes with the next write.
func (h *Hold) Started(ctx context.Context, revision int64) error {
	began := text(h.keeper.Server())
	return h.note(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[v1.AnnotationDeployBegan] = began
		if revision > 0 {
			l.Annotations[v1.AnnotationDeployRevision] = strconv.FormatInt(revision, 10)
		}
	})
}

// Signalled notes the first signal that the guard got. What cannot be noted now comes with the next write.
func (h *Hold) Signalled(ctx context.Context, signal string) error {
	signal += " " + text(h.keeper.Clock.Now())
	return h.note(ctx, func(l *coordinationv1.Lease) {
		if l.Annotations[v1.AnnotationDeploySignal] == "" {
			l.Annotations[v1.AnnotationDeploySignal] = signal
		}
	})
}

// note writes a note, or leaves it to the next write: a heartbeat, or the end.
func (h *Hold) note(ctx context.Context, put func(*coordinationv1.Lease)) error {
	h.mu.Lock()
	h.owed = append(h.owed, &note{put})
	h.mu.Unlock()
	return h.write(ctx, func(*coordinationv1.Lease) {})
}

// Finish notes that the command has ended. Nothing is written with the lease afterwards.
func (h *Hold) Finish(ctx context.Context, outcome release.Outcome) error {
	return h.write(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[v1.AnnotationDeployEnded] = text(outcome.Time)
		l.Annotations[v1.AnnotationDeployExitStatus] = strconv.Itoa(outcome.ExitStatus)
		if outcome.Stopped != "" {
			l.Annotations[v1.AnnotationDeployStopped] = string(outcome.Stopped)
		}
	})
}

// GiveBack ends a deploy whose command was not started. What the lease said of a deploy before is evidence of that one, ended or
// not, and stands again: what it left pending may still be pending, and its starter not told. That this guard writes it is no sign of
// life of that deploy, so the Lease says when that one wrote it last.
func (h *Hold) GiveBack(ctx context.Context, outcome release.Outcome) error {
	if h.former == nil {
		return h.Finish(ctx, outcome)
	}
	return h.write(ctx, func(l *coordinationv1.Lease) {
		l.Labels, l.Annotations, l.Spec = h.former.Labels, maps.Clone(h.former.Annotations), h.former.Spec
		at := helmrecord.Written(h.former)
		if _, before := l.Annotations[v1.AnnotationDeployWritten]; !before && !at.IsZero() {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, v1.AnnotationDeployWritten, text(at))
		}
	})
}

// Keep renews the lease, with one write for each heartbeat, until the context ends; then it returns nil. Otherwise it returns
// [ErrLost] or [ErrSilent], and the command has to end before [Hold.Left] is over.
func (h *Hold) Keep(ctx context.Context) error {
	beat := h.deploy.Duration / 6
	ticker := h.keeper.Clock.NewTicker(beat / 6)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		age, wall := h.age()
		switch {
		case age >= h.limit():
			return ErrSilent
		case max(age, wall) < beat:
			continue
		}
		err := h.renew(ctx, beat/2)
		switch {
		case errors.Is(err, ErrLost):
			return err
		case err != nil && wall >= h.limit():
			return ErrSilent // the machine slept, and nobody knows for how long the lease has been out
		}
	}
}

// Left is how much of the time is left in which the command may run without a renewal.
func (h *Hold) Left() time.Duration {
	steady, wall := h.age()
	return left(h.deploy.Duration, steady, wall)
}

// left goes by the older of the two ages of the last renewal: to others the lease ran out while the machine slept.
func left(lease, steady, wall time.Duration) time.Duration {
	return max(0, lease*5/6-max(steady, wall))
}

func (h *Hold) limit() time.Duration { return h.deploy.Duration * 2 / 3 }

// age is how long ago the last renewal was: by a clock that nobody sets, but which stands still while the machine sleeps, and by
// that on the wall.
func (h *Hold) age() (steady, wall time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.keeper.Clock.Now()
	return now.Sub(h.renewed), now.Round(0).Sub(h.renewed.Round(0))
}

func (h *Hold) renew(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.write(ctx, func(*coordinationv1.Lease) {})
}

// attempts bounds how often a write is tried that others, such as a person with kubectl, come in between of.
const attempts = 5

// write writes the Lease, which renews it. It is the whole object, with its resourceVersion: that the lease was lost in between
// must not go unseen.
func (h *Hold) write(ctx context.Context, change func(*coordinationv1.Lease)) error {
	var err error
	for range attempts {
		l, began, notes := h.next(change)
		err = h.keeper.Client.Update(ctx, l)
		if apierrors.IsNotFound(err) { // somebody cleaned up
			l.UID, l.ResourceVersion = "", ""
			err = h.keeper.Client.Create(ctx, l)
		}
		switch {
		case err == nil:
			h.mu.Lock()
			if !began.Before(h.renewed) {
				h.lease, h.renewed = l, began
			}
			h.owed = slices.DeleteFunc(h.owed, func(n *note) bool { return slices.Contains(notes, n) })
			h.mu.Unlock()
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("renew the lease of release %s: %w", h.deploy.Release, err)
		}
		if err := h.reread(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("renew the lease of release %s: %w", h.deploy.Release, err)
}

// next is the Lease as it is to be written, with the notes that are in it.
func (h *Hold) next(change func(*coordinationv1.Lease)) (l *coordinationv1.Lease, began time.Time, notes []*note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, began, notes = h.lease.DeepCopy(), h.keeper.Clock.Now(), slices.Clone(h.owed)
	l.Spec.RenewTime = &metav1.MicroTime{Time: began}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	delete(l.Annotations, v1.AnnotationDeployWritten) // this is the deploy itself
	for _, n := range notes {
		n.put(l)
	}
	change(l)
	return l, began, notes
}

// reread reads the Lease after a conflict, and finds out whether it is still this deploy's.
func (h *Hold) reread(ctx context.Context) error {
	current, err := h.keeper.get(ctx, h.deploy)
	switch {
	case err != nil:
		return err
	case current == nil:
		return nil
	case current.Labels[v1.LabelDeploy] != h.deploy.ID:
		return ErrLost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease = current
	return nil
}

// While does something else with the lease than running the command. It is told to end when the lease cannot be kept, which is the
// error then.
func (h *Hold) While(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := h.Keep(ctx); err != nil {
			cancel(err)
		}
	}()
	err := do(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, ErrLost) || errors.Is(cause, ErrSilent) {
		return cause
	}
	return err
}
