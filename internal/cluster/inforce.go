package cluster

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// Pinning is what of mode pin is installed in a cluster.
type Pinning struct {
	// Policy says that the API server rewrites new pods by the policy [v1.PolicyPin] with its binding, Webhook that the webhook
	// [v1.WebhookPods] does. A webhook whose certificate nothing vouches for yet is never asked, and does not count.
	Policy, Webhook bool
	// Served says that the API server has such policies: from Kubernetes 1.36 on.
	Served bool
	// Workloads says that the webhook [v1.WebhookWorkloads] decides the stamp when a workload is written.
	Workloads bool
	// Hidden says that something of this may not be looked at, so that what is not found may be there.
	Hidden bool
}

// InForce reports whether it is known that new pods read what their pins say. It may be so, too, where something is [Pinning.Hidden].
func (p Pinning) InForce() bool { return p.Policy || p.Webhook }

// LeavesOut reports whether new pods of a namespace do not read what their pins say although pins are in force: the webhook on pods,
// unlike the policy, is not asked in kube-system and in Tidemark's own namespace.
func (p Pinning) LeavesOut(namespace, system string) bool {
	return p.Webhook && !p.Policy && (namespace == metav1.NamespaceSystem || namespace == system)
}

// FindPinning looks for what of mode pin is installed.
func FindPinning(ctx context.Context, c client.Reader) (Pinning, error) {
	p := Pinning{Served: true}
	get := func(name string, into client.Object) (found bool, err error) {
		err = c.Get(ctx, client.ObjectKey{Name: name}, into)
		switch {
		case apierrors.IsForbidden(err):
			p.Hidden = true
			return false, nil
		case meta.IsNoMatchError(err):
			p.Served = false
			return false, nil
		case apierrors.IsNotFound(err):
			return false, nil
		}
		return err == nil, err
	}
	find := func(kind, name string) (found bool, err error) {
		return get(name, MetadataOf(admissionregistrationv1.SchemeGroupVersion.WithKind(kind)))
	}
	trusted := func(name string) (bool, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
		found, err := get(name, u)
		return found && hasAuthority(u), err
	}
	var err error
	if p.Policy, err = find("MutatingAdmissionPolicy", v1.PolicyPin); err != nil {
		return p, err
	}
	bound, err := find("MutatingAdmissionPolicyBinding", v1.PolicyPin)
	if err != nil {
		return p, err
	}
	p.Policy = p.Policy && bound
	if p.Webhook, err = trusted(v1.WebhookPods); err != nil {
		return p, err
	}
	p.Workloads, err = trusted(v1.WebhookWorkloads)
	return p, err
}

// hasAuthority reports whether all webhooks of a configuration name an authority for the certificate of what serves them.
func hasAuthority(configuration *unstructured.Unstructured) bool {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	return !slices.ContainsFunc(webhooks, func(w any) bool {
		webhook, _ := w.(map[string]any)
		authority, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		return authority == ""
	})
}
