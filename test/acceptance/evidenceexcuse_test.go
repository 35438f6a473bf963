package acceptance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/wire"
)

// What may be unknown where steps are apart, by the record of the lab and of the test. The reasons that status gives are not
// heeded.

// slack is by how much the test's own times of writes may be off, with the time that a change may take to be seen.
const slack = 3 * time.Second

// excuse finds out why a statement could not be known, and refutes it when it could: when the object had one content over the
// whole time in which the container may have read it.
func (j *judge) excuse(s statement, start wire.Start) {
	o, excused := j.object(s), j.court.count[s.margins].excused
	from, to, ok := j.interval(s, start)
	if !ok {
		excused["of a pod that is gone"]++
		return
	}
	if j.wasNotReady(s.node, from) {
		excused["on a node that was not ready, which a machine that is too busy makes of one that nobody cut off"]++
		return
	}
	if slices.ContainsFunc(j.silences[s.node], func(q history.Span) bool { return q.From.Before(to) && (q.To.IsZero() || q.To.Add(stale).After(from)) }) {
		excused["on a node that gave no sign of life for a while, because it was cut off or the machine is too busy"]++
		return
	}
	if slices.ContainsFunc(j.unled, func(u history.Span) bool { return !from.After(u.To) && !to.Before(u.From) }) {
		excused["while no controller led, because one had given up on a machine that is too busy"]++
		return
	}
	during, since := o.between(from.Add(-slack), to.Add(slack))
	switch {
	case len(j.digests(s, during)) > 1:
		excused["changed while they may have been read"]++
	case !s.isReloaded() && start.Attempt > 0 && j.mayLinger(s, during):
		excused["missing, and required, so that files of before may have stayed"]++
	case s.isReloaded() && (o.touched || o.now == nil):
		excused["read up to now, by when a history that is late cannot tell that nothing but metadata changed, or that nothing came"]++
	case since >= history.MaxVersions:
		excused["changed more often since than is remembered"]++
	default:
		j.refute(s, "could be known: from %v to %v it had one content; started %v, read %v, cuts %v\nstates of %s:%s",
			from.UTC(), to.UTC(), start.Started, start.Read, j.cuts, o, j.story(o, s))
	}
}

// mayLinger reports whether the object was away, and is required as files: then those that were mounted before stay.
func (j *judge) mayLinger(s statement, during []written) bool {
	return slices.ContainsFunc(during, func(w written) bool { return w.data == nil }) &&
		slices.ContainsFunc(j.uses[s.container], func(use workload.Consumption) bool {
			return use.Object == j.object(s).Object && use.Required && !use.Files.Empty()
		})
}

// interval is the time in which the container may have read the object, by what the lab and the API say of its life.
func (j *judge) interval(s statement, start wire.Start) (from, to time.Time, ok bool) {
	lag := j.margins.CutLag
	for _, use := range j.uses[s.container] {
		if use.Object == j.object(s).Object && !use.Files.Empty() {
			lag += j.margins.RefreshLag
		}
	}
	to = start.Started.Add(j.margins.LoadTime)
	switch {
	case s.isReloaded():
		return s.said.Add(-lag - j.margins.LoadTime), s.said, true
	case start.Attempt > 0:
		from, ok = j.ended(start)
		return from.Add(-lag), to, ok
	}
	pod := &corev1.Pod{}
	err := j.API.Get(j.t.Context(), ctrlclient.ObjectKey{Namespace: j.Namespace, Name: s.pod}, pod)
	j.must(ctrlclient.IgnoreNotFound(err))
	return pod.CreationTimestamp.Add(-j.margins.CutLag), to, string(pod.UID) == start.PodUID
}

// wasNotReady reports whether the node was not ready at the time or later, by the API.
func (j *judge) wasNotReady(name string, from time.Time) bool {
	node := &corev1.Node{}
	j.must(j.API.Get(j.t.Context(), ctrlclient.ObjectKey{Name: name}, node))
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue || c.LastTransitionTime.After(from.Add(-slack))
		}
	}
	return true
}

// ended is when the run before this start ended.
func (j *judge) ended(of wire.Start) (time.Time, bool) {
	starts, err := j.Lab.Record(j.t.Context(), wire.Filter{Selector: wire.Selector{
		Namespace: j.Namespace, PodPrefix: of.Pod, Container: of.Container,
	}})
	j.must(err)
	for _, s := range starts {
		if s.PodUID == of.PodUID && s.Attempt == of.Attempt-1 {
			return s.Finished, true
		}
	}
	return time.Time{}, false
}

// between gives the states that the object may have been in at any time between two, and how many came after the first.
func (o *configObject) between(from, to time.Time) (during []written, since int) {
	for i, state := range o.ever {
		if state.at.After(from) {
			since++
		}
		if state.at.After(to) || i+1 < len(o.ever) && o.ever[i+1].at.Before(from) {
			continue
		}
		during = append(during, state)
	}
	return during, since
}
