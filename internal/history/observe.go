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
	l.bound(o.Reads)
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

// bound keeps the log to [MaxVersions]. Before it drops the oldest version, and with it the time of a change, it joins versions that
// differ only in what nobody reads, then gaps in which nothing that is read is known to have changed, as every start of a controller
// may leave one.
func (l *Log) bound(reads func(key string) bool) {
	for l.full(reads) {
		if i := l.firstAlike(reads); i >= 0 {
			l.join(i)
			continue
		}
		if i := l.shortestBetweenGaps(reads); i > 0 {
			l.joinGaps(i)
			continue
		}
		l.drop(1)
	}
}

// full reports whether there are too many versions. The newest one counts only where something that is read differs in it, for it
// is joined with none: whoever begins to read a key must find what that has.
func (l *Log) full(reads func(key string) bool) bool {
	n := len(l.Versions)
	return n > MaxVersions+1 || n > MaxVersions && !l.alike(n-2, reads)
}

// firstAlike is the first version after which came one that differs only in what nobody reads; -1 when there is none.
func (l *Log) firstAlike(reads func(key string) bool) int {
	for i := range len(l.Versions) - 2 {
		if l.alike(i, reads) {
			return i
		}
	}
	return -1
}

// alike reports whether version i and the next, with nothing unknown between them, differ only in what nobody reads.
func (l *Log) alike(i int, reads func(key string) bool) bool {
	v, next := l.Versions[i], l.Versions[i+1]
	return !next.Gap && v.isAs(next, reads) && len(v.forgets(next)) <= maxForgotten
}

// join makes one version of version i and the next.
func (l *Log) join(i int) {
	l.Versions[i].Forgotten = l.Versions[i].forgets(l.Versions[i+1])
	l.Versions = slices.Delete(l.Versions, i+1, i+2)
}

// forgets are the keys of which a version forgets values that is joined with the next one.
func (v Version) forgets(next Version) []string {
	keys := slices.Concat(v.Forgotten, next.Forgotten, v.Content.Differing(next.Content))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// shortestBetweenGaps is the version that lasted shortest of those that lie between two gaps and have the content of the versions
// on either side, as far as anybody reads it; 0 when there is none.
func (l *Log) shortestBetweenGaps(reads func(key string) bool) int {
	best, shortest := 0, time.Duration(0)
	for i := 1; i+1 < len(l.Versions); i++ {
		before, v, next := l.Versions[i-1], l.Versions[i], l.Versions[i+1]
		if !v.Gap || !next.Gap || !v.isAs(before, reads) || !v.isAs(next, reads) {
			continue
		}
		if lasted := next.NotBefore.Sub(v.Seen); best == 0 || lasted < shortest {
			best, shortest = i, lasted
		}
	}
	return best
}

// isAs reports whether both are the same content of the same object, as far as anybody reads it.
func (v Version) isAs(o Version, reads func(key string) bool) bool {
	if v.UID != o.UID || v.Immutable != o.Immutable || v.Content.Present != o.Content.Present || v.Content.Version != o.Content.Version {
		return false
	}
	differing := v.Content.Differing(o.Content)
	return len(differing) == 0 || reads != nil && !slices.ContainsFunc(differing, reads)
}

// joinGaps forgets the version i between two gaps, which become one: in it the content may have been any.
func (l *Log) joinGaps(i int) {
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
