package fleet

import (
	"fmt"
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

// finding is what was found out of one container and one object.
type finding struct {
	Loaded
	use    workload.Consumption
	object *Object
	// content is what was loaded, as far as the use reads it; meaningful with a Digest.
	content digest.Content
	// counts says that the finding counts for its pod: what a program reloads by itself does not.
	counts bool
	// tooRecent says that the evidence does not decide yet, and will shortly.
	tooRecent bool
	// hinted says that a write is recorded after the container started.
	hinted bool
}

// find gives what is known of each object that the container consumes.
func (r *reader) find() []finding {
	var out []finding
	for _, use := range r.uses() {
		out = append(out, r.findOne(use))
	}
	pinned := r.pinnedUses()
	for _, p := range pinned {
		out = append(out, r.findPinned(p))
	}
	for i := range out {
		r.heed(&out[i])
	}
	if len(pinned) == 0 {
		return out
	}
	slices.SortStableFunc(out, func(a, b finding) int { return a.Object.Compare(b.Object) })
	return out
}

// uses are what the container consumes of what is applied. What only an annotation names belongs to every main container: the programs read it
// through the API when they start.
func (r *reader) uses() []workload.Consumption {
	var uses []workload.Consumption
	for _, u := range r.container.Uses {
		if !slices.Contains(r.fleet.Ignored, u.Object) {
			uses = append(uses, u)
		}
	}
	for _, o := range r.fleet.Objects {
		if o.Use.Named && r.container.Role == workload.RoleMain {
			uses = append(uses, o.Use)
		}
	}
	return uses
}

// pinnedUses are what the container consumes through its pod's pins.
func (r *reader) pinnedUses() []PinnedUse {
	return slices.DeleteFunc(slices.Clone(r.container.Pinned), func(p PinnedUse) bool {
		return slices.Contains(r.fleet.Ignored, p.Use.Object)
	})
}

// consumes reports whether the container consumes anything.
func (r *reader) consumes() bool { return len(r.uses()) > 0 || len(r.pinnedUses()) > 0 }

// about begins a finding: what is applied of the object, and nothing of what was loaded.
func (r *reader) about(use workload.Consumption) finding {
	out := finding{use: use, object: r.fleet.object(use.Object), counts: true}
	out.Object, out.Evidence = use.Object, NotKnown
	if out.object == nil {
		out.Why = "it is no longer used by the workload's template and was not read"
		return out
	}
	out.Live, out.counts = out.object.Live, !out.object.Live
	if out.object.Applied != nil {
		out.Applied = out.object.Applied.Consumed(use)
	}
	return out
}

func (r *reader) findOne(use workload.Consumption) finding {
	out := r.about(use)
	if out.object == nil {
		return out
	}
	o := out.object
	if r.container.Started.IsZero() {
		out.Why = "it is not known when the container started"
		return out
	}
	out.hinted = !o.Written.Before(r.container.Started.Add(apiSecond))
	if len(o.Log.Versions) == 0 {
		out.byWriteTimes()
		return out
	}
	span := r.of(use, o.Live)
	out.Since = span.From
	out.infer(span)
	out.tooRecent = out.Digest == "" && span.complete.After(o.LogTo) && r.fleet.Now.Sub(r.container.Started) <= recent
	return out
}

// recent is how long after a start it is said to be too early to tell what was read.
const recent = time.Minute

// byWriteTimes compares the container's start with the recorded times of writes, which never prove content.
func (f *finding) byWriteTimes() {
	f.Evidence = ByWriteTimes
	f.Why = "no recorded write since the container started"
	if f.hinted {
		f.Why = fmt.Sprintf("written by %s at %s, after the container started", f.object.WrittenBy, clock(f.object.Written))
	}
}

// infer asks the log what was applied during the read.
func (f *finding) infer(r read) {
	unreadable, until := false, f.object.LogTo
	if !r.complete.After(until) {
		until = later(until, r.To)
	}
	answer := f.object.Log.Over(r.Span, until, f.use, func(c digest.Content) digest.Digest {
		if !r.unreadable(c) {
			return c.Consumed(f.use)
		}
		if !r.lingers {
			return "" // the container would not have started
		}
		unreadable = true
		return c.Consumed(f.use)
	})
	switch {
	case answer.Digest == "" && r.doubt != "":
		f.Why = answer.Why + "; " + r.doubt
		return
	case answer.Digest == "":
		f.Why = answer.Why
		return
	case unreadable:
		f.Why = "something that it requires was missing, and files of before may have stayed"
		return
	}
	f.Digest = answer.Digest
	if why := f.incomparable(); why != "" {
		f.Digest, f.Why = "", why
		return
	}
	f.Evidence = Inferred
	f.content = f.object.Log.Versions[answer.Version].Content
	f.Why = fmt.Sprintf("read between %s and %s, when it had one content", clock(r.From), clock(r.To))
	f.noteChange()
}

// incomparable says why what was loaded does not compare with what is applied; "" when it does, or when one of the two is not
// known.
func (f *finding) incomparable() string {
	if f.Digest == "" || f.Applied == "" || digest.Comparable(f.Digest, f.Applied) {
		return ""
	}
	return "what it read has a digest made with another key, or by another method, than what is applied"
}

// noteChange notes since when the object has not been what was loaded.
func (f *finding) noteChange() {
	if f.Behind() {
		f.Changed = trailing(f.object.Log, f.use, func(c digest.Content) bool { return c.Consumed(f.use) != f.Digest })
	}
}

// trailing is since when what the use reads of the log's contents has had the property without a break; zero when the newest has it
// not, when it may have begun before the log, or when it is forgotten.
func trailing(l history.Log, use workload.Consumption, has func(digest.Content) bool) time.Time {
	i := len(l.Versions)
	for i > 0 && l.Versions[i-1].Tells(use) && has(l.Versions[i-1].Content) {
		i--
	}
	if i == 0 || i == len(l.Versions) || !l.Versions[i-1].Tells(use) {
		return time.Time{}
	}
	return l.Versions[i].Seen
}

// clock words a time for people.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
