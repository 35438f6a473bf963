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
		switch {
		case o.Live || goneUnderPin(s, o):
		case o.Applied.Present:
			for _, k := range o.Use.RequiredKeys {
				if !hasKey(o, k) {
					out = append(out, Missing{Object: o.Use.Object, Key: k})
				}
			}
		case o.Use.Required || len(o.Use.RequiredKeys) > 0:
			out = append(out, Missing{Object: o.Use.Object})
		}
	}
	slices.SortFunc(out, func(a, b Missing) int { return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Key, b.Key)) })
	return out
}

// hasKey reports whether a required key is there for whoever reads it: an environment variable sees data only. Where a key
// is read both ways, or all keys are, it cannot be told which way requires it, and either will do.
func hasKey(o Object, key string) bool {
	if named := !o.Use.Env.All && o.Use.Env.Has(key); named && !o.Use.Files.Has(key) {
		_, ok := o.Applied.Data[key]
		return ok
	}
	_, ok := o.Applied.Value(key)
	return ok
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
