package cluster

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotServedError says that the cluster does not serve a kind.
type NotServedError struct {
	GVK schema.GroupVersionKind
}

// Error names the kind and the remedy.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("kind %s of %s is not served by this cluster: install its definition, or correct or drop --kind",
		e.GVK.Kind, e.GVK.GroupVersion())
}

// ForbiddenError says which rights are missing on a resource.
type ForbiddenError struct {
	Resource schema.GroupResource
	Verbs    []string
}

// Error names the verbs, the resource and the remedy.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("missing the right to %s %s in all namespaces: grant it to Tidemark's service account with a ClusterRole",
		strings.Join(e.Verbs, ", "), e.Resource)
}

// Access checks that a kind is served, and that the caller holds the verbs on it in the namespace ("" for all). It returns
// a *NotServedError or a *ForbiddenError where the answer is no, any other error where there is no answer.
func Access(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, namespace string, verbs ...string) error {
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return &NotServedError{GVK: gvk}
	}
	if err != nil {
		return fmt.Errorf("look up kind %s: %w", gvk.Kind, err)
	}
	var missing []string
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
			},
		}}
		if err := c.Create(ctx, review); err != nil {
			return fmt.Errorf("review access to %s: %w", mapping.Resource.Resource, err)
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		return &ForbiddenError{Resource: mapping.Resource.GroupResource(), Verbs: missing}
	}
	return nil
}
