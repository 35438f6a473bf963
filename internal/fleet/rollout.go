package fleet

import (
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// rolloutBegun is when the rollout began that the pods may be in: when the stamp was written for the change or, where no
// stamp was, when the change happened and a second version appeared. Zero when nothing tells.
func (s survey) rolloutBegun() time.Time {
	changed := s.changedAt()
	if at := s.stampWritten(); !at.IsZero() && s.Record.Stamp == s.Stamp && !at.Before(changed.Truncate(time.Second)) {
		return at
	}
	if s.count(behind) == 0 || s.RolloutDone && !s.onTheirWay() {
		return changed
	}
	return later(changed, s.formed())
}

// goesOn reports whether a rollout is under way that will end what is seen: pods of an older stamp or revision are still to be
// replaced, old pods are on their way out, or the last new ones have just started.
func (s survey) goesOn() bool {
	if s.count(behind) == 0 {
		if s.count(unsure) > 0 {
			return false
		}
		return s.count(recently) > 0 || s.running() > 0 && s.count(starting) > 0 && !s.RolloutDone
	}
	if s.awaitsStamp() || s.onTheirWay() {
		return true
	}
	return !s.RolloutDone && (s.differ() || s.count(starting) > 0)
}

// awaitsStamp reports whether a stamp was written last that some pod behind does not have yet.
func (s survey) awaitsStamp() bool {
	if s.stampWritten().IsZero() || s.Record.Stamp != s.Stamp {
		return false
	}
	return slices.ContainsFunc(s.pods, func(p surveyed) bool { return p.standing == behind && p.Stamp != s.Stamp })
}

// onTheirWay reports whether every pod that is behind is being deleted.
func (s survey) onTheirWay() bool {
	return !slices.ContainsFunc(s.pods, func(p surveyed) bool { return p.standing == behind && !p.Terminating })
}

// stalled reports whether pods are behind beside pods of another revision that do not come to run: a rollout that got
// stuck at its first pods.
func (s survey) stalled() bool {
	old := map[string]bool{}
	for _, p := range s.pods {
		if p.standing == behind {
			old[p.Revision] = true
		}
	}
	return len(old) > 0 && slices.ContainsFunc(s.pods, func(p surveyed) bool {
		return p.standing == starting && !p.Terminating && !old[p.Revision]
	})
}

// partly reports whether some pod is behind of which not everything is known.
func (s survey) partly() bool {
	return slices.ContainsFunc(s.pods, func(p surveyed) bool {
		return slices.ContainsFunc(p.findings, func(x finding) bool { return x.Digest == "" || x.Applied == "" })
	})
}

// wanted lists the objects for whose content the stamp would be written, as far as the record tells: those that are not what
// was accounted for when it was left.
func (s survey) wanted() []workload.Object {
	if s.Record == nil || s.Record.Stamp != s.Stamp {
		return nil // a new template, or a rollback: the retained revisions are not known here
	}
	state := stamp.State{
		Namespace: s.Namespace, Mode: s.Mode, Record: s.Record, Intact: true, Marked: true, Stamp: s.Stamp, Pins: s.Pins, Images: s.Record.Images,
	}
	for _, o := range s.Objects {
		if o.Applied == nil {
			return nil
		}
		wanted := stamp.Object{Use: o.Use, Applied: *o.Applied, Live: o.Live}
		if pin := s.Pins[o.Use.Object]; pin != "" {
			wanted.Versioned = true
			wanted.Pinned, _ = s.heldBy(pin, &o)
		}
		state.Objects = append(state.Objects, wanted)
	}
	if d := stamp.Decide(state); d.Action == stamp.WriteStamp && d.Reason == stamp.ContentChanged {
		return d.Changed
	}
	return nil
}
