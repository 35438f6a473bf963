package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// seen is what a survey keeps of one workload.
type seen struct {
	Target
	uid   types.UID
	owner *metav1.OwnerReference
	// annotations, labels and template are those of Tidemark, and of tools that it stands in for.
	annotations, labels, template map[string]string
	selector                      labels.Selector
	references                    []workload.Reference
	uses                          []workload.Consumption
	pins                          snapshot.Pins
	rollout                       Rollout
	pace                          fleet.Rollout
	problems                      []string
	blind                         string
	pods                          []fleet.Pod
	// elsewhere is what has the pod template; nil where the workload itself has.
	elsewhere *ElsewhereError
	// referred says that a Rollout takes its template from the workload. generation is that of the workload, and observes
	// the one of the workload elsewhere which a Rollout's controller has seen.
	referred   bool
	generation int64
	observes   string
	// suspect is the workload whole, where more than one of its revisions may run for long.
	suspect client.Object
	partial *fleet.Partial
}

func (r *reading) readWorkloads(ctx context.Context) error {
	if len(r.Targets) > 0 {
		return r.getTargets(ctx)
	}
	var forbidden []string
	answered := false
	for _, k := range r.Kinds {
		allowed, err := r.listKind(ctx, k)
		if err != nil {
			return err
		}
		if !allowed {
			forbidden = append(forbidden, Plural(k.GroupVersionKind))
			r.sight.LeftOut = append(r.sight.LeftOut, k)
		}
		answered = answered || allowed && !k.Optional()
	}
	if len(forbidden) > 0 && !answered && len(r.seen) == 0 {
		needs := Right{Verb: "list", Resource: strings.Join(forbidden, ", "), Namespace: r.Namespace}
		return errors.New(needs.Missing() + ": look at a namespace that you may read, or ask for the ClusterRole view")
	}
	return nil
}

func (r *reading) listKind(ctx context.Context, k Kind) (allowed bool, err error) {
	opts := []client.ListOption{client.InNamespace(r.Namespace)}
	if r.Selector != nil {
		opts = append(opts, client.MatchingLabelsSelector{Selector: r.Selector})
	}
	err = EachItem(ctx, r.Client, k.NewList, PageSize, func(obj client.Object) { r.see(k, obj) }, opts...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		if k.Optional() {
			return true, nil
		}
		r.sight.Remarks = append(r.sight.Remarks, (&NotServedError{GVK: k.GroupVersionKind}).Error())
		return true, nil
	}
	return r.permitted(err, Right{"list", Plural(k.GroupVersionKind), r.Namespace, "its workloads are left out"})
}

func (r *reading) getTargets(ctx context.Context) error {
	for _, t := range r.Targets {
		obj := t.Kind.NewObject()
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, obj)
		switch {
		case err == nil:
			r.see(t.Kind, obj)
		case meta.IsNoMatchError(err):
			return &NotServedError{GVK: t.Kind.GroupVersionKind}
		case apierrors.IsNotFound(err):
			r.sight.NotFound = append(r.sight.NotFound, t)
		case apierrors.IsForbidden(err):
			return errors.New(Right{Verb: "get", Resource: t.String(), Namespace: t.Namespace}.Missing())
		default:
			return fmt.Errorf("get %s: %w", t, err)
		}
	}
	return nil
}

// see reduces a workload to what the survey keeps of it.
func (r *reading) see(k Kind, obj client.Object) {
	s := &seen{
		Target:      Target{Kind: k, Namespace: obj.GetNamespace(), Name: obj.GetName()},
		uid:         obj.GetUID(),
		owner:       metav1.GetControllerOfNoCopy(obj),
		annotations: kept(obj.GetAnnotations()),
		labels:      kept(obj.GetLabels()),
		rollout:     RolloutOf(obj),
		pace:        PaceOf(obj),
		generation:  obj.GetGeneration(),
	}
	s.problems = RolloutProblems(obj)
	if u, is := isArgo(obj); is {
		s.observes = readArgo(u).Status.WorkloadObservedGeneration
	}
	r.seen = append(r.seen, s)
	if MayStayUnfinished(obj) {
		s.suspect = obj
	}
	s.selector = selectorOf(obj)
	template, err := k.Template(obj)
	if errors.As(err, &s.elsewhere) && s.elsewhere.Known() {
		return // followed when everything else is seen
	}
	if err != nil {
		s.blind = err.Error()
		return
	}
	s.consumes(template)
}

// consumes reads what the pod template of a workload says.
func (s *seen) consumes(template *corev1.PodTemplateSpec) {
	s.template = kept(template.Annotations)
	var errs []error
	s.references, s.uses, errs = ConsumptionOf(s.Namespace, s.annotations, template)
	for _, err := range errs {
		s.problems = append(s.problems, err.Error())
	}
	var err error
	if s.pins, err = snapshot.ParsePins(s.Namespace, s.template[v1.AnnotationPins]); err != nil {
		s.problems = append(s.problems, "pod template: "+err.Error())
	}
}

// kept are the annotations, or labels, that a reading of the workload heeds.
func kept(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name, _ string) bool {
		return !strings.HasPrefix(name, v1.Domain+"/") && !strings.HasPrefix(name, "wave.pusher.com/")
	})
	return out
}

// selectorOf is the selector of a workload's pods; nil when it has none.
func selectorOf(obj client.Object) labels.Selector {
	var selector *metav1.LabelSelector
	switch o := obj.(type) {
	case *appsv1.Deployment:
		selector = o.Spec.Selector
	case *appsv1.StatefulSet:
		selector = o.Spec.Selector
	case *appsv1.DaemonSet:
		selector = o.Spec.Selector
	case *unstructured.Unstructured:
		if _, is := isArgo(o); !is {
			return nil // a field of that name may mean anything
		}
		selector = readArgo(o).Spec.Selector
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && selector != nil && !s.Empty() {
		return s
	}
	return nil
}
