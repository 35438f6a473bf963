package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerOf names, for people, who has to do with a workload: what its labels and annotations say deploys it, what controls it,
// else who wrote its spec last. Managed fields that a cache has dropped are read from the API.
func ownerOf(ctx context.Context, reader client.Reader, obj client.Object) (string, error) {
	if who := deployedBy(obj); who != "" {
		return who, nil
	}
	fields := obj.GetManagedFields()
	if len(fields) == 0 {
		var err error
		if fields, err = managedFieldsOf(ctx, reader, obj); err != nil {
			return "", err
		}
	}
	if manager := lastWriter(fields); manager != "" {
		return "whoever writes as " + manager, nil
	}
	return "", nil
}

// deployedBy names what an object's metadata says deploys or controls it; "" for nothing.
func deployedBy(m metav1.Object) string {
	l, a := m.GetLabels(), m.GetAnnotations()
	app, _, _ := strings.Cut(a["argocd.argoproj.io/tracking-id"], ":")
	owner := metav1.GetControllerOfNoCopy(m)
	switch {
	case app != "":
		return "Argo CD application " + app
	case l["argocd.argoproj.io/instance"] != "":
		return "Argo CD application " + l["argocd.argoproj.io/instance"]
	case l["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux kustomization " + within(l["kustomize.toolkit.fluxcd.io/namespace"], l["kustomize.toolkit.fluxcd.io/name"])
	case l["helm.toolkit.fluxcd.io/name"] != "":
		return "Flux Helm release " + within(l["helm.toolkit.fluxcd.io/namespace"], l["helm.toolkit.fluxcd.io/name"])
	case a["meta.helm.sh/release-name"] != "":
		return "Helm release " + a["meta.helm.sh/release-name"]
	case owner != nil:
		return strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	return l["app.kubernetes.io/managed-by"]
}

func within(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// managedFieldsOf reads those of one object by a list, for which the right to watch its kind is enough.
func managedFieldsOf(ctx context.Context, reader client.Reader, obj client.Object) ([]metav1.ManagedFieldsEntry, error) {
	list := MetadataList(kindOfObject(obj))()
	if err := reader.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{"metadata.name": obj.GetName()}); err != nil {
		return nil, fmt.Errorf("read managed fields: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	m, err := meta.Accessor(items[0])
	if err != nil {
		return nil, err
	}
	return m.GetManagedFields(), nil
}

// kindOfObject is the kind of a workload's object, which typed objects do not carry.
func kindOfObject(obj client.Object) schema.GroupVersionKind {
	switch obj.(type) {
	case *appsv1.Deployment:
		return deployment
	case *appsv1.StatefulSet:
		return statefulSet
	case *appsv1.DaemonSet:
		return daemonSet
	}
	return obj.GetObjectKind().GroupVersionKind()
}

// lastWriter is the manager that wrote the spec last, but for controllers that write to it in passing.
func lastWriter(entries []metav1.ManagedFieldsEntry) string {
	var newest *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		var fields map[string]json.RawMessage
		if e.Subresource != "" || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, writes := fields["f:spec"]; !writes || inPassing(e.Manager) || e.Time == nil {
			continue
		}
		if newest == nil || newest.Time.Before(e.Time) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Manager
}

func inPassing(manager string) bool {
	switch manager {
	case "kube-controller-manager", "rollouts-controller":
		return true
	}
	return strings.HasPrefix(manager, "tidemark")
}
