package digest

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"tidemark.dev/tidemark/internal/workload"
)

// Sum is the 32-byte hash of one key's value, bound to its object and key: equal values under different keys or in
// different objects have different sums.
type Sum [sha256.Size]byte

// ParseSum reads a sum as a program states it that uses the library loaded: "v1-HASH". Another version's is an error.
func ParseSum(text string) (Sum, error) {
	d, err := Parse(text)
	if err != nil {
		return Sum{}, err
	}
	if d.Version() != V1 {
		return Sum{}, fmt.Errorf("parse sum: version %s, want %s", d.Version(), V1)
	}
	var s Sum
	_, err = encoding.Decode(s[:], []byte(text[len(V1)+1:]))
	return s, err
}

// hasher writes length-prefixed fields into a hash, through a small buffer so that no value is copied as a whole.
type hasher struct {
	hash    hash.Hash
	buffer  *bufio.Writer
	scratch Sum
}

const bufferSize = 1024

// newHasher makes a hasher, keyed unless the key is nil.
func newHasher(key *Key) *hasher {
	h := &hasher{}
	if key == nil {
		h.hash = sha256.New()
	} else {
		h.hash = hmac.New(sha256.New, key.mustSecret())
	}
	h.buffer = bufio.NewWriterSize(h.hash, bufferSize)
	return h
}

// purposes keep the layers of a digest apart.
type purpose string

const (
	ofValue    purpose = "value"
	ofConsumed purpose = "consumed"
	ofView     purpose = "view"
	ofParts    purpose = "parts"
)

// begin starts a hash for a purpose, whatever was written before.
func (h *hasher) begin(p purpose) {
	h.hash.Reset()
	h.buffer.Reset(h.hash)
	h.fields("tidemark.dev/digest", string(V1), string(p))
}

// count writes a number as 8 bytes, most significant first. A hash never fails to write, so nothing here does.
func (h *hasher) count(n int) {
	_, _ = h.buffer.Write(binary.BigEndian.AppendUint64(h.buffer.AvailableBuffer(), uint64(n))) //nolint:gosec // never negative
}

func (h *hasher) fields(values ...string) {
	for _, v := range values {
		h.count(len(v))
		_, _ = h.buffer.WriteString(v)
	}
}

func (h *hasher) bytes(value []byte) {
	h.count(len(value))
	_, _ = h.buffer.Write(value)
}

// sumField writes a sum as a field, from the hasher's own memory, so that it need not be moved to the heap.
func (h *hasher) sumField(s Sum) {
	h.scratch = s
	h.bytes(h.scratch[:])
}

func (h *hasher) sum() Sum {
	_ = h.buffer.Flush()
	h.hash.Sum(h.scratch[:0])
	return h.scratch
}

// digest ends the hash as a digest of the version; the version "" has none.
func (h *hasher) digest(v Version) Digest {
	if v == "" {
		return ""
	}
	sum := h.sum()
	return Digest(string(v) + "-" + encoding.EncodeToString(sum[:]))
}

// value starts the sum of one key of an object; the value is the one field that follows.
func (h *hasher) value(o workload.Object, key string) {
	h.begin(ofValue)
	h.fields(string(o.Kind), o.Namespace, o.Name, key)
}

// ofStrings sums the values of an object up, or gives nil when there are none.
func (h *hasher) ofStrings(o workload.Object, values map[string]string) map[string]Sum {
	if len(values) == 0 {
		return nil
	}
	sums := make(map[string]Sum, len(values))
	for k, v := range values {
		h.value(o, k)
		h.fields(v)
		sums[k] = h.sum()
	}
	return sums
}

// ofBytes is [hasher.ofStrings] for bytes.
func (h *hasher) ofBytes(o workload.Object, values map[string][]byte) map[string]Sum {
	if len(values) == 0 {
		return nil
	}
	sums := make(map[string]Sum, len(values))
	for k, v := range values {
		h.value(o, k)
		h.bytes(v)
		sums[k] = h.sum()
	}
	return sums
}
