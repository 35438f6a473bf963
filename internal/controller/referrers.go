package controller

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"tidemark.dev/tidemark/internal/cluster"
)

// elsewhere is the workload that has the pod template of this one; false when this one has its own, or when nothing is known of
// what has it.
func (s *subject) elsewhere() (ID, bool) {
	var other *cluster.ElsewhereError
	if s == nil || !errors.As(s.bad, &other) || !other.Known() {
		return ID{}, false
	}
	return ID{cluster.BuiltinKinds()[0].GroupVersionKind, types.NamespacedName{Namespace: s.id.Namespace, Name: other.Name}}, true
}

// refer keeps right which workloads take their template from which, when the state of one changes. The index is locked.
func (x *index) refer(before, after *subject) {
	if holder, ok := before.elsewhere(); ok {
		delete(x.referrers[holder], before.id)
		if len(x.referrers[holder]) == 0 {
			delete(x.referrers, holder)
		}
	}
	if holder, ok := after.elsewhere(); ok {
		if x.referrers[holder] == nil {
			x.referrers[holder] = map[ID]struct{}{}
		}
		x.referrers[holder][after.id] = struct{}{}
	}
}

// referring lists the workloads that take their template from this one.
func (x *index) referring(id ID) []*subject {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []*subject
	for by := range x.referrers[id] {
		if s := x.subjects[by]; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// holderOf is the workload that has the template of this one; false when this one has its own.
func (x *index) holderOf(id ID) (ID, bool) { return x.workload(id).elsewhere() }

// referred is what a workload whose template is elsewhere has to say: nothing is decided on it. Its problems are those of
// annotations that say something of the template.
func (s *subject) referred(v *view) bool {
	var other *cluster.ElsewhereError
	if !errors.As(s.bad, &other) {
		return false
	}
	v.problems = append(v.problems, other.Problems(s.object.GetAnnotations())...)
	v.blind = s.bad.Error()
	return true
}

// pausedByReferrer says who stopped all writes on a workload that takes its template from this one; "" when nobody did.
func (c *Controller) pausedByReferrer(id ID) string {
	for _, s := range c.index.referring(id) {
		if by := cluster.PausedBy(s.object.GetAnnotations(), s.object.GetLabels(), nil, nil); by != "" {
			return by
		}
	}
	return ""
}

// rollout is how far the rollout of a workload is. Where others take their template from it they are what rolls.
func (c *Controller) rollout(s *subject) cluster.Rollout {
	r := cluster.RolloutOf(s.object)
	for _, by := range c.index.referring(s.id) {
		own := cluster.RolloutOfTemplate(by.object, s.object.GetGeneration())
		r.Done = r.Done && own.Done
		if r.Stuck == "" {
			r.Stuck = own.Stuck
		}
	}
	return r
}
