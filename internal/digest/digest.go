// Package digest gives configuration a canonical, versioned digest.
//
// # Version 1
//
// A digest is made in two layers, so that whoever keeps the first layer (32 bytes a key) needs no data to make the second.
// The [Sum] of a key binds the object's kind, namespace and name, the key, and the value's bytes. The [Digest] of what is
// consumed of an object hashes the sums of the consumed keys in order, each present or absent. Every field is preceded by
// its length, every layer by its purpose, so that no two different inputs share an encoding. The hash is SHA-256; for
// Secrets it is HMAC-SHA-256 under a [Key], and the key's id is part of the digest's version.
package digest

import (
	"cmp"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/workload"
)

// Version names the method of a digest, with the id of the key for a keyed one: "v1", "v1.5f2a9c01". A digest made of
// digests under several keys has the ids of them all.
type Version string

// V1 is the version of this package's digests of ConfigMaps.
const V1 Version = "v1"

// Digest is a versioned digest in text, "VERSION-HASH"; the hash is 52 characters of lower-case base32 without padding.
// Every version has this form, so that a program can tell a newer digest from none. The zero value means that there is none.
type Digest string

// Version returns the part before the hash, and "" for a text that is no digest.
func (d Digest) Version() Version {
	v, ok := parse(string(d))
	if !ok {
		return ""
	}
	return v
}

// Comparable reports whether two digests were made by the same method under the same key, so that their difference means
// different content. Digests of different versions say nothing about each other.
func Comparable(a, b Digest) bool {
	v := a.Version()
	return v != "" && v == b.Version()
}

// Short gives the first eight characters of the hash, for people; the whole text where there is no hash.
func (d Digest) Short() string {
	_, h, ok := strings.Cut(string(d), "-")
	if !ok || len(h) < 8 {
		return string(d)
	}
	return h[:8]
}

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// Parse checks that a text is a digest of some version, in the one way of writing it.
func Parse(s string) (Digest, error) {
	if _, ok := parse(s); !ok {
		return "", fmt.Errorf("parse digest %q: want VERSION-HASH with 52 characters of base32", s)
	}
	return Digest(s), nil
}

func parse(s string) (Version, bool) {
	v, h, _ := strings.Cut(s, "-")
	return Version(v), isVersion(v) && isHash(h)
}

// isVersion reports whether the text is "v" with a number, then any number of ids, each after a dot.
func isVersion(s string) bool {
	method, ids, hasIDs := strings.Cut(s, ".")
	number, ok := strings.CutPrefix(method, "v")
	if !ok || !consistsOf(number, digits) {
		return false
	}
	if !hasIDs {
		return true
	}
	for id := range strings.SplitSeq(ids, ".") {
		if !consistsOf(id, digits+letters) {
			return false
		}
	}
	return true
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyz"
)

// isHash reports whether the text encodes a sum. The last of its characters has bits to spare, which must be zero.
func isHash(s string) bool {
	if len(s) != encoding.EncodedLen(len(Sum{})) || !consistsOf(s, alphabet) {
		return false
	}
	return strings.IndexByte(alphabet, s[len(s)-1])%16 == 0
}

func consistsOf(s, chars string) bool { return s != "" && strings.Trim(s, chars) == "" }

// Part is one digest of a stamp: what was consumed of one object.
type Part struct {
	Object workload.Object
	Digest Digest
}

// OfParts digests the parts of several objects into one, whatever their order. Its version has the ids of the keys of all
// parts, because with another key it would be another digest of the same content.
func OfParts(parts []Part) Digest {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(a.Object.Compare(b.Object), cmp.Compare(a.Digest, b.Digest))
	})
	h := newHasher(nil)
	h.begin(ofParts)
	var ids []string
	for _, p := range parts {
		h.fields(string(p.Object.Kind), p.Object.Namespace, p.Object.Name, string(p.Digest))
		if _, id, keyed := strings.Cut(string(p.Digest.Version()), "."); keyed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return h.digest(Version(strings.Join(append([]string{string(V1)}, slices.Compact(ids)...), ".")))
}
