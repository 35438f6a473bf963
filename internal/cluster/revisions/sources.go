package revisions

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/workload"
)

// SourceChange is the content of a copy that is to go back into the object that it was made of.
type SourceChange struct {
	Object workload.Object
	// Copy is the name of the copy.
	Copy string
	// Keys that change.
	Keys []revision.KeyChange
	// Manager is the program that writes the object by itself, as far as its metadata tells; "" when none is known.
	Manager string

	source, copied Held
}

// SourceChanges lists what to write so that what is applied is what the pods of a revision read, of each object that it
// pins. What cannot be written is an error, so that nothing is half done; the remarks are of what is left as it is.
func (h *History) SourceChanges(ctx context.Context, to revision.Revision) (changes []SourceChange, remarks []string, err error) {
	for _, reading := range to.Readings() {
		copied, has := reading.Copy()
		name := reading.Object.Relative(h.Namespace)
		if !has && !reading.Absent() {
			continue
		}
		source, err := h.Read(ctx, reading.Object)
		if err != nil {
			return nil, nil, err
		}
		if reading.Absent() {
			if source.Present {
				remarks = append(remarks, name+" was absent then, and is left as it is")
			}
			continue
		}
		c := SourceChange{Object: reading.Object, Copy: copied.Name, source: source}
		if c.copied, err = h.ReadCopy(ctx, reading); err != nil {
			return nil, nil, err
		}
		if err := c.possible(name, copied.Relative(h.Namespace)); err != nil {
			return nil, nil, err
		}
		if c.Keys = revision.Keys(source.Content, c.copied.Content); len(c.Keys) == 0 {
			continue
		}
		if immutable(source.object) {
			return nil, nil, fmt.Errorf("%s is immutable, so the content of its copy %s cannot be put back: delete it and create it anew, "+
				"or leave out --restore-source", name, copied.Name)
		}
		c.Manager = managerOf(source.object)
		changes = append(changes, c)
	}
	return changes, remarks, nil
}

// possible says why the content cannot be put back, if so.
func (c SourceChange) possible(name, copied string) error {
	switch {
	case c.copied.Problem != "":
		return fmt.Errorf("put back %s: %s", name, c.copied.Problem)
	case c.source.Problem != "":
		return fmt.Errorf("put back %s: %s", name, c.source.Problem)
	case !c.source.Present:
		return fmt.Errorf("%s does not exist, so the content of its copy %s cannot be put back: create it first, or leave out --restore-source",
			name, copied)
	case c.source.object.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted, so the content of its copy %s cannot be put back", name, copied)
	}
	return nil
}

// WriteSource puts the content of a copy back. Where somebody wrote other content meanwhile it is [ErrChanged].
func (h *History) WriteSource(ctx context.Context, c SourceChange, dryRun bool) error {
	name := c.Object.Relative(h.Namespace)
	var err error
	now := c.source
	for range attempts {
		err = patchJSON(ctx, h.client, now.object, sourceOperations(now.object, c.copied.object), dryRun)
		if !apierrors.IsConflict(err) {
			break
		}
		var again error
		if now, again = h.Read(ctx, c.Object); again != nil {
			return again
		}
		if !now.Present || len(revision.Keys(now.Content, c.source.Content)) > 0 {
			return fmt.Errorf("%s: %w", name, ErrChanged)
		}
	}
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return nil
}

// sourceOperations replace the data of one object by that of another, and nothing else of it.
func sourceOperations(source, copied client.Object) []operation {
	ops := []operation{{"replace", "/metadata/resourceVersion", source.GetResourceVersion()}}
	switch from := copied.(type) {
	case *corev1.ConfigMap:
		into, _ := source.(*corev1.ConfigMap)
		ops = append(ops, replaceMap("/data", len(into.Data), from.Data, len(from.Data))...)
		ops = append(ops, replaceMap("/binaryData", len(into.BinaryData), from.BinaryData, len(from.BinaryData))...)
	case *corev1.Secret:
		into, _ := source.(*corev1.Secret)
		ops = append(ops, replaceMap("/data", len(into.Data), from.Data, len(from.Data))...)
	}
	return ops
}

func replaceMap(path string, have int, value any, want int) []operation {
	switch {
	case want > 0:
		return []operation{{"add", path, value}}
	case have > 0:
		return []operation{{Op: "remove", Path: path}}
	}
	return nil
}

// managerOf names the program that an object's labels and annotations say manages it.
func managerOf(m metav1.Object) string {
	labels, annotations := m.GetLabels(), m.GetAnnotations()
	switch {
	case annotations["argocd.argoproj.io/tracking-id"] != "" || labels["argocd.argoproj.io/instance"] != "":
		return "Argo CD"
	case labels["kustomize.toolkit.fluxcd.io/name"] != "" || labels["helm.toolkit.fluxcd.io/name"] != "":
		return "Flux"
	case labels["app.kubernetes.io/managed-by"] == "Helm":
		return "Helm"
	}
	return ""
}
