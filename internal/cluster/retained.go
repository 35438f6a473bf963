package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
)

// Retained lists the retained revisions of a workload from the API: the ReplicaSets of a Deployment or of one of Argo's Rollouts,
// the ControllerRevisions of a StatefulSet or DaemonSet. Other kinds have none that are known.
func Retained(ctx context.Context, reader client.Reader, obj client.Object) ([]stamp.Revision, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return replicaSets(ctx, reader, o)
	case *appsv1.StatefulSet:
		return controllerRevisions(ctx, reader, o, o.Spec.Selector, &o.Spec.Template)
	case *appsv1.DaemonSet:
		return controllerRevisions(ctx, reader, o, o.Spec.Selector, &o.Spec.Template)
	}
	if u, is := isArgo(obj); is {
		return replicaSetsOfARollout(ctx, reader, u)
	}
	return nil, nil
}

func replicaSets(ctx context.Context, reader client.Reader, d *appsv1.Deployment) ([]stamp.Revision, error) {
	list := &appsv1.ReplicaSetList{}
	if err := listOwnedBy(ctx, reader, list, d.Namespace, d.Spec.Selector); err != nil {
		return nil, fmt.Errorf("list replicasets: %w", err)
	}
	var out []stamp.Revision
	for i := range list.Items {
		rs := &list.Items[i]
		if !metav1.IsControlledBy(rs, d) {
			continue
		}
		out = append(out, stamp.Revision{
			Name: rs.Name, Number: revision.OfDeployment.Number(rs.Annotations), Created: rs.CreationTimestamp.Time,
			Renumbered: revision.OfDeployment.Renumbered(rs.Annotations),
			Matches:    podtemplate.Same(&rs.Spec.Template, &d.Spec.Template),
		})
	}
	return out, nil
}

func controllerRevisions(
	ctx context.Context, reader client.Reader, owner client.Object, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec,
) ([]stamp.Revision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := listOwnedBy(ctx, reader, list, owner.GetNamespace(), selector); err != nil {
		return nil, fmt.Errorf("list controllerrevisions: %w", err)
	}
	var out []stamp.Revision
	for i := range list.Items {
		cr := &list.Items[i]
		if !controlledBy(cr, owner.GetUID()) {
			continue
		}
		out = append(out, stamp.Revision{
			Name: cr.Name, Number: cr.Revision, Created: cr.CreationTimestamp.Time,
			Matches: carries(cr, template),
		})
	}
	return out, nil
}

// carries reports whether a ControllerRevision, which holds a patch of the template, holds this one.
func carries(cr *appsv1.ControllerRevision, template *corev1.PodTemplateSpec) bool {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(cr.Data.Raw, &data) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(&data.Spec.Template, template)
}

func controlledBy(obj metav1.Object, uid types.UID) bool {
	ref := metav1.GetControllerOf(obj)
	return ref != nil && ref.UID == uid
}

func listOwnedBy(ctx context.Context, reader client.Reader, list client.ObjectList, namespace string, selector *metav1.LabelSelector) error {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return fmt.Errorf("read selector: %w", err)
	}
	return reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: s})
}
