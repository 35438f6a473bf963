package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
)

// replicaSetsOfARollout lists the retained revisions of one of Argo's Rollouts. One that takes its template from a Deployment has
// none of its own: what is decided is decided on that.
//
// A rollback writes the template of the ReplicaSet, completed by defaults, over that of the Rollout, which is not completed.
// It takes along what Argo had put on the ReplicaSet for a time, so that a template with that metadata is the revision's too.
// The note of former numbers is no sign of a rollback here: Argo writes it with every change of an annotation.
func replicaSetsOfARollout(ctx context.Context, reader client.Reader, u *unstructured.Unstructured) ([]stamp.Revision, error) {
	a := readArgo(u)
	if a.Spec.WorkloadRef != nil || a.Spec.Selector == nil {
		return nil, nil
	}
	template, err := Kind{u.GroupVersionKind(), defaultTemplatePath}.Template(u)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(replicaSet.GroupVersion().WithKind("ReplicaSetList"))
	if err := listOwnedBy(ctx, reader, list, u.GetNamespace(), a.Spec.Selector); err != nil {
		return nil, fmt.Errorf("list replicasets: %w", err)
	}
	var out []stamp.Revision
	for i := range list.Items {
		rs := &list.Items[i]
		if !controlledBy(rs, u.GetUID()) {
			continue
		}
		matches, err := a.carriedBy(rs, template)
		if err != nil {
			return nil, fmt.Errorf("read replicaset %s: %w", rs.GetName(), err)
		}
		out = append(out, stamp.Revision{
			Name: rs.GetName(), Number: revision.OfRollout.Number(rs.GetAnnotations()), Created: rs.GetCreationTimestamp().Time,
			Matches: matches,
		})
	}
	return out, nil
}

// carriedBy reports whether a ReplicaSet carries the template, with or without what Argo puts on it for a time.
func (a argo) carriedBy(rs *unstructured.Unstructured, template *corev1.PodTemplateSpec) (bool, error) {
	own, err := typedTemplate(podtemplate.OfReplicaSet(rs.DeepCopy(), podtemplate.LabelRolloutHash))
	if err != nil {
		return false, err
	}
	template = template.DeepCopy()
	delete(template.Labels, podtemplate.LabelRolloutHash)
	return podtemplate.SameCompleted(own, template) || podtemplate.SameCompleted(own, a.withoutEphemeral(template)), nil
}

func typedTemplate(raw map[string]any) (*corev1.PodTemplateSpec, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	t := &corev1.PodTemplateSpec{}
	return t, json.Unmarshal(text, t)
}

// withoutEphemeral returns a template without the metadata that the Rollout's strategy has Argo put on pods for a time.
func (a argo) withoutEphemeral(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t := template.DeepCopy()
	for _, m := range a.ephemeral() {
		if m == nil {
			continue
		}
		for _, of := range []struct{ have, added map[string]string }{{t.Labels, m.Labels}, {t.Annotations, m.Annotations}} {
			maps.DeleteFunc(of.have, func(name, value string) bool {
				added, is := of.added[name]
				return is && added == value
			})
		}
	}
	return t
}
