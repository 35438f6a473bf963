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

// KeyChange is one key that a pod which starts now would read differently from pods that run.
type KeyChange struct {
	Object workload.Object
	// Key is the key; "" for pods of which it is not known what they loaded of the object.
	Key string
	// Pods is how many running pods would see the change.
	Pods   int
	Change Change
	// KeptIn is the name of a snapshot that has the value with which a pod of those runs; "" when none is known.
	KeptIn string
}

// Next lists what a pod that starts now would read differently from the pods that run, by object and key. What the template
// pins a pod reads as it was pinned, else as it is applied.
func Next(f Fleet) []KeyChange {
	f.Settings = f.Settings.WithDefaults()
	type at struct {
		object workload.Object
		key    string
		change Change
	}
	pods, kept := map[at]int{}, map[at]string{}
	for _, p := range look(&f).pods {
		seen := map[at]bool{}
		for _, x := range p.findings {
			for key, change := range x.next(&f) {
				k := at{x.Object, key, change}
				seen[k], kept[k] = true, cmp.Or(kept[k], x.keeps(change))
			}
		}
		for k := range seen {
			pods[k]++
		}
	}
	out := make([]KeyChange, 0, len(pods))
	for k, n := range pods {
		out = append(out, KeyChange{Object: k.object, Key: k.key, Pods: n, Change: k.change, KeptIn: kept[k]})
	}
	slices.SortFunc(out, func(a, b KeyChange) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Change, b.Change))
	})
	return out
}

// keeps is the name of the snapshot that has the value that the change replaces; "" when there is none.
func (f finding) keeps(c Change) string {
	if f.Snapshot == v1.AbsentName || c == Added || c == Unsure {
		return ""
	}
	return f.Snapshot
}

// next compares what was loaded with what a pod that starts now reads, key by key.
func (f finding) next(of *Fleet) map[string]Change {
	if f.object == nil {
		return map[string]Change{"": Unsure}
	}
	return f.against(of.next(f.object))
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
func (f finding) against(content *digest.Content) map[string]Change {
	if f.Digest == "" || content == nil || !digest.Comparable(f.Digest, content.Consumed(f.use)) {
		return map[string]Change{"": Unsure}
	}
	if f.Digest == content.Consumed(f.use) {
		return nil
	}
	out := map[string]Change{}
	env := func(c digest.Content, key string) (digest.Sum, bool) { s, ok := c.Data[key]; return s, ok }
	f.compare(out, *content, f.use.Env, env)
	f.compare(out, *content, f.use.Files, digest.Content.Value)
	return out
}

// compare notes the keys that one view of the two contents shows differently.
func (f finding) compare(
	out map[string]Change, next digest.Content, read workload.Keys, value func(digest.Content, string) (digest.Sum, bool),
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
			out[key] = Added
		case had && !has:
			out[key] = Removed
		case had && was != is:
			out[key] = Changed
		}
	}
}
