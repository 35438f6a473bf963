package stamp

import (
	"cmp"
	"slices"

	"tidemark.dev/tidemark/internal/workload"
)

// missingFrom lists the required objects and keys that are not there, sorted. What the program reloads by itself never
// makes a workload wait, nor does an object that is gone while the template reads a copy of it.
func missingFrom(s State) []Missing {
	var out []Missing
	for _, o := range s.Objects {
		if o.Live || goneUnderPin(s, o) {
			continue
		}
		object, keys := o.Applied.Missing(o.Use)
		if object {
			out = append(out, Missing{Object: o.Use.Object})
		}
		for _, k := range keys {
			out = append(out, Missing{Object: o.Use.Object, Key: k})
		}
	}
	slices.SortFunc(out, func(a, b Missing) int { return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Key, b.Key)) })
	return out
}

func readsAny(k workload.Keys) bool { return k.All || len(possible(k.Names)) > 0 }

// rolling leaves the objects whose content counts, sorted: those that the program does not reload by itself, and of which
// it reads any key.
func rolling(objects []Object) []Object {
	var out []Object
	for _, o := range objects {
		if !o.Live && (readsAny(o.Use.Env) || readsAny(o.Use.Files)) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return a.Use.Object.Compare(b.Use.Object) })
	return out
}
