package revisions

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/revision"
)

// managedByLabel is "Helm" on what a release has deployed.
const managedByLabel = "app.kubernetes.io/managed-by"

// Waiting says what the rollouts of a release's workloads are waiting for, a sentence for each that is not done; none when all
// are done, or what there is cannot be read.
func Waiting(ctx context.Context, c client.Client, namespace, release string) []string {
	var out []string
	for _, kind := range cluster.BuiltinKinds() {
		if gvk := kind.GroupVersionKind; gvk.Group != "apps" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind)
		if c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{managedByLabel: "Helm"}) != nil {
			continue
		}
		for i := range list.Items {
			u := &list.Items[i]
			if u.GetAnnotations()[helmrecord.AnnotationReleaseName] != release {
				continue
			}
			if text := waitingFor(ctx, c, kind, u); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// waitingFor says what one workload's rollout is waiting for; "" when it is done or never is by itself.
func waitingFor(ctx context.Context, c client.Client, kind cluster.Kind, u *unstructured.Unstructured) string {
	h := &History{Target: cluster.Target{Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName()}, client: c, object: u, holder: u}
	if h.Unfinishable() != "" {
		return ""
	}
	to := revision.Revision{}
	to.Hash, _, _ = unstructured.NestedString(u.Object, "status", "updateRevision")
	p, err := h.progress(u, u, to)
	if err != nil || p.Done {
		return ""
	}
	if hindrance, err := h.hindrance(ctx, u, to); err == nil && hindrance != "" {
		p.Text += "; " + hindrance
	}
	return fmt.Sprintf("%s: %s", h.Target, p.Text)
}
