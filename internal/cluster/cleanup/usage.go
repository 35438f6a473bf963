package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// usage finds what uses certain config objects in a scope: by the pins of a pod or of a template, by a reference, or by an
// annotation that names them. Of what it lists it keeps the names of those objects, and one user of each.
type usage struct {
	client client.Reader
	// namespace is the scope; "" for all.
	namespace string
	kinds     []cluster.Kind
	wanted    map[workload.Object]bool
	uses      snapshot.Uses
	// lost are the revisions by the snapshots that they pin and that were not looked for: most likely there are none of them.
	lost map[workload.Object][]string
	// unread is the first object whose template could not be read.
	unread error
}

// usagePage is the size of pages of objects that are read whole.
const usagePage = 200

var (
	replicaSetKind        = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	jobKind               = batchv1.SchemeGroupVersion.WithKind("Job")
	replicationController = corev1.SchemeGroupVersion.WithKind("ReplicationController")
	controllerRevision    = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	podKind               = corev1.SchemeGroupVersion.WithKind("Pod")
	serviceAccount        = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	ingress               = networkingv1.SchemeGroupVersion.WithKind("Ingress")
)

// read lists everything that can use a config object. A kind that is not served has no objects; any other failure is an
// error, for what uses the objects is then not known.
//
// What makes others is listed before what is made of it: a use that moves on while the lists are read, as from a template to
// the pod that is made of it, is seen at one of the two places.
func (u *usage) read(ctx context.Context) error {
	steps := []func(context.Context) error{u.readWorkloads, u.readRevisions, u.readJobs, u.readPods}
	if u.wantsSecrets() {
		steps = append(steps, u.readOthers)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return u.unread
}

func (u *usage) wantsSecrets() bool {
	for o := range u.wanted {
		if o.Kind == workload.Secret {
			return true
		}
	}
	return false
}

func (u *usage) readWorkloads(ctx context.Context) error {
	kinds := u.kinds // and Argo's, wherever it is served
	if !slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return k.GroupKind() == cluster.RolloutKind.GroupKind() }) {
		kinds = append(slices.Clone(kinds), cluster.RolloutKind)
	}
	for _, k := range kinds {
		visit := func(obj client.Object) { u.workload(k, obj) }
		if err := listUses(ctx, u, k.GroupVersionKind, k.NewList, visit); err != nil {
			return err
		}
	}
	newList := func() client.ObjectList { return &corev1.ReplicationControllerList{} }
	return listUses(ctx, u, replicationController, newList, func(rc *corev1.ReplicationController) {
		u.template(rc.Namespace, rc.Spec.Template, snapshot.User{Role: snapshot.ByTemplate, Name: "replicationcontroller/" + rc.Name})
	})
}

// readRevisions reads the older templates. Whatever is there, something may go back to: their controllers delete the others.
func (u *usage) readRevisions(ctx context.Context) error {
	newList := func() client.ObjectList { return &appsv1.ReplicaSetList{} }
	err := listUses(ctx, u, replicaSetKind, newList, func(rs *appsv1.ReplicaSet) {
		u.template(rs.Namespace, &rs.Spec.Template, snapshot.User{Role: snapshot.ByRevision, Name: "replicaset/" + rs.Name})
	})
	if err != nil {
		return err
	}
	newList = func() client.ObjectList { return &appsv1.ControllerRevisionList{} }
	return listUses(ctx, u, controllerRevision, newList, u.controllerRevision)
}

func (u *usage) readJobs(ctx context.Context) error {
	newList := func() client.ObjectList { return &batchv1.JobList{} }
	return listUses(ctx, u, jobKind, newList, func(j *batchv1.Job) {
		u.template(j.Namespace, &j.Spec.Template, snapshot.User{Role: snapshot.ByJob, Name: "job/" + j.Name})
	})
}

func (u *usage) readPods(ctx context.Context) error {
	newList := func() client.ObjectList { return &corev1.PodList{} }
	return listUses(ctx, u, podKind, newList, func(p *corev1.Pod) {
		t := &corev1.PodTemplateSpec{Spec: p.Spec}
		t.Annotations = p.Annotations
		u.template(p.Namespace, t, snapshot.User{Role: snapshot.ByPod, Name: "pod/" + p.Name})
	})
}

// readOthers reads what uses Secrets without a pod.
func (u *usage) readOthers(ctx context.Context) error {
	newList := func() client.ObjectList { return &corev1.ServiceAccountList{} }
	err := listUses(ctx, u, serviceAccount, newList, func(a *corev1.ServiceAccount) {
		by := snapshot.User{Role: snapshot.ByOther, Name: "serviceaccount/" + a.Name}
		for _, s := range a.Secrets {
			u.add(workload.Object{Kind: workload.Secret, Namespace: a.Namespace, Name: s.Name}, by)
		}
		for _, s := range a.ImagePullSecrets {
			u.add(workload.Object{Kind: workload.Secret, Namespace: a.Namespace, Name: s.Name}, by)
		}
	})
	if err != nil {
		return err
	}
	newList = func() client.ObjectList { return &networkingv1.IngressList{} }
	return listUses(ctx, u, ingress, newList, func(i *networkingv1.Ingress) {
		by := snapshot.User{Role: snapshot.ByOther, Name: "ingress/" + i.Name}
		for _, tls := range i.Spec.TLS {
			u.add(workload.Object{Kind: workload.Secret, Namespace: i.Namespace, Name: tls.SecretName}, by)
		}
	})
}

// listUses lists the objects of one kind in the scope.
func listUses[T client.Object](
	ctx context.Context, u *usage, gvk schema.GroupVersionKind, newList func() client.ObjectList, visit func(T),
) error {
	err := cluster.EachItem(ctx, u.client, newList, usagePage, visit, client.InNamespace(u.namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return blind(err, right("list", cluster.Plural(gvk), u.namespace, "what is used is not known, so nothing is condemned or deleted"))
}

// right is the right that a request needs, and what is not known without it.
func right(verb, resource, namespace, unknown string) cluster.Right {
	return cluster.Right{Verb: verb, Resource: resource, Namespace: namespace, Unknown: unknown}
}

// blind words a read that failed, without which nothing may be decided.
func blind(err error, needs cluster.Right) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %s", needs.Missing(), needs.Unknown)
	}
	return fmt.Errorf("%s %s: %s: %w", needs.Verb, needs.Resource, needs.Unknown, err)
}

// workload notes what an object of a kind of workload uses. Of a kind that is not built in every text counts that is the name
// of an object looked for, wherever it stands: such a kind may have more templates than the one that is known.
func (u *usage) workload(k cluster.Kind, obj client.Object) {
	by := snapshot.User{Role: snapshot.ByTemplate, Name: k.Lower() + "/" + obj.GetName()}
	named, _ := workload.Named(obj.GetNamespace(), obj.GetAnnotations()) // an item that is none names nothing
	for _, r := range named {
		u.add(r.Object, by)
	}
	if other, ok := obj.(*unstructured.Unstructured); ok {
		u.walk(obj.GetNamespace(), other.Object, by)
		return
	}
	t, err := k.Template(obj)
	if err != nil && u.unread == nil {
		u.unread = fmt.Errorf("%s/%s in namespace %s: what it uses is not known, so nothing is condemned or deleted: %w",
			k.Lower(), obj.GetName(), obj.GetNamespace(), err)
	}
	u.template(obj.GetNamespace(), t, by)
}

// template notes what a pod template uses, as it says and as it is pinned.
func (u *usage) template(namespace string, t *corev1.PodTemplateSpec, by snapshot.User) {
	if t == nil {
		return
	}
	for _, r := range workload.References(namespace, t) {
		u.add(r.Object, by)
	}
	u.pins(namespace, t.Annotations[v1.AnnotationPins], by)
}

// pins notes the snapshots that pins name. Of a text that cannot be read every word counts that is a name.
func (u *usage) pins(namespace, text string, by snapshot.User) {
	pins, err := snapshot.ParsePins(namespace, text)
	if err != nil {
		for _, word := range strings.FieldsFunc(text, notInNames) {
			u.mention(namespace, word, by)
		}
		return
	}
	for o, name := range pins {
		u.add(o, by)
		copied := workload.Object{Kind: o.Kind, Namespace: namespace, Name: name}
		u.add(copied, by)
		if by.Role == snapshot.ByRevision && name != v1.AbsentName && !u.wanted[copied] {
			u.lost[copied] = append(u.lost[copied], by.Name)
		}
	}
}

// notInNames reports whether no name of an object has the character.
func notInNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// controllerRevision notes what a ControllerRevision uses. What its data means only its owner knows.
func (u *usage) controllerRevision(cr *appsv1.ControllerRevision) {
	by := snapshot.User{Role: snapshot.ByRevision, Name: "controllerrevision/" + cr.Name}
	var data any
	if err := json.Unmarshal(cr.Data.Raw, &data); err == nil {
		u.walk(cr.Namespace, data, by)
	}
}

// walk notes every text of a document that is a name, and every pin.
func (u *usage) walk(namespace string, value any, by snapshot.User) {
	switch t := value.(type) {
	case map[string]any:
		for key, inner := range t {
			if text, ok := inner.(string); ok && key == v1.AnnotationPins {
				u.pins(namespace, text, by)
				continue
			}
			u.walk(namespace, inner, by)
		}
	case []any:
		for _, inner := range t {
			u.walk(namespace, inner, by)
		}
	case string:
		u.mention(namespace, t, by)
	}
}

// mention notes a use of whatever has the name.
func (u *usage) mention(namespace, name string, by snapshot.User) {
	u.add(workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: name}, by)
	u.add(workload.Object{Kind: workload.Secret, Namespace: namespace, Name: name}, by)
}

func (u *usage) add(o workload.Object, by snapshot.User) {
	if u.wanted[o] {
		u.uses.Add(o, by)
	}
}
