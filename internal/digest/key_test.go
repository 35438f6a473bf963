package digest_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
)

func TestAKeyIsMadeOfThirtyTwoBytes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 31, 33, 64} {
		if _, err := digest.NewKey(make([]byte, n)); err == nil {
			t.Errorf("a key is made of %d bytes", n)
		}
	}
	if _, err := digest.NewKey(make([]byte, digest.KeySize)); err != nil {
		t.Error(err)
	}
}

func TestAKeyDoesNotShareItsSecret(t *testing.T) {
	t.Parallel()
	given := secretOf(1)
	key := mustKey(t, given)
	sum := func() digest.Content { return digest.OfSecret(key, "shop", "db", map[string][]byte{"a": []byte("1")}) }
	before := sum()
	given[0]++
	key.Secret()[1]++
	if !before.Equal(sum()) || !bytes.Equal(key.Secret(), secretOf(1)) {
		t.Error("a key changes with what it was made of or what it gave out")
	}
}

func TestAStoredKeyIsTheSameKey(t *testing.T) {
	t.Parallel()
	key, err := digest.RandomKey()
	if err != nil {
		t.Fatal(err)
	}
	again := mustKey(t, key.Secret())
	data := map[string][]byte{"a": []byte("1")}
	if a, b := digest.OfSecret(key, "shop", "db", data), digest.OfSecret(again, "shop", "db", data); !a.Equal(b) {
		t.Error("a key read back makes other sums")
	}
	other, err := digest.RandomKey()
	if err != nil {
		t.Fatal(err)
	}
	if key.Version() == other.Version() {
		t.Error("two random keys have one version")
	}
}

func TestAKeyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdefghijklmnopqrstuv")
	key := mustKey(t, secret)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", key, "value", *key)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", key, "value", *key)
	encoded, err := json.Marshal(struct{ Key *digest.Key }{key})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		texts = append(texts, fmt.Sprintf(verb, key), fmt.Sprintf(verb, *key), fmt.Sprintf(verb, []*digest.Key{key}), fmt.Sprintf(verb, struct{ K digest.Key }{*key}))
	}
	for _, text := range texts {
		for _, leak := range []string{string(secret), hex.EncodeToString(secret[:4]), "48 49 50", "48,49,50", "0x30, 0x31"} {
			if strings.Contains(strings.ToLower(text), leak) {
				t.Errorf("printed: %s", text)
			}
		}
	}
	if got, want := fmt.Sprint(key), "digest key "+strings.TrimPrefix(string(key.Version()), "v1."); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASecretIsNeverDigestedWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(){
		"no key":                 func() { digest.OfSecret(nil, "shop", "db", nil) },
		"an empty key":           func() { digest.OfSecret(&digest.Key{}, "shop", "db", map[string][]byte{"a": nil}) },
		"absence, no key":        func() { digest.AbsentIn("Secret", nil) },
		"an empty key's version": func() { (&digest.Key{}).Version() },
		"an empty key's secret":  func() { (&digest.Key{}).Secret() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a Secret was digested without a key")
				}
			}()
			use()
		})
	}
}
