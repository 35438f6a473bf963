package cluster

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/fleet"
)

// owned are pods by the controller that owns them, with the way up from there.
type owned struct {
	pods map[types.UID][]fleet.Pod
	// kinds are those of the controllers whose own owner is not known yet.
	kinds map[types.UID]schema.GroupVersionKind
	// owners are the controllers of controllers; nil for one that has none.
	owners map[types.UID]*metav1.OwnerReference
}

var (
	replicaSet         = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	controllerRevision = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	job                = batchv1.SchemeGroupVersion.WithKind("Job")
	deployment         = appsv1.SchemeGroupVersion.WithKind("Deployment")
	statefulSet        = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSet          = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	cronJob            = batchv1.SchemeGroupVersion.WithKind("CronJob")
)

// readPods gives each workload seen the pods that it controls, directly or through others.
func (r *reading) readPods(ctx context.Context) error {
	if len(r.seen) == 0 {
		return nil
	}
	o := owned{map[types.UID][]fleet.Pod{}, map[types.UID]schema.GroupVersionKind{}, map[types.UID]*metav1.OwnerReference{}}
	for _, q := range r.queries() {
		err := EachItem(ctx, r.Client, func() client.ObjectList { return &corev1.PodList{} }, PageSize, func(pod *corev1.Pod) {
			o.take(pod)
			r.declare(pod)
		}, q.options()...)
		needs := Right{"list", "pods", q.namespace, "what runs is unknown"}
		if ok, err := r.permitted(err, needs); err != nil {
			return err
		} else if !ok {
			r.blindAll(needs, func(*seen) bool { return true })
			return nil
		}
	}
	if err := r.climb(ctx, o); err != nil {
		return err
	}
	r.attach(o)
	return nil
}

// take keeps the facts of a pod that some controller owns.
func (o owned) take(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || Finished(pod) {
		return
	}
	facts := PodOf(pod)
	if before := o.pods[owner.UID]; len(before) > 0 {
		shareUses(&facts, &before[len(before)-1])
	}
	o.pods[owner.UID] = append(o.pods[owner.UID], facts)
	o.kinds[owner.UID] = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
}

// shareUses lets a pod share the memory of what its containers use with another pod of the same controller.
func shareUses(pod, with *fleet.Pod) {
	if len(pod.Containers) != len(with.Containers) {
		return
	}
	for i := range pod.Containers {
		if reflect.DeepEqual(pod.Containers[i].Uses, with.Containers[i].Uses) {
			pod.Containers[i].Uses = with.Containers[i].Uses
		}
		if reflect.DeepEqual(pod.Containers[i].Pinned, with.Containers[i].Pinned) {
			pod.Containers[i].Pinned = with.Containers[i].Pinned
		}
	}
}

// maxClimb bounds how many controllers may stand between a pod and its workload.
const maxClimb = 4

// climb finds the owners of controllers that are no workloads themselves: ReplicaSets and Jobs, and others where kinds of
// workload were added by configuration. Only metadata is read.
func (r *reading) climb(ctx context.Context, o owned) error {
	walked := map[schema.GroupVersionKind]bool{}
	for range maxClimb {
		next := r.toWalk(o, walked)
		if len(next) == 0 {
			return nil
		}
		for _, gvk := range next {
			walked[gvk] = true
			if err := r.readOwners(ctx, o, gvk); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reading) toWalk(o owned, walked map[schema.GroupVersionKind]bool) []schema.GroupVersionKind {
	workloads := r.byUID()
	var next []schema.GroupVersionKind
	for uid, gvk := range o.kinds {
		if _, known := o.owners[uid]; known || workloads[uid] != nil || walked[gvk] || slices.Contains(next, gvk) {
			continue
		}
		if slices.ContainsFunc(r.seen, func(s *seen) bool { return s.mayOwn(gvk) }) {
			next = append(next, gvk)
		}
	}
	return next
}

// mayOwn reports whether a workload may control objects of the kind that in turn control its pods.
func (s *seen) mayOwn(gvk schema.GroupVersionKind) bool {
	switch s.Kind.GroupVersionKind {
	case deployment, ArgoRollout:
		return gvk == replicaSet
	case cronJob:
		return gvk == job
	}
	return !s.Kind.builtin()
}

// builtin reports whether the kind is known without configuration.
func (k Kind) builtin() bool {
	return slices.ContainsFunc(BuiltinKinds(), func(b Kind) bool { return b.GroupVersionKind == k.GroupVersionKind })
}

// readOwners notes who controls the objects of the kind.
func (r *reading) readOwners(ctx context.Context, o owned, gvk schema.GroupVersionKind) error {
	for _, q := range r.queries() {
		err := EachItem(ctx, r.Client, MetadataList(gvk), PageSize, func(m *metav1.PartialObjectMetadata) {
			owner := metav1.GetControllerOfNoCopy(m)
			o.owners[m.UID] = owner
			if owner != nil {
				o.kinds[owner.UID] = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
			}
		}, q.options()...)
		if meta.IsNoMatchError(err) {
			return nil // its definition was removed: nothing can own pods through it any more
		}
		needs := Right{"list", Plural(gvk), q.namespace, "whose pods are whose is unknown in part"}
		if ok, err := r.permitted(err, needs); err != nil {
			return err
		} else if !ok {
			r.blindAll(needs, func(s *seen) bool { return s.mayOwn(gvk) })
		}
	}
	return nil
}

// attach gives the pods of each controller to every workload on the way up from it.
func (r *reading) attach(o owned) {
	workloads := r.byUID()
	for controller, pods := range o.pods {
		uid := controller
		for range maxClimb + 1 {
			owner := o.owners[uid]
			if s := workloads[uid]; s != nil {
				s.pods = append(s.pods, pods...)
				owner = s.owner
			}
			if owner == nil {
				break
			}
			uid = owner.UID
		}
	}
	for _, s := range r.seen {
		slices.SortFunc(s.pods, func(a, b fleet.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
}

func (r *reading) byUID() map[types.UID]*seen {
	out := make(map[types.UID]*seen, len(r.seen))
	for _, s := range r.seen {
		out[s.uid] = s
	}
	return out
}

func (r *reading) blindAll(needs Right, affected func(*seen) bool) {
	for _, s := range r.seen {
		if s.blind == "" && affected(s) {
			s.blind = needs.Missing()
		}
	}
}

// query is one list of pods, or of what owns them.
type query struct {
	namespace string
	selector  labels.Selector
}

func (q query) options() []client.ListOption {
	opts := []client.ListOption{client.InNamespace(q.namespace)}
	if q.selector != nil {
		opts = append(opts, client.MatchingLabelsSelector{Selector: q.selector})
	}
	return opts
}

// queries are the lists that hold the pods of all workloads seen: one for the whole scope, or one for each namespace of
// named workloads, narrowed where there is only one in it.
func (r *reading) queries() []query {
	if len(r.Targets) == 0 {
		return []query{{namespace: r.Namespace}}
	}
	var out []query
	for _, s := range r.seen {
		i := slices.IndexFunc(out, func(q query) bool { return q.namespace == s.Namespace })
		if i < 0 {
			out = append(out, query{s.Namespace, s.selector})
		} else {
			out[i].selector = nil
		}
	}
	return out
}
