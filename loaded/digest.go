package loaded

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
)

// This is the digest of version 1 for ConfigMaps, as Tidemark's docs/design/0004-digest.md writes it down.

const version = "v1"

// sum is the hash of one key's value, bound to its object and key.
type sum [sha256.Size]byte

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (s sum) text() string { return version + "-" + encoding.EncodeToString(s[:]) }

// value is what was read of one key in one view.
type value struct {
	present bool
	sum     sum // zero when absent
	// partly says that lines were left out of the value.
	partly bool
}

type hasher struct{ hash.Hash }

func begin(purpose string) hasher {
	h := hasher{sha256.New()}
	h.fields("tidemark.dev/digest", version, purpose)
	return h
}

func (h hasher) count(n int) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // never negative
}

func (h hasher) field(v []byte) {
	h.count(len(v))
	_, _ = h.Write(v)
}

func (h hasher) fields(values ...string) {
	for _, v := range values {
		h.field([]byte(v))
	}
}

func (h hasher) sum() sum { return sum(h.Sum(nil)) }

func (s *Source) sumOf(key string, content []byte) sum {
	h := begin("value")
	h.fields(string(s.kind), s.reporter.namespace, s.name, key)
	h.field(content)
	return h.sum()
}

// consumed digests the keys read into the environment with those read as files. The object is there: a key of it was read.
func (s *Source) consumed(env, files map[string]value) string {
	h := begin("consumed")
	h.fields(version, string(s.kind), s.reporter.namespace, s.name, "present")
	h.view("e", env)
	h.view("f", files)
	return h.sum().text()
}

func (h hasher) view(name string, keys map[string]value) {
	h.fields(name)
	h.count(len(keys))
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v := keys[key]
		if !v.present {
			h.fields(key, "absent", "")
			continue
		}
		h.fields(key, "present")
		h.field(v.sum[:])
	}
}
