package history

import (
	"maps"
	"slices"
	"unicode/utf8"

	"tidemark.dev/tidemark/internal/credential"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

const (
	// MaxValue bounds a value that is kept, in bytes.
	MaxValue = 1 << 10
	// MaxValues bounds all values that are kept of one object, in bytes.
	MaxValues = 8 << 10
)

// Values are values that keys of a ConfigMap had, by key, the newest first. They are found again by their sums, so a value
// is never taken for another. A key without any was looked at, and has none that may be kept.
type Values map[string][]string

// Keepable reports whether a value of a ConfigMap's key may be kept: it is text of at most [MaxValue] bytes, and does not
// look like a credential.
func Keepable(key, value string) bool {
	return len(value) <= MaxValue && utf8.ValidString(value) && !credential.Like(key, value)
}

// Value is the value of a key that has the sum; false where it is not kept.
func (l Log) Value(key string, sum digest.Sum) (string, bool) {
	for _, v := range l.Values[key] {
		if SumOf(l.Object, key, v) == sum {
			return v, true
		}
	}
	return "", false
}

// SumOf is the sum of a value of a ConfigMap's key.
func SumOf(o workload.Object, key, value string) digest.Sum {
	return digest.OfConfigMap(o.Namespace, o.Name, map[string]string{key: value}, nil).Data[key]
}

// Keep notes the values that the object was found to have of the keys that somebody reads. Only those of the newest
// version are kept: what was read of the object may be younger.
func (l *Log) Keep(data map[string]string, read func(key string) bool) {
	if l.Object.Kind != workload.ConfigMap {
		return
	}
	if l.Values = maps.Clone(l.Values); l.Values == nil {
		l.Values = Values{}
	}
	for key, sum := range l.Newest().Content.Data {
		if !read(key) {
			continue
		}
		kept := l.Values[key]
		value, ok := data[key]
		if ok && Keepable(key, value) && SumOf(l.Object, key, value) == sum && !slices.Contains(kept, value) {
			kept = slices.Insert(slices.Clone(kept), 0, value)
		}
		l.Values[key] = kept
	}
	l.boundValues()
}

// boundValues drops values that no version has, and the oldest ones beyond [MaxValues].
func (l *Log) boundValues() {
	if l.Values == nil {
		return
	}
	bounded, room, open := Values{}, MaxValues, l.bySum()
	for key := range l.Values {
		bounded[key] = nil
	}
	for _, v := range slices.Backward(l.Versions) {
		for _, key := range slices.Sorted(maps.Keys(l.Values)) {
			sum := v.Content.Data[key]
			value, has := open[sum]
			if !has || len(value) > room {
				continue
			}
			delete(open, sum)
			room -= len(value)
			bounded[key] = append(bounded[key], value)
		}
	}
	l.Values = bounded
}

// bySum gives each value under its sum, which tells the key as well.
func (l *Log) bySum() map[digest.Sum]string {
	out := map[digest.Sum]string{}
	for key, values := range l.Values {
		for _, v := range values {
			out[SumOf(l.Object, key, v)] = v
		}
	}
	return out
}
