package acceptance

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// Policies of deploy/policy/protection.
const (
	policySnapshots = "tidemark-snapshots"
	policyAbsent    = "tidemark-absent"
)

// openProtected makes a namespace on a lab that protects snapshots by deploy/policy, with people who may write all
// ConfigMaps and Secrets in it, and have different rights on snapshots.
func openProtected(t *testing.T, namespace string) *scene {
	t.Helper()
	v := alone(t)
	v.policies("protection")
	s := v.open(namespace, "")
	s.apply(people)
	s.eventually("the policies to refuse", func() error {
		forged := snapshotOf("configmap", "forged")
		if err := refusedBy(s.as("editor").Create(t.Context(), s.placed(forged), ctrlclient.DryRunAll), policySnapshots); err != nil {
			return err
		}
		return refusedBy(s.API.Create(t.Context(), s.placed(ordinary("configmap", v1.AbsentName)), ctrlclient.DryRunAll), policyAbsent)
	})
	return s
}

const people = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: edit}
rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: edit}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: maker}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: retirer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: make}
rules: [{apiGroups: [tidemark.dev], resources: [snapshots], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: make}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: make}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: maker}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: retire}
rules: [{apiGroups: [tidemark.dev], resources: [snapshots], verbs: [retire]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: retire}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: retire}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: retirer}]
`

// as is the API for a person.
func (s *scene) as(person string) ctrlclient.Client {
	s.t.Helper()
	config := s.Lab.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: person}
	return s.client(config)
}

func (s *scene) client(config *rest.Config) ctrlclient.Client {
	s.t.Helper()
	c, err := ctrlclient.New(config, ctrlclient.Options{Scheme: s.API.Scheme()})
	s.must(err)
	return c
}

func ordinary(kind, name string) ctrlclient.Object {
	meta := metav1.ObjectMeta{Name: name}
	if kind == "secret" {
		return &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"MODE": "one"}}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"MODE": "one"}}
}

// snapshotOf is an object as Tidemark makes them.
func snapshotOf(kind, name string) ctrlclient.Object {
	o := ordinary(kind, name)
	o.SetLabels(map[string]string{v1.LabelSnapshot: v1.True})
	o.SetAnnotations(map[string]string{v1.AnnotationSnapshotOf: kind + "/web", v1.AnnotationSourceUID: "u", v1.AnnotationSnapshotRevision: "1"})
	switch o := o.(type) {
	case *corev1.Secret:
		o.Immutable = new(true)
	case *corev1.ConfigMap:
		o.Immutable = new(true)
	}
	return o
}

func (s *scene) placed(o ctrlclient.Object) ctrlclient.Object {
	o.SetNamespace(s.Namespace)
	return o
}

// deed is something that a person tries to do to ConfigMaps or Secrets, without lasting effect.
type deed func(ctx context.Context, api ctrlclient.Client, kind string) error

// patched changes an object that is there, by a merge patch.
func (s *scene) patched(name, patch string) deed {
	return func(ctx context.Context, api ctrlclient.Client, kind string) error {
		return api.Patch(ctx, s.placed(ordinary(kind, name)), ctrlclient.RawPatch(types.MergePatchType, []byte(patch)), ctrlclient.DryRunAll)
	}
}

func TestPolicyLeavesSnapshotsToThoseWithTheRight(t *testing.T) {
	s := openProtected(t, "protected")
	for _, kind := range []string{"configmap", "secret"} {
		s.must(s.API.Create(t.Context(), s.placed(snapshotOf(kind, "web-1"))))
		s.must(s.API.Create(t.Context(), s.placed(ordinary(kind, "web"))))
	}
	people := map[string]ctrlclient.Client{}
	for _, person := range []string{"editor", "maker", "retirer"} {
		people[person] = s.as(person)
	}
	create := func(what func(kind string) ctrlclient.Object) deed {
		return func(ctx context.Context, api ctrlclient.Client, kind string) error {
			return api.Create(ctx, s.placed(what(kind)), ctrlclient.DryRunAll)
		}
	}
	deletion := func(name string) deed {
		return func(ctx context.Context, api ctrlclient.Client, kind string) error {
			return api.Delete(ctx, s.placed(ordinary(kind, name)), ctrlclient.DryRunAll)
		}
	}
	everyone, nobody := slices.Sorted(maps.Keys(people)), []string(nil)
	maker, retirer := []string{"maker"}, []string{"retirer"}
	for what, c := range map[string]struct {
		deed deed
		may  []string
	}{
		"make an object":   {create(func(kind string) ctrlclient.Object { return ordinary(kind, "fresh") }), everyone},
		"change an object": {s.patched("web", `{"metadata": {"labels": {"a": "b"}, "annotations": {"tidemark.dev/treat-as": "restart"}}}`), everyone},
		"delete an object": {deletion("web"), everyone},

		"make a snapshot":              {create(func(kind string) ctrlclient.Object { return snapshotOf(kind, "web-2") }), maker},
		"make a snapshot of an object": {s.patched("web", `{"metadata": {"labels": {"tidemark.dev/snapshot": "true"}}}`), maker},
		"delete a snapshot":            {deletion("web-1"), retirer},
		"delete snapshots by label": {func(ctx context.Context, api ctrlclient.Client, kind string) error {
			return api.DeleteAllOf(ctx, ordinary(kind, ""), ctrlclient.InNamespace(s.Namespace),
				ctrlclient.MatchingLabels{v1.LabelSnapshot: v1.True}, ctrlclient.DryRunAll)
		}, retirer},
		"take the label away":  {s.patched("web-1", `{"metadata": {"labels": {"tidemark.dev/snapshot": null}}}`), retirer},
		"change the label":     {s.patched("web-1", `{"metadata": {"labels": {"tidemark.dev/snapshot": "false"}}}`), retirer},
		"change the source":    {s.patched("web-1", `{"metadata": {"annotations": {"tidemark.dev/snapshot-of": "configmap/other"}}}`), retirer},
		"take away where from": {s.patched("web-1", `{"metadata": {"annotations": {"tidemark.dev/source-uid": null}}}`), retirer},
		"take all annotations": {s.patched("web-1", `{"metadata": {"annotations": null}}`), retirer},
		"condemn a snapshot":   {s.patched("web-1", `{"metadata": {"annotations": {"tidemark.dev/condemned": "2026-01-01T00:00:00Z"}}}`), retirer},
		"give it an owner":     {s.patched("web-1", `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}`), retirer},
		"give it marks of others": {s.patched("web-1",
			`{"metadata": {"labels": {"team": "shop"}, "annotations": {"velero.io/backup": "b"}, "finalizers": ["example.org/a"]}}`), everyone},
		"write what is there": {s.patched("web-1", `{"metadata": {"labels": {"tidemark.dev/snapshot": "true"}}}`), everyone},

		"change its data":          {s.patched("web-1", `{"data": {"MODE": "dHdv"}}`), nobody},
		"make it mutable":          {s.patched("web-1", `{"immutable": false}`), nobody},
		"make the reserved object": {create(func(kind string) ctrlclient.Object { return ordinary(kind, v1.AbsentName) }), nobody},
	} {
		t.Run(what, func(t *testing.T) {
			s := s.within(t)
			for person, api := range people {
				for _, kind := range []string{"configmap", "secret"} {
					if slices.Contains(c.may, person) {
						s.eventually(person+" to "+what, func() error { return c.deed(t.Context(), api, kind) })
						continue
					}
					err := c.deed(t.Context(), api, kind)
					switch {
					case len(c.may) == 0 && (apierrors.IsInvalid(err) || refusedBy(err, policyAbsent, "choose another name") == nil):
					case len(c.may) == 0:
						t.Errorf("%s, %s: got %v", person, kind, err)
					default:
						right := map[string]string{"maker": `"create"`, "retirer": `"retire"`}[c.may[0]]
						if wrong := refusedBy(err, policySnapshots, right, "snapshots.tidemark.dev in this namespace"); wrong != nil || !apierrors.IsForbidden(err) {
							t.Errorf("%s, %s: %v, %v", person, kind, wrong, err)
						}
					}
				}
			}
		})
	}
}

func TestPolicyLetsTheControllerKeepSnapshots(t *testing.T) {
	s := openProtected(t, "kept")
	root, err := scenario.Root()
	s.must(err)
	pin := filepath.Join(root, "deploy", "pin")
	rights := []string{"-f", filepath.Join(pin, "role.yaml"), "-f", filepath.Join(pin, "rolebinding.yaml")}
	labtest.Kubectl(t, s.Lab, append([]string{"apply"}, rights...)...)
	afterwards(t, func(ctx context.Context) error {
		_, _, err := s.Lab.Kubectl(ctx, append([]string{"delete"}, rights...)...)
		return err
	})
	config, err := s.Lab.RESTConfigForServiceAccount(t.Context(), scenario.SystemNamespace, scenario.ServiceAccount)
	s.must(err)
	controller := s.client(config)
	for _, kind := range []string{"configmap", "secret"} {
		made := s.placed(snapshotOf(kind, "web-1"))
		s.eventually("the controller's rights", func() error { return controller.Create(t.Context(), made) })
		for _, mark := range []string{`"2026-01-01T00:00:00Z"`, "null"} {
			patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, v1.AnnotationCondemned, mark)
			s.must(controller.Patch(t.Context(), made, ctrlclient.RawPatch(types.MergePatchType, []byte(patch))))
		}
		uid, version := made.GetUID(), made.GetResourceVersion()
		s.must(controller.Delete(t.Context(), made, ctrlclient.Preconditions{UID: &uid, ResourceVersion: &version}))
	}
}

func TestPolicyLetsANamespaceGo(t *testing.T) {
	s := openProtected(t, "stays")
	const namespace = "goes"
	s.kubectl("create", "namespace", namespace)
	s.kubectl("create", "clusterrole", "janitor", "--verb=delete,get", "--resource=namespaces")
	s.kubectl("create", "clusterrolebinding", "janitor", "--clusterrole=janitor", "--user=janitor")
	afterwards(t, func(ctx context.Context) error {
		_, err := s.Kubectl(ctx, "delete", "clusterrole/janitor", "clusterrolebinding/janitor")
		return err
	})
	for _, kind := range []string{"configmap", "secret"} {
		o := snapshotOf(kind, "web-1")
		o.SetNamespace(namespace)
		s.must(s.API.Create(t.Context(), o))
	}
	// By somebody who has no right on what is in it; the namespace controller, which deletes that, has none on snapshots.
	gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	janitor := s.as("janitor")
	s.eventually("the janitor's rights", func() error { return janitor.Delete(t.Context(), gone) })
	s.eventually("the namespace to be gone", func() error {
		err := s.API.Get(t.Context(), ctrlclient.ObjectKeyFromObject(gone), gone)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			err = fmt.Errorf("it is there: %v", gone.Status.Conditions)
		}
		return err
	})
}
