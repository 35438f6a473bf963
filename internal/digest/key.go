package digest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Key keys the digests of Secrets, so that a password cannot be guessed from what is published about it. Keys come from
// [NewKey] and [RandomKey]; a Secret is never digested without one, so the zero value and nil panic where they are used.
type Key struct {
	id     string
	secret []byte
}

// KeySize is the size of a key's secret, in bytes.
const KeySize = 32

// NewKey makes a key of a secret of [KeySize] bytes.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != KeySize {
		return nil, fmt.Errorf("make digest key: have %d bytes, want %d", len(secret), KeySize)
	}
	id := sha256.Sum256(append([]byte("tidemark.dev/digest key id\x00"), secret...))
	return &Key{id: hex.EncodeToString(id[:4]), secret: bytes.Clone(secret)}, nil
}

// RandomKey makes a key that nobody else has: its digests compare with each other only.
func RandomKey() (*Key, error) {
	secret := make([]byte, KeySize)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make digest key: %w", err)
	}
	return NewKey(secret)
}

// Secret returns a copy of the key's secret, for whoever stores it.
func (k *Key) Secret() []byte { return bytes.Clone(k.mustSecret()) }

// Version is the version of the digests made with the key.
func (k *Key) Version() Version {
	k.mustSecret()
	return V1 + Version("."+k.id)
}

// Format prints the key's id, whatever the verb, so that no log ever has the secret.
func (k Key) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "digest key %s", k.id) }

func (k *Key) mustSecret() []byte {
	if k == nil || len(k.secret) != KeySize {
		panic("digest: a Secret is never digested without a key")
	}
	return k.secret
}
