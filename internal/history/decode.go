package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Errors of entries that cannot be read.
var (
	errFormat   = errors.New("format of another release")
	errMisnamed = errors.New("its key names another object")
	errForeign  = errors.New("object of another namespace")
	errOrder    = errors.New("times out of order")
	errEmpty    = errors.New("no versions")
)

// Decode reads back what [Encode] wrote for a namespace, in the order of [workload.Object.Compare]. An entry that cannot
// be read gives an error that names it, and does not lose the others. An object with two entries, which a write that was
// interrupted may leave, has the log that was seen to change last.
func Decode(namespace string, shards []map[string]string) ([]Log, error) {
	logs := map[workload.Object]Log{}
	var errs []error
	for _, s := range shards {
		for _, key := range slices.Sorted(maps.Keys(s)) {
			l, err := decodeEntry(namespace, key, s[key])
			if err != nil {
				errs = append(errs, fmt.Errorf("decode history entry %q: %w", key, err))
				continue
			}
			if other, ok := logs[l.Object]; !ok || other.Newest().Seen.Before(l.Newest().Seen) {
				logs[l.Object] = l
			}
		}
	}
	out := slices.SortedFunc(maps.Values(logs), func(a, b Log) int { return a.Object.Compare(b.Object) })
	return out, errors.Join(errs...)
}

func decodeEntry(namespace, key, value string) (Log, error) {
	var e entry
	if err := json.Unmarshal([]byte(value), &e); err != nil {
		return Log{}, err
	}
	if e.Format != format && e.Format != joined {
		return Log{}, errFormat
	}
	o, err := workload.ParseObject(e.Object, namespace)
	switch {
	case err != nil:
		return Log{}, err
	case o.Namespace != namespace:
		return Log{}, errForeign
	case entryKey(o) != key:
		return Log{}, errMisnamed
	case len(e.Versions) == 0:
		return Log{}, errEmpty
	}
	l := Log{Object: o, Dropped: e.Dropped, Lingering: e.Lingering}
	var newer digest.Content
	for _, s := range e.Versions {
		v := s.restore(newer)
		if v.Seen.IsZero() || v.NotBefore.After(v.Seen) {
			return Log{}, errOrder
		}
		l.Versions = append(l.Versions, v)
		newer = v.Content
	}
	slices.Reverse(l.Versions)
	if o.Kind == workload.ConfigMap {
		l.Values = e.Values
		l.boundValues()
	}
	if !slices.IsSortedFunc(l.Versions, func(a, b Version) int { return a.Seen.Compare(b.Seen) }) {
		return Log{}, errOrder
	}
	return l, nil
}

// restore makes the version, given the content that the difference is from.
func (s storedVersion) restore(from digest.Content) Version {
	v := Version{
		NotBefore: s.NotBefore, Seen: s.Seen, UID: s.UID, ResourceVersion: s.ResourceVersion,
		Gap: s.Gap, Immutable: s.Immutable, Forgotten: s.Forgotten,
		Content: digest.Content{Version: s.Digests, Present: !s.Absent},
	}
	v.Content.Data, v.Content.Binary = apply(from.Data, s.Data), apply(from.Binary, s.Binary)
	return v
}

// apply undoes [delta].
func apply(from map[string]digest.Sum, change map[string]*storedSum) map[string]digest.Sum {
	out := maps.Clone(from)
	if out == nil {
		out = make(map[string]digest.Sum, len(change))
	}
	for k, sum := range change {
		if sum == nil {
			delete(out, k)
			continue
		}
		out[k] = digest.Sum(*sum)
	}
	return out
}
