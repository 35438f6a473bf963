package workload

import (
	"maps"
	"slices"
)

// Keys is a set of keys of a config object: all of them, or those named.
type Keys struct {
	All   bool
	Names []string // sorted, unique; empty when All
}

// Empty reports whether the set has no key.
func (k Keys) Empty() bool { return !k.All && len(k.Names) == 0 }

// Has reports whether the set has the key.
func (k Keys) Has(key string) bool {
	if k.All {
		return true
	}
	_, found := slices.BinarySearch(k.Names, key)
	return found
}

// keySet gathers keys; the zero value has none.
type keySet struct {
	all   bool
	names map[string]struct{}
}

func (s *keySet) add(all bool, names []string) {
	s.all = s.all || all
	if s.names == nil {
		s.names = make(map[string]struct{}, len(names))
	}
	for _, n := range names {
		s.names[n] = struct{}{}
	}
}

func (s *keySet) sorted() []string { return slices.Sorted(maps.Keys(s.names)) }

func (s *keySet) keys() Keys {
	if s.all {
		return Keys{All: true}
	}
	return Keys{Names: s.sorted()}
}

// Consumption is what a pod template, or one container of it, reads of one config object.
//
// The environment sees an object's data only; files see data and binaryData. The two are kept apart because an edit may
// change one and not the other.
type Consumption struct {
	Object Object
	// Env are the keys read into the environment.
	Env Keys
	// Files are the keys read as mounted files, and those of objects named by annotation only.
	Files Keys
	// Required says that a pod cannot start without the object.
	Required bool
	// RequiredKeys are those without which a pod cannot start; sorted.
	RequiredKeys []string
	// RequiredEnv are those of the required keys that the environment needs, so that having them in binaryData is not
	// enough; sorted.
	RequiredEnv []string
	// Refreshed says that at least one of the files is replaced in place while the container runs.
	Refreshed bool
	// Named says that no reference of the template reads it: it is named by annotation only.
	Named bool
}

// Consumed sums references up per object, in the order of [Object.Compare]. References that do not roll are left out.
func Consumed(refs []Reference) []Consumption {
	byObject := map[Object]*tally{}
	for _, r := range refs {
		if !r.Source.Rolls() {
			continue
		}
		t := byObject[r.Object]
		if t == nil {
			t = &tally{Consumption: Consumption{Object: r.Object, Named: true}}
			byObject[r.Object] = t
		}
		t.add(r)
	}
	out := make([]Consumption, 0, len(byObject))
	for _, t := range byObject {
		out = append(out, t.total())
	}
	slices.SortFunc(out, func(a, b Consumption) int { return a.Object.Compare(b.Object) })
	return out
}

// tally is a consumption in the making.
type tally struct {
	Consumption

	env, files, required, requiredEnv keySet
}

func (t *tally) add(r Reference) {
	inEnv := r.Source == SourceEnv || r.Source == SourceEnvFrom
	if inEnv {
		t.env.add(r.Keys == nil, r.Keys)
	} else {
		t.files.add(r.Keys == nil, r.Keys)
	}
	t.Named = t.Named && r.Source == SourceNamed
	t.Refreshed = t.Refreshed || r.Refreshed
	if r.Optional {
		return
	}
	t.Required = true
	t.required.add(false, r.Required)
	if inEnv {
		t.requiredEnv.add(false, r.Required)
	}
}

func (t *tally) total() Consumption {
	c := t.Consumption
	c.Env, c.Files = t.env.keys(), t.files.keys()
	c.RequiredKeys, c.RequiredEnv = t.required.sorted(), t.requiredEnv.sorted()
	return c
}

// Reads reports whether the consumption reads the key, as environment or as a file.
func (c Consumption) Reads(key string) bool { return c.Env.Has(key) || c.Files.Has(key) }

// Whole returns the consumption with every key of the object counted, both as environment and as files.
func (c Consumption) Whole() Consumption {
	c.Env, c.Files = Keys{All: true}, Keys{All: true}
	return c
}
