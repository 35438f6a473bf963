package history

import (
	"slices"
	"time"
)

// apiSecond is how much later than it says a time of the API may be: it truncates times to seconds.
const apiSecond = time.Second

// Observe takes one look at the object in, and reports whether the log changed in a way that is worth a write.
//
// A look that shows other content, or another object under the name, adds a version; so does one that shows the same
// content in another state of the object when what happened in between is not known, because it may have gone and come
// back. A look at the very state that the log knows adds nothing, however long nobody watched: no write happened. An edit
// of metadata changes only the resourceVersion that the next write of the log carries.
//
// Versions are never changed in place, so a copy of a log keeps what it held.
func (l *Log) Observe(o Observation) (changed bool) {
	if len(l.Versions) == 0 {
		l.begin(o)
		return true
	}
	l.Versions = slices.Clone(l.Versions)
	last := &l.Versions[len(l.Versions)-1]
	same := last.Content.Equal(o.Content)
	switch {
	case last.sameRevision(o) && same:
		return last.confirm(o)
	case last.sameRevision(o) && last.Content.Version != o.Content.Version:
		// The same data in the terms of another digest version or key: no change happened.
		last.Content = o.Content
		last.confirm(o)
		return true
	case same && last.UID == o.UID && o.unbroken():
		return last.confirm(o)
	}
	l.Versions = append(l.Versions, l.next(o))
	l.bound()
	return true
}

// confirm notes the state of the object in which the version was found again.
func (v *Version) confirm(o Observation) (changed bool) {
	changed = v.Immutable != o.Immutable
	v.ResourceVersion, v.Immutable = o.ResourceVersion, o.Immutable
	return changed
}

// begin starts the log. What was before is not known, unless the object was seen coming into being.
func (l *Log) begin(o Observation) {
	v := Version{
		Seen: o.At, UID: o.UID, ResourceVersion: o.ResourceVersion, Content: o.Content, Immutable: o.Immutable,
	}
	if o.born() {
		v.Seen = earlier(o.At, o.Created.Add(apiSecond))
		if !o.AbsentSince.IsZero() && o.AbsentSince.Before(v.Seen) {
			absent := Version{Seen: o.AbsentSince}
			absent.Content.Version = o.Content.Version
			l.Versions = append(l.Versions, absent)
			v.NotBefore = earlier(o.Created, v.Seen)
		}
	}
	l.Versions = append(l.Versions, v)
}

// born reports whether the content is known to be the object's first.
func (o Observation) born() bool {
	return o.Fresh && o.unbroken() && o.Content.Present && !o.Created.IsZero()
}

// next makes the version that the observation adds.
func (l *Log) next(o Observation) Version {
	last := l.Versions[len(l.Versions)-1]
	v := Version{
		NotBefore: o.At.Add(-o.Lag), Seen: o.At,
		UID: o.UID, ResourceVersion: o.ResourceVersion, Content: o.Content, Immutable: o.Immutable,
		// Another object under the name with no absence between them: its deletion was not seen.
		Gap: !o.unbroken() || last.UID != "" && o.UID != "" && last.UID != o.UID,
	}
	if o.born() {
		v.Seen = earlier(o.At, o.Created.Add(apiSecond))
		v.NotBefore = o.Created
		if v.Gap {
			v.NotBefore = earlier(o.Created, o.At.Add(-o.Lag))
		}
	}
	if o.Written.After(last.Seen) {
		v.NotBefore = earlier(v.NotBefore, o.Written)
	}
	switch {
	case !o.Unwatched.IsZero():
		v.NotBefore = earlier(v.NotBefore, o.Unwatched.Add(-o.Lag))
	case !o.EveryEvent:
		v.NotBefore = earlier(v.NotBefore, last.Seen)
	}
	// A clock that stepped back must not make a version end before it began: the window reaches over the step.
	v.Seen = later(v.Seen, last.Seen)
	v.NotBefore = earlier(v.NotBefore, v.Seen)
	return v
}

// bound keeps the log to [MaxVersions]. It joins gaps in which nothing is known to have changed, as every start of a controller
// may leave one, before it drops the oldest version and with it the time of a change.
func (l *Log) bound() {
	for len(l.Versions) > MaxVersions {
		if i := l.shortestBetweenGaps(); i > 0 {
			l.join(i)
			continue
		}
		l.drop(1)
	}
}

// shortestBetweenGaps is the version that lasted shortest of those that lie between two gaps and have the content of the versions
// on either side; 0 when there is none.
func (l *Log) shortestBetweenGaps() int {
	best, shortest := 0, time.Duration(0)
	for i := 1; i+1 < len(l.Versions); i++ {
		before, v, next := l.Versions[i-1], l.Versions[i], l.Versions[i+1]
		if !v.Gap || !next.Gap || !v.isAs(before) || !v.isAs(next) {
			continue
		}
		if lasted := next.NotBefore.Sub(v.Seen); best == 0 || lasted < shortest {
			best, shortest = i, lasted
		}
	}
	return best
}

// isAs reports whether both are the same content of the same object.
func (v Version) isAs(o Version) bool {
	return v.UID == o.UID && v.Immutable == o.Immutable && v.Content.Equal(o.Content)
}

// join forgets the version i between two gaps, which become one: in it the content may have been any.
func (l *Log) join(i int) {
	l.Versions[i+1].NotBefore = l.Versions[i].NotBefore
	l.Versions = slices.Delete(l.Versions, i, i+1)
}

// drop forgets the n oldest versions, of which there are more.
func (l *Log) drop(n int) {
	for _, v := range l.Versions[:n] {
		l.Lingering = l.Lingering || v.Immutable
	}
	l.Versions = l.Versions[n:]
	l.Dropped = l.Versions[0].Seen
}
