package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// ErrSnapshotGone says that the template must keep a pin whose snapshot is not there any more, and no object has its content.
var ErrSnapshotGone = errors.New("the copy that its pods are to read is gone: restore it, or apply a change of the object, which pins the workload to that")

// ErrUnsettled says that what was copied changed each time before the decision could be made on it.
var ErrUnsettled = errors.New("its configuration changes faster than it can be copied; trying again")

// Revisions gives the number that the next snapshot of a config object gets.
type Revisions func(context.Context, workload.Object) (int64, error)

// Pin makes the snapshots that a decision asks for, and returns the decision with their names. What is copied is read from the
// API; where that is not what was decided on, it is decided again, so that the decision returned may be another one, also
// to write nothing. Every snapshot that a returned stamp names was there when this returned; those of a template that stays as it
// is are made again where that can be, as by [Copier.Restore].
func (c *Copier) Pin(ctx context.Context, state stamp.State, d stamp.Decision, next Revisions, now time.Time) (stamp.Decision, error) {
	return c.pin(ctx, state, d, map[workload.Object]Source{}, next, now)
}

// pin is Pin that does not read again what is among the sources already.
func (c *Copier) pin(
	ctx context.Context, state stamp.State, d stamp.Decision, sources map[workload.Object]Source, next Revisions, now time.Time,
) (stamp.Decision, error) {
	for range attempts {
		if d.Action != stamp.WriteStamp {
			_, err := c.restore(ctx, state, sources, next, now)
			return d, err
		}
		var err error
		if d.Pins, err = c.keep(ctx, state, d.Pins); err != nil {
			return d, err
		}
		same, err := c.readInto(ctx, &state, d.ToCopy(), sources)
		if err != nil {
			return d, err
		}
		if !same {
			d = stamp.Decide(state)
			continue
		}
		names, err := c.copyAll(ctx, d.ToCopy(), sources, next, now)
		if err != nil {
			return d, err
		}
		return d.Pinned(names), nil
	}
	return d, ErrUnsettled
}

// Restore makes the snapshots again that the template of a workload in mode pin names and that somebody deleted, of objects that
// still have their content, and returns these objects. Their names are what the template has already, so nothing rolls.
func (c *Copier) Restore(ctx context.Context, state stamp.State, next Revisions, now time.Time) ([]workload.Object, error) {
	return c.restore(ctx, state, map[workload.Object]Source{}, next, now)
}

// restore is Restore that does not read again what is among the sources already.
func (c *Copier) restore(
	ctx context.Context, state stamp.State, sources map[workload.Object]Source, next Revisions, now time.Time,
) ([]workload.Object, error) {
	if state.Mode != stamp.Pin {
		return nil, nil
	}
	var gone []workload.Object
	for _, o := range state.Objects {
		name := state.Pins[o.Use.Object]
		if o.Pinned != nil || !isCopyOf(name, o.Use.Object, o.Applied) {
			continue
		}
		there, err := c.isThere(ctx, pinnedAs(o.Use.Object, name))
		if err != nil {
			return nil, err
		}
		if !there {
			gone = append(gone, o.Use.Object)
		}
	}
	same, err := c.readInto(ctx, &state, gone, sources)
	if err != nil || !same { // what changed since it was watched is decided again
		return nil, err
	}
	_, err = c.copyAll(ctx, gone, sources, next, now)
	return gone, err
}

// isCopyOf reports whether a name is that of the snapshot of an object with the content; not whether the snapshot is there.
func isCopyOf(name string, o workload.Object, content digest.Content) bool {
	return content.Present && snapshot.Name(o, content.Whole(o), 0) == name
}

// isThere reports whether a snapshot is there.
func (c *Copier) isThere(ctx context.Context, copied workload.Object) (bool, error) {
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: copied.Namespace, Name: copied.Name}, MetadataOf(GVKOf(copied.Kind)))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the snapshot %s: %w", copied.Name, err)
	}
	return true, nil
}

// readInto reads the objects, each once, and puts what it finds into the state; same says that it was there already.
func (c *Copier) readInto(ctx context.Context, state *stamp.State, objects []workload.Object, sources map[workload.Object]Source) (same bool, err error) {
	same = true
	state.Objects = slices.Clone(state.Objects)
	for _, o := range objects {
		if _, done := sources[o]; done {
			continue
		}
		source, err := c.Read(ctx, o)
		if err != nil {
			return false, err
		}
		sources[o] = source
		for i := range state.Objects {
			if state.Objects[i].Use.Object == o && !state.Objects[i].Applied.Equal(source.Content) {
				state.Objects[i].Applied, same = source.Content, false
			}
		}
	}
	return same, nil
}

func (c *Copier) copyAll(
	ctx context.Context, objects []workload.Object, sources map[workload.Object]Source, next Revisions, now time.Time,
) (map[workload.Object]string, error) {
	names := map[workload.Object]string{}
	for _, o := range objects {
		revision, err := next(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("number the snapshots of %s: %w", o, err)
		}
		if names[o], err = c.Copy(ctx, sources[o], revision, now); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// keep makes sure that the snapshots of the pins which stay are there: those of which the state does not know the content are
// looked for. One that is gone is copied again from an object that still has its content.
func (c *Copier) keep(ctx context.Context, state stamp.State, pins snapshot.Pins) (snapshot.Pins, error) {
	pins = maps.Clone(pins)
	for _, o := range state.Objects {
		name := pins[o.Use.Object]
		if name == "" || name == v1.AbsentName || o.Pinned != nil {
			continue
		}
		there, err := c.isThere(ctx, pinnedAs(o.Use.Object, name))
		switch {
		case err != nil:
			return nil, err
		case there:
		case isCopyOf(name, o.Use.Object, o.Applied):
			pins[o.Use.Object] = ""
		default:
			return nil, fmt.Errorf("%s is pinned to %s: %w", o.Use.Object, name, ErrSnapshotGone)
		}
	}
	return pins, nil
}

// NextRevision counts the snapshots of a config object in the API, for who follows none: [Revisions].
func (c *Copier) NextRevision(ctx context.Context, o workload.Object) (int64, error) {
	var highest int64
	err := EachItem(ctx, c.Client, MetadataList(GVKOf(o.Kind)), PageSize, func(m *metav1.PartialObjectMetadata) {
		if s, ok := snapshot.Read(o.Kind, m); ok && s.Source == o {
			highest = max(highest, s.Revision)
		}
	}, client.InNamespace(o.Namespace), client.MatchingLabels{v1.LabelSnapshot: v1.True})
	return highest + 1, err
}
