// Package plan forecasts what becomes of the workloads of a cluster when manifests are applied. It decides as the controller would, on the
// cluster as it would be then, and only reads.
package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Intended is what somebody is going to apply.
type Intended struct {
	// ConfigMaps that are given. Secrets are not here: whether one differs from the one in use is not told.
	ConfigMaps map[workload.Object]*corev1.ConfigMap
	// Secrets that are given, by name alone.
	Secrets map[workload.Object]bool
}

// Given is a workload as somebody is going to apply it.
type Given struct {
	Annotations map[string]string
	Template    *corev1.PodTemplateSpec
	// Rollout are the fields of its spec that say how many pods it has and how they are replaced. Those that it does not give stay.
	Rollout map[string]any
}

// Forecast is what becomes of one workload when it is applied.
type Forecast string

// The forecasts.
const (
	Rolls     Forecast = "rolls"    // its pods are replaced
	Stays     Forecast = "stays"    // nothing that it reads changes
	GoesStale Forecast = "dormant"  // what it reads changes, and no pod takes it before it starts anew
	IsHeld    Forecast = "held"     // it would roll, and somebody or something holds it
	NextJob   Forecast = "next-job" // the next Job reads it
	Waits     Forecast = "waiting"  // what its pods need would not be there
	IsNew     Forecast = "new"      // it is not there yet
	Undecided Forecast = "unknown"  // a right is missing, or something cannot be read
)

// Plan is a forecast with what it stands on.
type Plan struct {
	cluster.Target
	Forecast Forecast
	Why      string
	Mode     stamp.Mode
	// Template says that its own template differs.
	Template bool
	// Changed are the keys that the next start reads otherwise, of ConfigMaps that change, and Secrets those that are given and read:
	// whether they change is not told.
	Changed []KeysOf
	Secrets []workload.Object
	// HeldBack are the objects that a rollback left on an older version on purpose.
	HeldBack []workload.Object
	// Replicas is how many pods there are meant to be, Replaced how many of them are replaced by themselves, and Pace how.
	Replicas, Replaced int
	Pace               string
	Budgets            []Disruption
	// Owner is who has to do with it; "" when nothing tells.
	Owner string
	// Notes are what else to know.
	Notes []string
}

// KeysOf are keys of one object that differ.
type KeysOf struct {
	Object workload.Object
	Keys   []revision.KeyChange
}

// Disruption is a disruption budget that covers a workload's pods.
type Disruption struct {
	Name string
	// Allowed is how many pods may be evicted now.
	Allowed int
}

// Planner forecasts what becomes of workloads. It only reads.
type Planner struct {
	Connection *cluster.Connection
	// System is Tidemark's own namespace.
	System      string
	DefaultMode stamp.Mode
	Intended    Intended

	key     *digest.Key
	budgets map[string][]policyv1.PodDisruptionBudget
	// Remarks say what could not be read.
	Remarks []string
}

// Plan forecasts one workload; given is nil for one that stays as it is.
func (p *Planner) Plan(ctx context.Context, t cluster.Target, given *Given) (Plan, error) {
	out := Plan{Target: t}
	now := t.Kind.NewObject()
	err := p.Connection.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, now)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		out.Forecast, out.Why = IsNew, "it is not there yet"
		return out, nil
	case apierrors.IsForbidden(err):
		out.Forecast, out.Why = Undecided, cluster.Right{Verb: "get", Resource: cluster.Plural(t.Kind.GroupVersionKind), Namespace: t.Namespace}.Missing()
		return out, nil
	case err != nil:
		return out, fmt.Errorf("get %s: %w", t, err)
	}
	then, err := p.then(t.Kind, now, given, &out)
	var elsewhere *cluster.ElsewhereError
	if errors.As(err, &elsewhere) {
		out.Forecast, out.Why = Stays, elsewhere.Error()
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if err := p.forecast(ctx, now, then, &out); err != nil {
		if !apierrors.IsForbidden(err) {
			return out, err
		}
		out.Forecast, out.Why = Undecided, "missing a right: "+err.Error()
	}
	p.surroundings(ctx, then, &out)
	return out, nil
}

// then is the workload as it is once the manifests are applied: what others put on its template stays.
func (p *Planner) then(k cluster.Kind, now client.Object, given *Given, out *Plan) (client.Object, error) {
	there, err := k.Template(now)
	if err != nil || given == nil {
		return now, err
	}
	out.Template = !podtemplate.Leaves(there, given.Template)
	then, err := rolledAs(k, now, given.Rollout)
	if err != nil {
		return nil, fmt.Errorf("%s: its replicas, strategy or pause are such as the API would refuse", out.Target)
	}
	annotations := maps.Clone(now.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, given.Annotations)
	then.SetAnnotations(annotations)
	template := there.DeepCopy()
	if out.Template {
		template = given.Template.DeepCopy()
		template.Annotations = joined(there.Annotations, given.Template.Annotations)
		template.Labels = joined(there.Labels, given.Template.Labels)
	}
	return then, setTemplate(k, then, template)
}

// rolledAs is a copy of an object of the kind with fields of its spec replaced.
func rolledAs(k cluster.Kind, obj client.Object, fields map[string]any) (client.Object, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var plain map[string]any // with numbers as the converter has them
	if err := utiljson.Unmarshal(data, &plain); err != nil {
		return nil, err
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	for name, value := range plain {
		if err := unstructured.SetNestedField(m, value, "spec", name); err != nil {
			return nil, err
		}
	}
	out := k.NewObject()
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(m, out)
}

func joined(below, above map[string]string) map[string]string {
	out := maps.Clone(below)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, above)
	return out
}

// setTemplate replaces the pod template of an object of the kind.
func setTemplate(k cluster.Kind, obj client.Object, template *corev1.PodTemplateSpec) error {
	u, other := obj.(*unstructured.Unstructured)
	if !other {
		t, err := k.Template(obj)
		if err == nil {
			*t = *template
		}
		return err
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return fmt.Errorf("write pod template: %w", err)
	}
	return unstructured.SetNestedMap(u.Object, m, k.TemplatePath...)
}

// forecast decides as the controller would, on what is applied then.
func (p *Planner) forecast(ctx context.Context, now, then client.Object, out *Plan) error {
	before, err := p.facts(ctx, p.Connection.Client, out.Kind, now)
	if err != nil {
		return err
	}
	after, err := p.facts(ctx, intendedClient{p.Connection.Client, p.Intended}, out.Kind, then)
	if err != nil {
		return err
	}
	out.Mode = after.State.Mode
	out.Changed = changedKeys(before, after)
	for _, o := range after.State.Objects {
		if p.Intended.Secrets[o.Use.Object] {
			out.Secrets = append(out.Secrets, o.Use.Object)
		}
	}
	d := stamp.Decide(after.State)
	out.HeldBack = d.HeldBack
	judge(then, after, d, out)
	return nil
}

// facts are what a decision about the workload stands on.
func (p *Planner) facts(ctx context.Context, c client.Client, k cluster.Kind, obj client.Object) (cluster.Facts, error) {
	if err := p.readKey(ctx); err != nil {
		return cluster.Facts{}, err
	}
	l := &cluster.Live{Copier: &cluster.Copier{Client: c, Key: p.key}, Namespace: p.System, DefaultMode: p.DefaultMode, Secrets: true}
	f, err := l.Look(ctx, k, obj)
	if err != nil {
		return f, err
	}
	err = l.Consumed(ctx, &f)
	return f, err
}

// readKey reads the key of digests of Secrets, once. Without it one of this run serves, to which stamps of Secrets are opaque.
func (p *Planner) readKey(ctx context.Context) (err error) {
	if p.key != nil {
		return nil
	}
	if p.key, err = cluster.StoredKey(ctx, p.Connection.Client, p.System); err != nil {
		p.key, err = digest.RandomKey()
	}
	return err
}

// changedKeys lists the keys that are read and differ between what is applied now and then.
func changedKeys(before, after cluster.Facts) []KeysOf {
	var out []KeysOf
	for _, o := range after.State.Objects {
		a, had := before.ConfigMap(o.Use.Object)
		b, _ := after.ConfigMap(o.Use.Object)
		if !had || a == nil && b == nil {
			continue
		}
		changed := KeysOf{Object: o.Use.Object}
		for _, k := range revision.Keys(contentOrNone(a), contentOrNone(b)) {
			if o.Use.Env.Has(k.Key) || o.Use.Files.Has(k.Key) {
				changed.Keys = append(changed.Keys, k)
			}
		}
		if len(changed.Keys) > 0 {
			out = append(out, changed)
		}
	}
	return out
}

func contentOrNone(cm *corev1.ConfigMap) revision.Content {
	if cm == nil {
		return revision.Content{}
	}
	return revision.ContentOf(cm)
}

// surroundings add who owns the workload, and the disruption budgets of its pods.
func (p *Planner) surroundings(ctx context.Context, obj client.Object, out *Plan) {
	template, err := out.Kind.Template(obj)
	if err != nil {
		return
	}
	ns := cluster.MetadataOf(cluster.NamespaceKind)
	_ = p.Connection.Client.Get(ctx, client.ObjectKey{Name: out.Namespace}, ns) // without it nothing says who owns
	owner, err := cluster.OwnerOf(obj.GetAnnotations(), template.Annotations, ns.Annotations, ns.Labels)
	if err != nil {
		out.Notes = append(out.Notes, err.Error())
	}
	if c := metav1.GetControllerOfNoCopy(obj); c != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("%s/%s controls it, and may put back what is written", c.Kind, c.Name))
		if owner == "" {
			owner = c.Kind + "/" + c.Name
		}
	}
	out.Owner = owner
	for _, b := range p.disruptionsIn(ctx, out.Namespace) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(template.Labels)) {
			out.Budgets = append(out.Budgets, Disruption{b.Name, int(b.Status.DisruptionsAllowed)})
		}
	}
}

// disruptionsIn lists the disruption budgets of a namespace, once.
func (p *Planner) disruptionsIn(ctx context.Context, namespace string) []policyv1.PodDisruptionBudget {
	if known, has := p.budgets[namespace]; has {
		return known
	}
	list := &policyv1.PodDisruptionBudgetList{}
	if err := p.Connection.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		p.Remarks = append(p.Remarks, fmt.Sprintf("list poddisruptionbudgets in namespace %s: %v: what they allow is unknown", namespace, err))
	}
	if p.budgets == nil {
		p.budgets = map[string][]policyv1.PodDisruptionBudget{}
	}
	p.budgets[namespace] = list.Items
	return list.Items
}
