package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// Stop is what a pause is put on, or taken from: a workload, or a namespace, which Tidemark's own stands for everything.
type Stop struct {
	GVK             schema.GroupVersionKind
	Namespace, Name string
}

// StopNamespace is the pause of a namespace.
func StopNamespace(name string) Stop { return Stop{GVK: NamespaceKind, Name: name} }

// StopWorkload is the pause of one workload.
func StopWorkload(t Target) Stop {
	return Stop{GVK: t.Kind.GroupVersionKind, Namespace: t.Namespace, Name: t.Name}
}

// Pausing is what became of a pause or resume.
type Pausing struct {
	// Changed says that something was written; a pause that is there already is left as it is.
	Changed bool
	// By says who paused, as it stands on the object: before a resume, after a pause.
	By string
}

// Pause stops every write of Tidemark to what the stop names, with who, when and why noted beside.
func Pause(ctx context.Context, c client.Client, s Stop, by string, dryRun bool) (Pausing, error) {
	m, err := s.get(ctx, c)
	if err != nil {
		return Pausing{}, err
	}
	if s.paused(m) {
		return Pausing{By: m.Annotations[v1.AnnotationPausedBy]}, nil
	}
	on := v1.True
	err = s.patch(ctx, c, m, map[string]*string{v1.AnnotationPaused: &on, v1.AnnotationPausedBy: &by}, &on, dryRun)
	return Pausing{Changed: true, By: by}, err
}

// Resume takes a pause away.
func Resume(ctx context.Context, c client.Client, s Stop, dryRun bool) (Pausing, error) {
	m, err := s.get(ctx, c)
	if err != nil {
		return Pausing{}, err
	}
	if !s.marked(m) {
		return Pausing{}, nil
	}
	err = s.patch(ctx, c, m, map[string]*string{v1.AnnotationPaused: nil, v1.AnnotationPausedBy: nil}, nil, dryRun)
	return Pausing{Changed: true, By: m.Annotations[v1.AnnotationPausedBy]}, err
}

// Above reads which pauses that are wider than the stop are in force for what it names: that of its namespace, and that of
// everything, by Tidemark's own namespace. The values say by whom.
func (s Stop) Above(ctx context.Context, c client.Reader, system string) (map[Stop]string, error) {
	wider := []Stop{StopNamespace(system)}
	if s.isWorkload() && s.Namespace != system {
		wider = append(wider, StopNamespace(s.Namespace))
	}
	out := map[Stop]string{}
	for _, w := range wider {
		if w == s {
			continue
		}
		m, err := w.get(ctx, c)
		switch {
		case apierrors.IsNotFound(err): // Tidemark is not installed
		case err != nil:
			return nil, fmt.Errorf("get namespace %s: %w", w.Name, err)
		case w.paused(m):
			out[w] = m.Annotations[v1.AnnotationPausedBy]
		}
	}
	return out, nil
}

func (s Stop) get(ctx context.Context, c client.Reader) (*metav1.PartialObjectMetadata, error) {
	m := MetadataOf(s.GVK)
	err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, m)
	m.SetGroupVersionKind(s.GVK)
	return m, err
}

// isWorkload reports whether the stop carries the label too, which stays where a rollback takes the annotations away.
func (s Stop) isWorkload() bool { return s.GVK != NamespaceKind }

func (s Stop) paused(m *metav1.PartialObjectMetadata) bool {
	return m.Annotations[v1.AnnotationPaused] == v1.True && (!s.isWorkload() || m.Labels[v1.LabelPaused] == v1.True)
}

// marked reports whether anything of a pause is on the object.
func (s Stop) marked(m *metav1.PartialObjectMetadata) bool {
	_, annotated := m.Annotations[v1.AnnotationPaused]
	_, noted := m.Annotations[v1.AnnotationPausedBy]
	_, labelled := m.Labels[v1.LabelPaused]
	return annotated || noted || labelled && s.isWorkload()
}

func (s Stop) patch(
	ctx context.Context, c client.Client, m *metav1.PartialObjectMetadata, annotations map[string]*string, label *string, dryRun bool,
) error {
	meta := map[string]any{"annotations": annotations}
	if s.isWorkload() {
		meta["labels"] = map[string]*string{v1.LabelPaused: label}
	}
	body, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	opts := []client.PatchOption{client.FieldOwner(v1.FieldManager)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return c.Patch(ctx, m, client.RawPatch(types.MergePatchType, body), opts...)
}

// Whoami is the caller's name as the API server knows it; "someone" where it does not say.
func Whoami(ctx context.Context, c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil || review.Status.UserInfo.Username == "" {
		return "someone"
	}
	return review.Status.UserInfo.Username
}

// PausedByText words who paused, when and why, as it is put into [v1.AnnotationPausedBy].
func PausedByText(who string, at time.Time, why string) string {
	text := fmt.Sprintf("%s at %s", who, at.UTC().Format(time.RFC3339))
	if why != "" {
		text += ": " + why
	}
	return text
}
