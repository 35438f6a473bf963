package revisions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// readCopies looks for each copy that a revision reads, by its metadata.
func (h *History) readCopies(ctx context.Context) error {
	sources := map[workload.Object]workload.Object{}
	for _, r := range h.Revisions {
		for _, reading := range r.Readings() {
			if copied, has := reading.Copy(); has {
				sources[copied] = reading.Object
			}
		}
	}
	for _, copied := range slices.SortedFunc(maps.Keys(sources), workload.Object.Compare) {
		m := cluster.MetadataOf(cluster.GVKOf(copied.Kind))
		err := h.client.Get(ctx, client.ObjectKey{Namespace: copied.Namespace, Name: copied.Name}, m)
		state, err := h.copyState(copied, sources[copied], m, err)
		if err != nil {
			return err
		}
		h.Copies[copied] = state
	}
	return nil
}

// copyState judges what a read of a copy gave.
func (h *History) copyState(copied, source workload.Object, m metav1.Object, err error) (revision.Copy, error) {
	name := copied.Relative(h.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		return revision.Copy{State: revision.CopyGone, Why: name + " does not exist"}, nil
	case apierrors.IsForbidden(err):
		needs := cluster.Right{Verb: "get", Resource: cluster.Plural(cluster.GVKOf(copied.Kind)), Namespace: copied.Namespace}
		remark := needs.Missing() + ": whether their copies are there is unknown"
		if !slices.Contains(h.Remarks, remark) {
			h.Remarks = append(h.Remarks, remark)
		}
		return revision.Copy{State: revision.CopyUnknown, Why: needs.Missing()}, nil
	case err != nil:
		return revision.Copy{}, fmt.Errorf("get %s: %w", copied, err)
	case m.GetDeletionTimestamp() != nil:
		return revision.Copy{State: revision.CopyGone, Why: name + " is being deleted"}, nil
	}
	s, ok := snapshot.Read(copied.Kind, m)
	if !ok || s.Source != source {
		return revision.Copy{State: revision.CopyForeign, Why: fmt.Sprintf("%s is no copy of %s", name, source.Relative(h.Namespace))}, nil
	}
	return revision.Copy{State: revision.CopyThere, Revision: s.Revision}, nil
}

// Held is a config object as it is read: one that is applied, or a copy.
type Held struct {
	revision.Content
	// Problem is why the content is not known; "" when it is.
	Problem string

	object client.Object
}

// Annotations are those of the object; nil when it is absent or not known.
func (h Held) Annotations() map[string]string {
	if h.object == nil {
		return nil
	}
	return h.object.GetAnnotations()
}

// Immutable reports whether the API refuses a change of the object.
func (h Held) Immutable() bool { return immutable(h.object) }

// Read reads the content of a config object. Of one that is absent the content is so; one that may not be read is a
// problem, not an error.
func (h *History) Read(ctx context.Context, o workload.Object) (Held, error) {
	object := cluster.NewConfigObject(o.Kind)
	err := h.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return Held{}, nil
	case apierrors.IsForbidden(err):
		return Held{Problem: cluster.Right{Verb: "get", Resource: cluster.Plural(cluster.GVKOf(o.Kind)), Namespace: o.Namespace}.Missing()}, nil
	case err != nil:
		return Held{}, fmt.Errorf("get %s: %w", o, err)
	}
	return Held{Content: revision.ContentOf(object), object: object}, nil
}

// ReadCopy reads the copy that a reading has in place of its object. What is there must be an immutable copy of that very
// object, else there is a problem.
func (h *History) ReadCopy(ctx context.Context, r revision.Reading) (Held, error) {
	copied, has := r.Copy()
	if !has {
		return Held{}, nil
	}
	held, err := h.Read(ctx, copied)
	if err != nil || held.Problem != "" {
		return held, err
	}
	name := copied.Relative(h.Namespace)
	switch {
	case held.object == nil:
		held.Problem = name + " does not exist"
	case held.object.GetDeletionTimestamp() != nil:
		held.Problem = name + " is being deleted"
	default:
		if s, ok := snapshot.Read(copied.Kind, held.object); !ok || s.Source != r.Object || !immutable(held.object) {
			held.Problem = fmt.Sprintf("%s is no immutable copy of %s", name, r.Object.Relative(h.Namespace))
		}
	}
	return held, nil
}

func immutable(object client.Object) bool {
	var flag *bool
	switch o := object.(type) {
	case *corev1.ConfigMap:
		flag = o.Immutable
	case *corev1.Secret:
		flag = o.Immutable
	}
	return flag != nil && *flag
}
