package fleet

import (
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// apiSecond is how much later than it says a time of the API may be: it truncates times to seconds.
const apiSecond = time.Second

// read is the stretch of time at some instant of which the content was applied that a container loaded of an object.
type read struct {
	history.Span
	// complete is until when the history must be known: To, unless that is later than now only by another clock.
	complete time.Time
	use      workload.Consumption
	// doubt is why the stretch could not be made shorter; "" when nothing stood in the way.
	doubt string
	// lingers says that files of before may have stayed where the object could not be read.
	lingers bool
}

// unreadable reports whether no container can have started with the content: what it requires is not there.
func (r read) unreadable(c digest.Content) bool { return len(missingOf(r.use, c)) > 0 }

// reader is a container of a pod, in whose life its reads are found.
type reader struct {
	fleet     *Fleet
	pod       *Pod
	container *Container
	// cut says that the pod's node may have been cut off at a time that matters.
	cut bool
}

// of gives the stretch for one object: over all views through which the container reads it, and for each from the latest
// moment at which it surely had not been read to the earliest at which it surely had.
func (r *reader) of(use workload.Consumption, live bool) read {
	r.cut = false
	out := read{use: use, Span: r.environment()}
	reloads := (r.fleet.Reloads || live) && use.Refreshed && !use.Files.Empty()
	if !use.Files.Empty() {
		out.lingers = reloads || r.container.Restarts > 0
		files := r.files(use, reloads)
		if use.Env.Empty() {
			out.Span = files
		}
		out.From, out.To = earlier(out.From, files.From), later(out.To, files.To)
	}
	out.complete = out.To
	if reloads {
		out.To = later(out.To, r.fleet.Now.Add(r.fleet.Settings.Skew))
	}
	out.doubt = r.doubt(out.Span)
	return out
}

// podFrom is the moment from which on anything that the pod reads was applied: kubelets read in a pod what was applied
// after its creation, less [Settings].ReadLag. That holds for later reads in the pod too, also on a node that was cut off
// meanwhile, because what a kubelet knows never goes back.
//
// A pod with the very stamp that was written last was created after that write, unless its own creation says otherwise.
// The time of the write is by the clock of the history and not truncated, so it is the sharper bound for the first pods of
// a rollout: where content is quiet for ReadLag before its stamp is written, they cannot have read what was before it.
//
// A kubelet that had been cut off may give the pod what it knew before, of an object that another pod there uses.
func (r *reader) podFrom() time.Time {
	s := r.fleet.Settings
	from := r.pod.Created.Add(-s.Skew)
	written := r.fleet.stampWritten()
	if !written.IsZero() && r.pod.Stamp == r.fleet.Record.Stamp && !written.After(r.pod.Created.Add(apiSecond+s.Skew)) {
		from = later(from, written)
	}
	return r.known(from).Add(-s.ReadLag)
}

// known is the moment from which on a kubelet surely knew what was applied, of what it serves at a moment or later: that moment,
// or the last sign of life before a silence of its node that had not ended long before.
func (r *reader) known(at time.Time) time.Time {
	s := r.fleet.Settings
	for _, silence := range slices.Backward(r.pod.Silences) {
		began, over := silence.From.Add(-s.Skew), silence.To.Add(s.Skew+s.ResumeLag)
		if began.Before(at) && (silence.To.IsZero() || !over.Before(at)) {
			at = began
		}
	}
	return at
}

// stampWritten is when the stamp of the record was written; zero when the record does not tell, or when something else was
// done since: then pods of the stamp may be older than the last write of one.
func (f *Fleet) stampWritten() time.Time {
	r := f.Record
	if r == nil || r.Stamp == "" || r.Last == nil || r.Last.Action != stamp.WriteStamp {
		return time.Time{}
	}
	return r.Last.Time
}

// environment is read when a container is created, before it starts: first after the pod and its init containers, later
// after the run before has ended.
func (r *reader) environment() history.Span {
	span := history.Span{From: r.podFrom(), To: r.started()}
	switch c := r.container; {
	case r.restarted():
		span.From = r.after(c.PreviousEnded, 0)
	case c.Restarts == 0 && c.Role == workload.RoleMain && r.before(r.pod.InitEnded):
		span.From = r.after(r.pod.InitEnded, 0)
	}
	return span
}

// files are mounted before the init containers run and are there when a container starts again. A program may still read
// those that are replaced in place for a while after its start.
func (r *reader) files(use workload.Consumption, reloads bool) history.Span {
	s := r.fleet.Settings
	span := history.Span{From: r.podFrom(), To: r.started()}
	if use.Refreshed || use.Named {
		span.To = span.To.Add(s.LoadTime)
	}
	switch {
	case reloads:
		span.From = r.after(r.fleet.Now, s.RefreshLag+s.LoadTime)
		span.To = r.fleet.Now
	case r.restarted():
		span.From = r.after(r.container.PreviousEnded, s.RefreshLag)
	}
	return span
}

// after is the moment from which on anything was applied that is read after the event on the node, be it stale by the lag
// and by what a node may miss that was cut off unnoticed. A node that was not ready all the while may have missed
// everything since the pod's first read.
func (r *reader) after(event time.Time, lag time.Duration) time.Time {
	s := r.fleet.Settings
	served := event.Add(-s.Skew - lag)
	from := earlier(served.Add(-max(s.CutLag, s.ReadLag)), r.known(served).Add(-s.ReadLag))
	first := r.podFrom()
	if !from.After(first) {
		return first
	}
	ready := r.pod.NodeReadySince
	if ready.IsZero() || from.Before(ready.Add(apiSecond+s.Skew)) {
		r.cut = true
		return first
	}
	return from
}

// restarted reports whether the present run began after another one whose end is known.
func (r *reader) restarted() bool {
	return r.container.Restarts > 0 && r.before(r.container.PreviousEnded)
}

// before reports whether a moment on the node is known and was before the container's start.
func (r *reader) before(event time.Time) bool {
	return !event.IsZero() && !event.After(r.container.Started.Add(apiSecond))
}

// doubt says why a start is known no better than from the pod's own creation, or from before it.
func (r *reader) doubt(over history.Span) string {
	switch {
	case r.cut:
		return "node " + r.pod.Node + " was not ready all the while"
	case slices.ContainsFunc(r.pod.Silences, func(silence history.Span) bool { return silence.From.After(over.From) && silence.From.Before(over.To) }):
		return "node " + r.pod.Node + " gave no sign of life for a while"
	case r.container.Restarts > 0 && !r.restarted():
		return "it is not known when the run before ended"
	}
	return ""
}

// started is the latest moment at which the container's present run can have started.
func (r *reader) started() time.Time {
	return r.container.Started.Add(apiSecond + r.fleet.Settings.Skew)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
