package revision

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Content is what a config object, or a copy of one, holds. It is never printed as a whole: it may be a Secret's.
type Content struct {
	Present bool
	// Data by key, that of binaryData included; Binary are the keys that stand there, which the environment does not see.
	Data   map[string][]byte
	Binary map[string]bool
}

// ContentOf is the content of a ConfigMap or Secret.
func ContentOf(object runtime.Object) Content {
	out := Content{Present: true, Data: map[string][]byte{}, Binary: map[string]bool{}}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		for key, value := range o.Data {
			out.Data[key] = []byte(value)
		}
		for key, value := range o.BinaryData {
			out.Data[key], out.Binary[key] = value, true
		}
	case *corev1.Secret:
		maps.Copy(out.Data, o.Data)
	}
	return out
}

// Change is what became of a key.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// KeyChange is a key that two contents have different values of.
type KeyChange struct {
	Key    string
	Change Change
	// From and To are the values; nil where there is none.
	From, To []byte
}

// Keys lists the keys of which two contents have different values, sorted. A value that went from data to binaryData, or
// back, is another one.
func Keys(from, to Content) []KeyChange {
	all := maps.Clone(from.Data)
	if all == nil {
		all = map[string][]byte{}
	}
	maps.Copy(all, to.Data)
	var out []KeyChange
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, had := from.Data[key]
		after, has := to.Data[key]
		switch {
		case !had:
			out = append(out, KeyChange{key, Added, nil, after})
		case !has:
			out = append(out, KeyChange{key, Removed, before, nil})
		case !bytes.Equal(before, after) || from.Binary[key] != to.Binary[key]:
			out = append(out, KeyChange{key, Changed, before, after})
		}
	}
	return out
}
