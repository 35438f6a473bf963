// Package cluster turns Kubernetes objects into domain values, with the writes that go the other way.
package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of workload: where it is served, and where in its objects the pod template stands.
type Kind struct {
	schema.GroupVersionKind
	// TemplatePath are the fields that lead to the pod template.
	TemplatePath []string
}

// String gives "apps/v1/Deployment=spec.template", which [ParseKind] reads back.
func (k Kind) String() string {
	return strings.Join([]string{k.Group, k.Version, k.GroupVersionKind.Kind}, "/") + "=" + strings.Join(k.TemplatePath, ".")
}

// Lower is the kind's name in lower case, as it is written in KIND/NAME.
func (k Kind) Lower() string { return strings.ToLower(k.GroupVersionKind.Kind) }

// ArgoRollout is Argo's kind of workload, which need not be served.
var ArgoRollout = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}

// RolloutKind is it with its template.
var RolloutKind = Kind{ArgoRollout, defaultTemplatePath}

var defaultTemplatePath = []string{"spec", "template"}

// BuiltinKinds are the kinds of workload that are known without configuration: those of Kubernetes, and Argo's Rollout where the
// cluster serves it.
func BuiltinKinds() []Kind {
	return []Kind{
		{appsv1.SchemeGroupVersion.WithKind("Deployment"), defaultTemplatePath},
		{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), defaultTemplatePath},
		{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), defaultTemplatePath},
		{batchv1.SchemeGroupVersion.WithKind("CronJob"), []string{"spec", "jobTemplate", "spec", "template"}},
		RolloutKind,
	}
}

// Optional reports whether nothing is amiss where the cluster does not serve the kind.
func (k Kind) Optional() bool { return Optional(k.GroupVersionKind) }

// Optional reports whether nothing is amiss where the cluster does not serve a kind: one that is built in, and that Kubernetes
// itself does not have.
func Optional(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == ArgoRollout.GroupKind() }

// WithKind adds a kind, unless just that one is there already.
func WithKind(kinds []Kind, k Kind) []Kind {
	if slices.ContainsFunc(kinds, func(known Kind) bool { return known.String() == k.String() }) {
		return kinds
	}
	return append(kinds, k)
}

// ParseKind reads "GROUP/VERSION/KIND=PATH.TO.TEMPLATE"; without "=PATH" the path is spec.template.
func ParseKind(s string) (Kind, error) {
	gvk, path, hasPath := strings.Cut(s, "=")
	parts := strings.Split(gvk, "/")
	if len(parts) != 3 || slices.Contains(parts[1:], "") {
		return Kind{}, fmt.Errorf("parse kind %q: want GROUP/VERSION/KIND, or GROUP/VERSION/KIND=PATH.TO.TEMPLATE", s)
	}
	k := Kind{schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, defaultTemplatePath}
	if hasPath {
		k.TemplatePath = strings.Split(strings.TrimPrefix(path, "."), ".")
		if slices.Contains(k.TemplatePath, "") {
			return Kind{}, fmt.Errorf("parse kind %q: the path to the pod template has an empty field", s)
		}
		if first := k.TemplatePath[0]; first == "metadata" || first == "status" {
			return Kind{}, fmt.Errorf("parse kind %q: no pod template is in %s", s, first)
		}
	}
	return k, nil
}

// NewObject returns an empty object of the kind: typed for the built-in kinds, unstructured for others.
func (k Kind) NewObject() client.Object {
	switch k.GroupVersionKind {
	case appsv1.SchemeGroupVersion.WithKind("Deployment"):
		return &appsv1.Deployment{}
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		return &appsv1.StatefulSet{}
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet"):
		return &appsv1.DaemonSet{}
	case batchv1.SchemeGroupVersion.WithKind("CronJob"):
		return &batchv1.CronJob{}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

// Template returns the pod template of an object of the kind. The result may share memory with the object: it is read only. An
// object that takes its template from another one gives an [*ElsewhereError].
func (k Kind) Template(obj client.Object) (*corev1.PodTemplateSpec, error) {
	var t *corev1.PodTemplateSpec
	switch o := obj.(type) {
	case *appsv1.Deployment:
		t = &o.Spec.Template
	case *appsv1.StatefulSet:
		t = &o.Spec.Template
	case *appsv1.DaemonSet:
		t = &o.Spec.Template
	case *batchv1.CronJob:
		t = &o.Spec.JobTemplate.Spec.Template
	case *unstructured.Unstructured:
		var err error
		if t, err = k.unstructuredTemplate(o); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("read pod template of %s: unexpected type %T", k.Lower(), obj)
	}
	if len(t.Spec.Containers) == 0 {
		return nil, fmt.Errorf("read pod template at %s: it has no containers", strings.Join(k.TemplatePath, "."))
	}
	return t, nil
}

func (k Kind) unstructuredTemplate(u *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	if k.Optional() {
		if other := elsewhere(u); other != nil {
			return nil, other
		}
	}
	path := strings.Join(k.TemplatePath, ".")
	m, found, err := unstructured.NestedMap(u.Object, k.TemplatePath...)
	if err != nil {
		return nil, fmt.Errorf("read pod template at %s: %w", path, err)
	}
	if !found {
		return nil, fmt.Errorf("read pod template at %s: the field is not there; correct the path in --kind %s", path, k)
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, t); err != nil {
		return nil, fmt.Errorf("read pod template at %s: %w", path, err)
	}
	return t, nil
}

// Patch is a write to a workload: a JSON merge patch of the stamp, the record, or both.
type Patch struct {
	// ResourceVersion that the write was decided on: any other write in between makes it fail with a conflict.
	ResourceVersion string
	// Annotations and Labels of the workload to set; a nil value removes.
	Annotations, Labels map[string]*string
	// TemplateAnnotations of the pod template to set; a nil value removes.
	TemplateAnnotations map[string]*string
	// Scheduler is the scheduler's name to set in the pod template, "" for the API's default; nil leaves it alone.
	Scheduler *string
}

// Set sets an annotation of the workload; nil removes it.
func (p *Patch) Set(annotation string, value *string) {
	if p.Annotations == nil {
		p.Annotations = map[string]*string{}
	}
	p.Annotations[annotation] = value
}

// JSON encodes the patch for an object of the kind. It touches nothing but what the patch names.
func (k Kind) JSON(p Patch) ([]byte, error) {
	meta := map[string]any{}
	if p.ResourceVersion != "" {
		meta["resourceVersion"] = p.ResourceVersion
	}
	setNonEmpty(meta, "annotations", p.Annotations)
	setNonEmpty(meta, "labels", p.Labels)
	root := map[string]any{"metadata": meta}
	if template := p.template(); len(template) > 0 {
		inner := root
		for _, f := range k.TemplatePath[:len(k.TemplatePath)-1] {
			next := map[string]any{}
			inner[f] = next
			inner = next
		}
		inner[k.TemplatePath[len(k.TemplatePath)-1]] = template
	}
	return json.Marshal(root)
}

func (p Patch) template() map[string]any {
	template := map[string]any{}
	if len(p.TemplateAnnotations) > 0 {
		template["metadata"] = map[string]any{"annotations": p.TemplateAnnotations}
	}
	if p.Scheduler != nil {
		var name any // null, which takes the field away
		if *p.Scheduler != "" {
			name = *p.Scheduler
		}
		template["spec"] = map[string]any{"schedulerName": name}
	}
	return template
}

// Keeps reports whether an object, as the API answered the patch, carries the template annotations that the patch sets. One
// whose definition does not know the template's metadata has lost them, without an error.
func (k Kind) Keeps(answer *unstructured.Unstructured, p Patch) bool {
	annotations, _, _ := unstructured.NestedStringMap(answer.Object, append(slices.Clone(k.TemplatePath), "metadata", "annotations")...)
	for name, value := range p.TemplateAnnotations {
		if value != nil && annotations[name] != *value {
			return false
		}
	}
	return true
}

func setNonEmpty(m map[string]any, field string, values map[string]*string) {
	if len(values) > 0 {
		m[field] = values
	}
}
