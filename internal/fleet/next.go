package fleet

import (
	"cmp"
	"maps"
	"slices"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Change is what the next start of a pod would do to one key.
type Change string

// The changes.
const (
	Added   Change = "added"   // the running pods do not have the key
	Removed Change = "removed" // only the running pods have the key
	Changed Change = "changed" // the running pods have another value
	Unsure  Change = "unknown" // it is not known what the running pods have
)

// Value is what there is of a key, as far as it may be told.
type Value struct {
	// There says that the key is there.
	There bool
	// Text is the value, where it is Kept; of Secrets and of binary data it never is.
	Text string
	Kept bool
}

// KeyChange is one key that a pod which starts now would read differently from pods that run.
type KeyChange struct {
	Object workload.Object
	// Key is the key; "" for pods of which it is not known what they loaded of the object.
	Key string
	// Pods is how many running pods would see the change.
	Pods   int
	Change Change
	// From is what those pods run with, To what a pod that starts now would read.
	From, To Value
	// KeptIn is the name of a snapshot that has the value with which a pod of those runs; "" when none is known.
	KeptIn string
	// Blocks says that no pod would start with it, because something required is not there.
	Blocks bool
	// Why says why it is not known; "" when it is.
	Why string
}

// Start is what a pod of one revision would read differently from those of it that run, were it to start now: because it is
// replaced, or there are to be more.
type Start struct {
	Revision string
	// Pods is how many pods of the revision run.
	Pods int
	Keys []KeyChange
}

// Next lists what a pod of the present template that starts now would read differently from the pods that run, by object and
// key. What the template pins it reads as it was pinned, else as it is applied.
func Next(f Fleet) []KeyChange {
	f.Settings = f.Settings.WithDefaults()
	s := look(&f)
	changes := tally{}
	for _, p := range s.pods {
		changes.add(p, func(x finding) *digest.Content { return f.next(x.object) })
	}
	return changes.sorted()
}

// Starts lists for each revision with running pods what a pod of it would read differently, were it to start now. What pods
// of a revision are pinned to, the next one is as well; anything else it reads as it is applied. Revisions in the order of
// the pods.
func Starts(f Fleet) []Start {
	f.Settings = f.Settings.WithDefaults()
	s := look(&f)
	var out []Start
	changes := map[string]tally{}
	for _, p := range s.pods {
		if p.standing == starting {
			continue
		}
		i := slices.IndexFunc(out, func(s Start) bool { return s.Revision == p.Revision })
		if i < 0 {
			i, out = len(out), append(out, Start{Revision: p.Revision})
			changes[p.Revision] = tally{}
		}
		out[i].Pods++
		changes[p.Revision].add(p, func(x finding) *digest.Content { return s.again(x, p.Pod) })
	}
	for i := range out {
		out[i].Keys = changes[out[i].Revision].sorted()
	}
	return out
}

// again is what the next pod of the same revision reads of the object; nil when that is not known.
func (s survey) again(x finding, p *Pod) *digest.Content {
	switch {
	case x.Snapshot != "":
		content, _ := s.heldBy(x.Snapshot, x.object)
		return content
	case p.Stamp == s.Stamp:
		return s.next(x.object)
	case slices.Contains(s.gone, x.Object):
		content, _ := s.absence(x.object)
		return content
	}
	return x.object.Applied
}

// difference is how one key differs between what was loaded and what would be.
type difference struct {
	change Change
	// was and is are the sums of the values, zero where there is none; of binary data as well.
	was, is digest.Sum
	blocks  bool
	why     string // it is not known
}

// tally counts the pods that see each difference.
type tally map[seen]*KeyChange

type seen struct {
	object workload.Object
	key    string
	difference
}

// add counts a pod, given what a pod that starts now would read.
func (t tally) add(p surveyed, next func(finding) *digest.Content) {
	counted := map[seen]bool{}
	for _, x := range p.findings {
		for key, d := range x.next(next) {
			why := d.why
			d.why = "" // one reason will do
			at := seen{x.Object, key, d}
			if t[at] == nil {
				t[at] = &KeyChange{
					Object: x.Object, Key: key, Change: d.change, Blocks: d.blocks, Why: why,
					From: x.object.value(key, d.was), To: x.object.value(key, d.is),
				}
			}
			c := t[at]
			if c.KeptIn = cmp.Or(c.KeptIn, x.keeps(d.change)); !counted[at] {
				c.Pods++
			}
			counted[at] = true
		}
	}
}

func (t tally) sorted() []KeyChange {
	out := make([]KeyChange, 0, len(t))
	for _, c := range t {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b KeyChange) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Change, b.Change),
			cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.From.Text, b.From.Text), cmp.Compare(a.Why, b.Why))
	})
	return out
}

// value is what is known of a key's value by its sum.
func (o *Object) value(key string, sum digest.Sum) Value {
	if o == nil || sum == (digest.Sum{}) {
		return Value{}
	}
	text, kept := o.Values[sum]
	if !kept {
		text, kept = o.Log.Value(key, sum)
	}
	return Value{There: true, Text: text, Kept: kept}
}

// keeps is the name of the snapshot that has the value that the change replaces; "" when there is none.
func (f finding) keeps(c Change) string {
	if f.Snapshot == v1.AbsentName || c == Added || c == Unsure {
		return ""
	}
	return f.Snapshot
}

// next compares what was loaded with what a pod that starts now reads, key by key.
func (f finding) next(reads func(finding) *digest.Content) map[string]difference {
	if f.object == nil {
		return unsureOf(f.Why)
	}
	next := reads(f)
	out := f.against(next)
	if next == nil {
		return out
	}
	for _, m := range missingOf(f.use, *next) {
		for key, d := range out {
			d.blocks = d.blocks || d.change != Unsure && (m.Key == "" || m.Key == key)
			out[key] = d
		}
	}
	return out
}

func unsureOf(why string) map[string]difference {
	return map[string]difference{"": {change: Unsure, why: why}}
}

// differing counts the consumed keys, each once for each object, of which some container loaded something else than is applied.
func (s survey) differing() int {
	type at struct {
		object workload.Object
		key    string
	}
	keys := map[at]bool{}
	for _, x := range s.all {
		if !x.Behind() {
			continue
		}
		for key := range x.against(x.object.Applied) {
			keys[at{x.Object, key}] = true
		}
	}
	return len(keys)
}

// against compares what was loaded with a content, key by key.
func (f finding) against(content *digest.Content) map[string]difference {
	switch {
	case f.Digest == "":
		return unsureOf(f.Why)
	case content == nil:
		return unsureOf("what it would read is not known")
	case !digest.Comparable(f.Digest, content.Consumed(f.use)):
		return unsureOf("what it would read has a digest made with another key, or by another method")
	case f.Digest == content.Consumed(f.use):
		return nil
	}
	out := map[string]difference{}
	env := func(c digest.Content, key string) (digest.Sum, bool) { s, ok := c.Data[key]; return s, ok }
	f.compare(out, *content, f.use.Env, env)
	f.compare(out, *content, f.use.Files, digest.Content.Value)
	return out
}

// compare notes the keys that one view of the two contents shows differently.
func (f finding) compare(
	out map[string]difference, next digest.Content, read workload.Keys, value func(digest.Content, string) (digest.Sum, bool),
) {
	names := map[string]bool{}
	for _, key := range slices.Concat(f.content.Keys(), next.Keys()) {
		names[key] = read.Has(key)
	}
	maps.DeleteFunc(names, func(_ string, has bool) bool { return !has })
	for key := range names {
		was, had := value(f.content, key)
		is, has := value(next, key)
		switch {
		case !had && has:
			out[key] = difference{change: Added, is: is}
		case had && !has:
			out[key] = difference{change: Removed, was: was}
		case had && was != is:
			out[key] = difference{change: Changed, was: was, is: is}
		}
	}
}
