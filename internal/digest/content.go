package digest

import (
	"maps"
	"slices"

	"tidemark.dev/tidemark/internal/workload"
)

// Content is a config object reduced to sums: what a digest needs to know of it.
//
// An object that is absent differs from one without data; [AbsentIn] gives its content. The zero value is an absent object
// too, but of a Secret it has no digest, because it does not say under which key.
type Content struct {
	// Version is the version of the sums.
	Version Version
	// Present says that the object exists.
	Present bool
	// Data and Binary hold the sum of each key of the object's data and binaryData, nil when it has none. A Secret has
	// data only.
	Data, Binary map[string]Sum
}

// Value returns the sum of a key as a file would show it, from data or binaryData.
func (c Content) Value(key string) (Sum, bool) {
	if s, ok := c.Data[key]; ok {
		return s, true
	}
	s, ok := c.Binary[key]
	return s, ok
}

// Keys lists the keys of data and binaryData, sorted.
func (c Content) Keys() []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(c.Data)), maps.Keys(c.Binary))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Equal reports whether two contents have the same version, keys and sums.
func (c Content) Equal(d Content) bool {
	return c.Present == d.Present && c.Version == d.Version && maps.Equal(c.Data, d.Data) && maps.Equal(c.Binary, d.Binary)
}

// Differing lists the keys that only one of two contents has, or that have another sum in one, as data or as binaryData; sorted.
func (c Content) Differing(d Content) []string {
	keys := slices.Concat(differing(c.Data, d.Data), differing(c.Binary, d.Binary))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func differing(a, b map[string]Sum) []string {
	var keys []string
	for k, sum := range a {
		if other, ok := b[k]; !ok || other != sum {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// OfConfigMap reduces a ConfigMap's data and binaryData to sums.
func OfConfigMap(namespace, name string, data map[string]string, binary map[string][]byte) Content {
	o := workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: name}
	h := newHasher(nil)
	return Content{Version: V1, Present: true, Data: h.ofStrings(o, data), Binary: h.ofBytes(o, binary)}
}

// OfSecret reduces a Secret's data to sums under the key, which must not be nil.
func OfSecret(key *Key, namespace, name string, data map[string][]byte) Content {
	o := workload.Object{Kind: workload.Secret, Namespace: namespace, Name: name}
	return Content{Version: key.Version(), Present: true, Data: newHasher(key).ofBytes(o, data)}
}

// AbsentIn is the content of an object of the kind that does not exist, with the version that its digests take. The key
// must not be nil for Secrets, and is not looked at for ConfigMaps.
func AbsentIn(kind workload.ObjectKind, key *Key) Content {
	if kind == workload.Secret {
		return Content{Version: key.Version()}
	}
	return Content{Version: V1}
}

// View says through which eyes an object is read.
type View byte

// The views of an object.
const (
	Env  View = 'e' // data only
	File View = 'f' // data and binaryData, compared by bytes
)

// Consumed digests what the consumption reads of the content. Where a pod starts without the object, and reads nothing of one
// that is there, the digest is that of an absent one: the pod cannot tell them apart.
func (c Content) Consumed(use workload.Consumption) Digest {
	h := newHasher(nil)
	c.begin(h, ofConsumed, use.Object, c.Present && use.Required || c.gives(Env, use.Env) || c.gives(File, use.Files))
	c.view(h, Env, use.Env)
	c.view(h, File, use.Files)
	return h.digest(c.versionOf(use.Object))
}

// Of digests the given keys of the object as one view reads them. An object that has none of them is as an absent one.
func (c Content) Of(o workload.Object, view View, keys workload.Keys) Digest {
	h := newHasher(nil)
	c.begin(h, ofView, o, c.gives(view, keys))
	c.view(h, view, keys)
	return h.digest(c.versionOf(o))
}

// Whole digests everything in the object, and whether it is there.
func (c Content) Whole(o workload.Object) Digest {
	return c.Consumed(workload.Consumption{Object: o, Required: true}.Whole())
}

// Missing tells what the content lacks for a pod with the consumption to start: the whole object, or the keys listed,
// sorted. A key that the environment needs is missing also when only binaryData has it.
func (c Content) Missing(use workload.Consumption) (object bool, keys []string) {
	if !c.Present {
		return use.Required, nil
	}
	for _, k := range use.RequiredKeys {
		if _, ok := c.Value(k); !ok {
			keys = append(keys, k)
		}
	}
	for _, k := range use.RequiredEnv {
		if _, ok := c.Data[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return false, slices.Compact(keys)
}

// versionOf is the version of the content's digests: for an absent ConfigMap it is known even when nobody stated it.
func (c Content) versionOf(o workload.Object) Version {
	if c.Version == "" && o.Kind == workload.ConfigMap {
		return V1
	}
	return c.Version
}

func (c Content) begin(h *hasher, p purpose, o workload.Object, present bool) {
	presence := "absent"
	if present {
		presence = "present"
	}
	h.begin(p)
	h.fields(string(c.versionOf(o)), string(o.Kind), o.Namespace, o.Name, presence)
}

func (c Content) view(h *hasher, view View, keys workload.Keys) {
	names := c.read(view, keys)
	h.fields(string(view))
	h.count(len(names))
	for _, k := range names {
		sum, ok := c.lookup(view, k)
		if !ok {
			h.fields(k, "absent", "")
			continue
		}
		h.fields(k, "present")
		h.sumField(sum)
	}
}

// read lists the keys that the view reads, sorted and each once: what is there when all are read, else the names given.
func (c Content) read(view View, keys workload.Keys) []string {
	switch {
	case !keys.All:
		names := slices.Clone(keys.Names)
		slices.Sort(names)
		return slices.Compact(names)
	case view == Env:
		return slices.Sorted(maps.Keys(c.Data))
	default:
		return c.Keys()
	}
}

// gives reports whether any of the keys is there.
func (c Content) gives(view View, keys workload.Keys) bool {
	return slices.ContainsFunc(c.read(view, keys), func(k string) bool {
		_, ok := c.lookup(view, k)
		return ok
	})
}

func (c Content) lookup(view View, key string) (Sum, bool) {
	if view == Env {
		s, ok := c.Data[key]
		return s, ok
	}
	return c.Value(key)
}
