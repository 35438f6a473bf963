package history

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

const (
	// ShardLimit bounds the data of one shard, in bytes of keys and values. An object of the API may have 1 MiB.
	ShardLimit = 640 << 10
	// entryLimit bounds one log, so that logs fill shards evenly and none can push out another.
	entryLimit = ShardLimit / 4
	// maxKey is how long a key of a ConfigMap's data may be.
	maxKey = 253
	// format is the version of the entries; joined is that of entries with versions that have forgotten something, which releases
	// that know no such thing would take for more than they tell.
	format, joined = 1, 2
)

// Encode gives the logs of one namespace as the data of ConfigMaps, of at most [ShardLimit] bytes each: one entry for each
// log, in which the newest version has all its sums and each older one what differs. Equal logs give equal shards.
//
// A log that is too large loses its values, then its oldest versions, and says so by Dropped; one whose newest version alone
// is too large is not kept, which is an error, and its history begins anew with whoever reads the shards. An entry stays in its shard until there are more
// shards; whoever writes them from the last to the first loses none on the way.
//
// An error names the log that could not be encoded; the others are in the shards all the same.
func Encode(logs []Log) ([]map[string]string, error) {
	entries := map[string]string{}
	var errs []error
	for _, l := range logs {
		value, err := encodeLog(l)
		if err != nil {
			errs = append(errs, fmt.Errorf("encode history of %s: %w", l.Object, err))
			continue
		}
		if value != "" {
			entries[entryKey(l.Object)] = value
		}
	}
	return shard(entries), errors.Join(errs...)
}

// shard spreads entries over as few shards as hold them, each by its key alone.
func shard(entries map[string]string) []map[string]string {
	if len(entries) == 0 {
		return nil
	}
	for n := uint64(1); ; n *= 2 {
		shards, sizes, fits := make([]map[string]string, n), make([]int, n), true
		for k, v := range entries {
			h := fnv.New64a()
			_, _ = h.Write([]byte(k)) // a hash never fails to write
			i := h.Sum64() % n
			if shards[i] == nil {
				shards[i] = map[string]string{}
			}
			shards[i][k] = v
			sizes[i] += len(k) + len(v)
			fits = fits && sizes[i] <= ShardLimit
		}
		if fits {
			return shards
		}
	}
}

// entryKey names the entry of an object: "configmap.NAME", or a hash where the name is too long for a key. Names never
// begin with a dot, so the two never meet.
func entryKey(o workload.Object) string {
	kind := strings.ToLower(string(o.Kind))
	if key := kind + "." + o.Name; len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(o.Name))
	return kind + ".." + hex.EncodeToString(sum[:])
}

// entry is the stored form of a log.
type entry struct {
	Format    int             `json:"f"`
	Object    string          `json:"o"` // as workload.Object.String
	Dropped   time.Time       `json:"dropped,omitzero"`
	Lingering bool            `json:"lingering,omitempty"`
	Versions  []storedVersion `json:"v"` // newest first
	// Values is absent in entries of releases that kept none.
	Values Values `json:"val,omitzero"`
}

// storedVersion is the stored form of a version.
type storedVersion struct {
	NotBefore       time.Time      `json:"nb,omitzero"`
	Seen            time.Time      `json:"s"`
	UID             string         `json:"uid,omitempty"`
	ResourceVersion string         `json:"rv,omitempty"`
	Gap             bool           `json:"gap,omitempty"`
	Immutable       bool           `json:"im,omitempty"`
	Absent          bool           `json:"absent,omitempty"`
	Digests         digest.Version `json:"d,omitempty"`
	Forgotten       []string       `json:"fg,omitempty"`
	// Data and Binary are what differs from the version stored before this one: the sum of a key, or null for one that
	// this version does not have.
	Data   map[string]*storedSum `json:"data,omitempty"`
	Binary map[string]*storedSum `json:"bin,omitempty"`
}

// storedSum is the stored form of a sum: base64 without padding.
type storedSum digest.Sum

// MarshalText implements encoding.TextMarshaler.
func (s storedSum) MarshalText() ([]byte, error) {
	return base64.RawStdEncoding.AppendEncode(nil, s[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *storedSum) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("sum %q: want %d bytes of base64", text, len(s))
	}
	copy(s[:], b)
	return nil
}

// errTooLarge is the error of a log that cannot be kept.
var errTooLarge = fmt.Errorf("its newest version alone takes more than %d KiB, so that nothing of it is kept: it has too many keys", entryLimit>>10)

// encodeLog gives the entry of a log, without the oldest versions that are too much; "" for a log without any.
func encodeLog(l Log) (string, error) {
	if _, err := workload.ParseObject(l.Object.String(), ""); err != nil {
		return "", err
	}
	l.boundValues()
	for len(l.Versions) > 0 {
		text, err := json.Marshal(store(l))
		if err != nil {
			return "", err
		}
		over := len(entryKey(l.Object)) + len(text) - entryLimit
		if over <= 0 {
			return string(text), nil
		}
		switch {
		case l.Values != nil:
			l.Values = nil
			continue
		case len(l.Versions) == 1:
			return "", errTooLarge
		}
		l.drop(1)
	}
	return "", nil
}

func store(l Log) entry {
	e := entry{Format: format, Object: l.Object.String(), Dropped: l.Dropped.UTC(), Lingering: l.Lingering, Values: l.Values}
	var newer digest.Content
	for _, v := range slices.Backward(l.Versions) {
		if len(v.Forgotten) > 0 {
			e.Format = joined
		}
		e.Versions = append(e.Versions, storedVersion{
			NotBefore: v.NotBefore.UTC(), Seen: v.Seen.UTC(), UID: v.UID, ResourceVersion: v.ResourceVersion,
			Gap: v.Gap, Immutable: v.Immutable, Absent: !v.Content.Present, Digests: v.Content.Version, Forgotten: v.Forgotten,
			Data: delta(newer.Data, v.Content.Data), Binary: delta(newer.Binary, v.Content.Binary),
		})
		newer = v.Content
	}
	return e
}

// delta is what turns one set of sums into the other; nil when nothing does.
func delta(from, to map[string]digest.Sum) map[string]*storedSum {
	out := map[string]*storedSum{}
	for k, sum := range to {
		if was, ok := from[k]; !ok || was != sum {
			out[k] = new(storedSum(sum))
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			out[k] = nil
		}
	}
	return out
}
