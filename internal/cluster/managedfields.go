package cluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/workload"
)

// Write is a write to a config object that its metadata tells of. It hints, and never proves: removing a key by an update
// leaves no new time, and an edit of metadata by the same manager moves the time.
type Write struct {
	// At is when; zero when the metadata tells of none.
	At time.Time
	// By is the field manager that wrote, as it called itself.
	By string
}

// Writes are the newest writes to a config object, by key, that its metadata tells of.
type Writes struct {
	created      Write
	data, binary map[string]Write
}

// WritesOf reads the writes from an object's metadata. The creation counts as one of every key: an object that was made
// again under its name has other content from then on.
func WritesOf(object metav1.Object) Writes {
	w := Writes{
		created: Write{At: object.GetCreationTimestamp().Time, By: "its creator"},
		data:    map[string]Write{}, binary: map[string]Write{},
	}
	for _, e := range object.GetManagedFields() {
		if e.Time == nil || e.FieldsV1 == nil || e.Subresource != "" {
			continue
		}
		var fields struct {
			Data   map[string]json.RawMessage `json:"f:data"`
			String map[string]json.RawMessage `json:"f:stringData"`
			Binary map[string]json.RawMessage `json:"f:binaryData"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		by := Write{At: e.Time.Time, By: e.Manager}
		note(w.data, fields.Data, by)
		note(w.data, fields.String, by)
		note(w.binary, fields.Binary, by)
	}
	return w
}

// Newest is the newest write to the consumed keys.
func (w Writes) Newest(use workload.Consumption) Write {
	newest := w.created
	pick := func(writes map[string]Write, read ...workload.Keys) {
		for key, by := range writes {
			if by.At.Before(newest.At) || !slices.ContainsFunc(read, func(k workload.Keys) bool { return k.Has(key) }) {
				continue
			}
			if by.At.After(newest.At) || newest == w.created || by.By < newest.By {
				newest = by
			}
		}
	}
	pick(w.data, use.Env, use.Files)
	pick(w.binary, use.Files)
	return newest
}

// Keys lists the keys that the metadata tells of, sorted: those that a field manager owns. It is less than the object has
// where managers were removed from the metadata.
func (w Writes) Keys() []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(w.data)), maps.Keys(w.binary))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func note(writes map[string]Write, fields map[string]json.RawMessage, by Write) {
	for f := range fields {
		if key, ok := strings.CutPrefix(f, "f:"); ok && !by.At.Before(writes[key].At) {
			writes[key] = by
		}
	}
}
