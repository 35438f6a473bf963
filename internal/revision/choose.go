package revision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choice is the revision that a rollback goes to when nobody names one.
type Choice struct {
	Target Revision
	// Passed are the newer ones that were passed over, newest first.
	Passed []Revision
}

// Previous chooses where a rollback goes when nobody names a revision. It is the newest revision, other than the current
// one, of which a pod is known to have been available. A revision that is not known to have had one may be the one in
// between: the new image under the old pins, made by a deploy that changed both and superseded at once.
//
// Where it is known of no revision at all, it is the newest of which it is not known that none ever was, as kubectl has
// it; the target's own availability tells the caller, who must say so. There is none when every other revision is known
// to never have had a pod, or there is no other.
func Previous(revisions []Revision) (Choice, bool) {
	others := slices.Clone(revisions)
	others = slices.DeleteFunc(others, func(r Revision) bool { return r.Current })
	Sort(others)
	slices.Reverse(others)
	for _, wanted := range []Availability{Proven, Unknown} {
		i := slices.IndexFunc(others, func(r Revision) bool { return r.Availability == wanted })
		if i >= 0 {
			return Choice{Target: others[i], Passed: others[:i]}, true
		}
	}
	return Choice{}, false
}

// Current is the revision of the workload's present template; false when there is none.
func Current(revisions []Revision) (Revision, bool) {
	i := slices.IndexFunc(revisions, func(r Revision) bool { return r.Current })
	if i < 0 {
		return Revision{}, false
	}
	return revisions[i], true
}

// Find finds a revision by its number. The error says which numbers there are, and what became of a number that somebody
// went back from.
func Find(revisions []Revision, number int64) (Revision, error) {
	var have []string
	for _, r := range revisions {
		if r.Number == number {
			return r, nil
		}
	}
	for _, r := range revisions {
		if slices.Contains(r.Former, number) {
			return Revision{}, fmt.Errorf("there is no revision %d any more: somebody went back to it, and it is revision %d now", number, r.Number)
		}
		if r.Number > 0 {
			have = append(have, Number(r.Number))
		}
	}
	if len(have) == 0 {
		return Revision{}, fmt.Errorf("there is no revision %d, nor any other", number)
	}
	return Revision{}, fmt.Errorf("there is no revision %d; there are %s", number, strings.Join(have, ", "))
}

// Number is a revision's number as a text.
func Number(n int64) string { return strconv.FormatInt(n, 10) }
