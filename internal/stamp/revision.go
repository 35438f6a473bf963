package stamp

import "slices"

// wentBack reports whether the template is that of an older retained revision, so that someone went back to it. What
// marks a revision as older:
//
//   - it was renumbered before: the Deployment controller gives a revision that is gone back to the highest number, and
//     leaves a note of the number that it had;
//   - or another revision has a higher number: the controller has not renumbered it yet;
//   - or another revision was created later: the controllers of StatefulSets and DaemonSets renumber without a note, but
//     never re-create.
//
// The revision of a brand-new template is the newest by all three, or does not exist yet. Creation times tie within a
// second: a StatefulSet that was gone back to, and renumbered, within the second of its newest revision counts as new.
func wentBack(revisions []Revision) bool {
	return slices.ContainsFunc(revisions, func(r Revision) bool {
		return r.Matches && (r.Renumbered || superseded(r, revisions))
	})
}

func superseded(r Revision, by []Revision) bool {
	return slices.ContainsFunc(by, func(o Revision) bool {
		return o.Number > r.Number || o.Created.After(r.Created)
	})
}
