package digest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// This file computes digests of version 1 a second time, straight from docs/design/0004-digest.md: slowly, in plain
// concatenation, and with nothing from the package but its types.

// config is a config object with its content.
type config struct {
	object workload.Object
	absent bool
	data   map[string]string
	binary map[string]string
	secret []byte // of the key, for a Secret
}

func (c config) version() string {
	if c.object.Kind == workload.ConfigMap {
		return "v1"
	}
	id := sha256.Sum256([]byte("tidemark.dev/digest key id\x00" + string(c.secret)))
	return "v1." + hex.EncodeToString(id[:])[:8]
}

// slowField is the length in 8 bytes, most significant first, then the value.
func slowField(v string) string {
	n, length := len(v), make([]byte, 8)
	for i := 7; i >= 0; i-- {
		length[i] = byte(n % 256)
		n /= 256
	}
	return string(length) + v
}

func slowFields(values ...string) string {
	var out string
	for _, v := range values {
		out += slowField(v)
	}
	return out
}

func (c config) slowSum(key, value string) string {
	o := c.object
	text := slowFields("tidemark.dev/digest", "v1", "value", string(o.Kind), o.Namespace, o.Name, key, value)
	if o.Kind == workload.ConfigMap {
		sum := sha256.Sum256([]byte(text))
		return string(sum[:])
	}
	mac := hmac.New(sha256.New, c.secret)
	mac.Write([]byte(text))
	return string(mac.Sum(nil))
}

// slowView is the view's letter, the number of keys, and each key with whether it is there and the sum of its value.
func (c config) slowView(letter string, keys workload.Keys) string {
	visible := map[string]string{}
	if letter == "f" {
		for k, v := range c.binary {
			visible[k] = v
		}
	}
	for k, v := range c.data {
		visible[k] = v
	}
	names := slices.Clone(keys.Names)
	if keys.All {
		names = nil
		for k := range visible {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	out := slowField(letter) + slowField(strings.Repeat("x", len(names)))[:8]
	for _, k := range names {
		if v, ok := visible[k]; ok {
			out += slowFields(k, "present", c.slowSum(k, v))
		} else {
			out += slowFields(k, "absent", "")
		}
	}
	return out
}

func (c config) slowBegin(purpose string, absent bool) string {
	presence := "present"
	if absent {
		presence = "absent"
	}
	o := c.object
	return slowFields("tidemark.dev/digest", "v1", purpose, c.version(), string(o.Kind), o.Namespace, o.Name, presence)
}

func (c config) slowConsumed(required bool, env, files workload.Keys) digest.Digest {
	views := c.slowView("e", env) + c.slowView("f", files)
	absent := !strings.Contains(views, slowField("present")) && (c.absent || !required)
	return slowText(c.version(), c.slowBegin("consumed", absent)+views)
}

func (c config) slowWhole() digest.Digest { return c.slowConsumed(true, all, all) }

func (c config) slowOf(view digest.View, keys workload.Keys) digest.Digest {
	text := c.slowView(string(view), keys)
	return slowText(c.version(), c.slowBegin("view", !strings.Contains(text, slowField("present")))+text)
}

func slowParts(version string, sortedParts ...digest.Part) digest.Digest {
	text := slowFields("tidemark.dev/digest", "v1", "parts")
	for _, p := range sortedParts {
		text += slowFields(string(p.Object.Kind), p.Object.Namespace, p.Object.Name, string(p.Digest))
	}
	return slowText(version, text)
}

// slowText writes a hash as a number of 52 digits to the base 32, after four zero bits are put behind its 256.
func slowText(version, text string) digest.Digest {
	sum := sha256.Sum256([]byte(text))
	n := new(big.Int).Lsh(new(big.Int).SetBytes(sum[:]), 4)
	var out string
	for range 52 {
		var digit big.Int
		n.DivMod(n, big.NewInt(32), &digit)
		out = string("abcdefghijklmnopqrstuvwxyz234567"[digit.Int64()]) + out
	}
	return digest.Digest(version + "-" + out)
}

// content reduces the object with the package under test.
func (c config) content(t testing.TB) digest.Content {
	t.Helper()
	o := c.object
	if o.Kind == workload.Secret {
		key := mustKey(t, c.secret)
		if c.absent {
			return digest.AbsentIn(workload.Secret, key)
		}
		return digest.OfSecret(key, o.Namespace, o.Name, bytesOf(c.data))
	}
	if c.absent {
		return digest.AbsentIn(workload.ConfigMap, nil)
	}
	return digest.OfConfigMap(o.Namespace, o.Name, c.data, bytesOf(c.binary))
}

func bytesOf(values map[string]string) map[string][]byte {
	out := make(map[string][]byte, len(values))
	for k, v := range values {
		out[k] = []byte(v)
	}
	return out
}

func mustKey(t testing.TB, secret []byte) *digest.Key {
	t.Helper()
	key, err := digest.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func secretOf(b byte) []byte { return []byte(strings.Repeat(string(rune(b)), digest.KeySize)) }

func configMap(name string) workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}
}

func secret(name string) workload.Object {
	return workload.Object{Kind: workload.Secret, Namespace: "shop", Name: name}
}

var all = workload.Keys{All: true}

func named(names ...string) workload.Keys { return workload.Keys{Names: names} }

func TestDigestsAreWhatTheDesignSays(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 5000)
	uses := map[string]struct{ env, files workload.Keys }{
		"nothing":                  {},
		"all as environment":       {env: all},
		"all as files":             {files: all},
		"all as both":              {env: all, files: all},
		"some as environment":      {env: named("a", "blob", "gone")},
		"some as files":            {files: named("a", "blob", "gone")},
		"one as each":              {env: named("a"), files: named("b")},
		"the empty name as a file": {files: named("")},
	}
	for name, c := range map[string]config{
		"an absent ConfigMap":    {object: configMap("settings"), absent: true},
		"an empty ConfigMap":     {object: configMap("settings")},
		"a ConfigMap":            {object: configMap("settings"), data: map[string]string{"a": "1", "b": "", "é": "ü"}},
		"one with binary data":   {object: configMap("settings"), data: map[string]string{"a": "1"}, binary: map[string]string{"blob": "\x00\xff", "b": ""}},
		"one with a large value": {object: configMap("settings"), data: map[string]string{"a": large, "b": large[1:]}, binary: map[string]string{"blob": large}},
		"an absent Secret":       {object: secret("db"), absent: true, secret: secretOf(7)},
		"an empty Secret":        {object: secret("db"), secret: secretOf(7)},
		"a Secret":               {object: secret("db"), data: map[string]string{"a": "hunter2", "b": "\xff\x00", "blob": large}, secret: secretOf(7)},
	} {
		content := c.content(t)
		for use, keys := range uses {
			t.Run(name+", "+use, func(t *testing.T) {
				for _, required := range []bool{false, true} {
					got := content.Consumed(workload.Consumption{Object: c.object, Env: keys.env, Files: keys.files, Required: required})
					if want := c.slowConsumed(required, keys.env, keys.files); got != want {
						t.Errorf("consumed, required %v: got %s, want %s", required, got, want)
					}
				}
				if got, want := content.Of(c.object, digest.Env, keys.env), c.slowOf(digest.Env, keys.env); got != want {
					t.Errorf("as environment: got %s, want %s", got, want)
				}
				if got, want := content.Of(c.object, digest.File, keys.files), c.slowOf(digest.File, keys.files); got != want {
					t.Errorf("as files: got %s, want %s", got, want)
				}
			})
		}
		if got, want := content.Whole(c.object), c.slowWhole(); got != want {
			t.Errorf("%s, whole: got %s, want %s", name, got, want)
		}
	}
}

func TestPartsAreWhatTheDesignSays(t *testing.T) {
	t.Parallel()
	a := digest.Part{Object: configMap("a"), Digest: config{object: configMap("a")}.slowWhole()}
	b := digest.Part{Object: configMap("b"), Digest: config{object: configMap("b"), absent: true}.slowWhole()}
	one := config{object: secret("a"), secret: secretOf(1)}
	two := config{object: secret("b"), secret: secretOf(2)}
	s1 := digest.Part{Object: one.object, Digest: one.slowWhole()}
	s2 := digest.Part{Object: two.object, Digest: two.slowWhole()}
	ids := []string{strings.TrimPrefix(one.version(), "v1."), strings.TrimPrefix(two.version(), "v1.")}
	slices.Sort(ids)
	for name, c := range map[string]struct {
		parts []digest.Part
		want  digest.Digest
	}{
		"no part":                       {nil, slowParts("v1")},
		"one part":                      {[]digest.Part{a}, slowParts("v1", a)},
		"parts in any order":            {[]digest.Part{b, a}, slowParts("v1", a, b)},
		"a keyed part gives its key":    {[]digest.Part{s1, a}, slowParts(one.version(), a, s1)},
		"parts under two keys give two": {[]digest.Part{s2, s1, a}, slowParts(fmt.Sprintf("v1.%s.%s", ids[0], ids[1]), a, s1, s2)},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.parts)
			if got := digest.OfParts(c.parts); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if !slices.Equal(given, c.parts) {
				t.Error("the caller's parts were put in order")
			}
		})
	}
}
