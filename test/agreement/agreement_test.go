// Package agreement proves that a program that uses the library loaded computes the digests that the product does.
package agreement

import (
	"encoding/base32"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/loaded"
)

// contents is how many random ConfigMaps are compared.
const contents = 1000

// configMap is a ConfigMap as it is applied.
type configMap struct {
	namespace, name string
	data            map[string]string
	binary          map[string][]byte
}

func (c configMap) object() workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: c.namespace, Name: c.name}
}

// files are what a volume shows of it.
func (c configMap) files() map[string][]byte {
	files := maps.Clone(c.binary)
	for k, v := range c.data {
		files[k] = []byte(v)
	}
	return files
}

// use is how a container reads it. Keys may be named that it does not have.
type use struct {
	prefix string
	// envFrom reads all keys into the environment, and by the prefix alone where byPrefix.
	envFrom, byPrefix bool
	// overridden are keys whose variables another entry of the container sets.
	overridden []string
	env        []string
	volume     bool
	items      []string
}

// consumption is what of the ConfigMap is read: where keys are overridden, all the others by their names.
func (u use) consumption(of configMap) workload.Consumption {
	c := workload.Consumption{Object: of.object(), Env: workload.Keys{Names: u.env}, Files: workload.Keys{Names: u.items}}
	switch {
	case u.envFrom && len(u.overridden) > 0:
		rest := maps.Clone(of.data)
		maps.DeleteFunc(rest, func(k, _ string) bool { return slices.Contains(u.overridden, k) })
		c.Env = workload.Keys{Names: slices.Sorted(maps.Keys(rest))}
	case u.envFrom:
		c.Env = workload.Keys{All: true}
	}
	if u.volume {
		c.Files = workload.Keys{All: true}
	}
	return c
}

func TestAProgramAndTheControllerAgreeOnRandomContents(t *testing.T) {
	compared := map[string]int{}
	for i := range contents {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		c := randomConfigMap(random)
		u := randomUse(random, c)
		t.Run(fmt.Sprintf("content %d", i), func(t *testing.T) { compare(t, c, u, compared) })
	}
	for _, kind := range []string{"environment by prefix", "environment by names", "single keys", "volume", "items", "binary", "absent keys", "overridden keys"} {
		if compared[kind] < contents/20 {
			t.Errorf("%s was compared %d times: the worlds are too poor", kind, compared[kind])
		}
	}
}

func FuzzAProgramAndTheControllerAgree(f *testing.F) {
	f.Add("settings", "level", "debug", []byte{0, 255}, "APP_")
	f.Add("a.b", "k-e.y_", "", []byte(nil), "x")
	f.Fuzz(func(t *testing.T, name, key, text string, blob []byte, prefix string) {
		if !isKey(name) || !isKey(key) || strings.Contains(text, "\x00") || prefix == "" || strings.ContainsAny(prefix, "=\x00") {
			t.Skip("no ConfigMap, or no environment, is like this")
		}
		c := configMap{namespace: "shop", name: name, data: map[string]string{key: text}, binary: map[string][]byte{key + ".bin": blob}}
		compare(t, c, use{prefix: "TIDEMARK_" + prefix, envFrom: true, byPrefix: true, volume: true}, map[string]int{})
		compare(t, c, use{prefix: "TIDEMARK_" + prefix, envFrom: true, byPrefix: true, overridden: []string{key}, volume: true}, map[string]int{})
		compare(t, c, use{env: []string{key}, items: []string{key, key + ".bin", "gone"}}, map[string]int{})
	})
}

// compare gives a program the ConfigMap as a kubelet does, and compares what it reports with what the product computes.
func compare(t *testing.T, c configMap, u use, compared map[string]int) {
	t.Helper()
	reporter, err := loaded.New(c.namespace)
	if err != nil {
		t.Fatal(err)
	}
	load := reporter.ConfigMap(c.name, loaded.Overridden(u.overridden...)).Begin()
	readEnvironment(t, load, c, u)
	readFiles(t, load, c, u)
	load.Done()

	content := digest.OfConfigMap(c.namespace, c.name, c.data, c.binary)
	want := string(content.Consumed(u.consumption(c)))
	got := reporter.Report().Objects[0]
	found := slices.ContainsFunc(slices.Concat(got.Env, got.Files), func(k loaded.Key) bool { return k.Digest != "" })
	if !found {
		want = "" // an absent object would look the same
	}
	if got.Digest != want {
		t.Errorf("the program reports %q, the controller computes %q\n%+v\n%+v", got.Digest, want, c, u)
	}
	compareKeys(t, got.Env, func(key string) (digest.Sum, bool) { s, ok := content.Data[key]; return s, ok })
	compareKeys(t, got.Files, content.Value)
	if len(u.overridden) > 0 && !slices.Equal(got.LeftOut, u.overridden) {
		t.Errorf("the program reports that it leaves out %q, want %q", got.LeftOut, u.overridden)
	}
	count(compared, c, u, want != "" && want == got.Digest)
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// compareKeys compares the digest of each key, which have the text form of other digests.
func compareKeys(t *testing.T, keys []loaded.Key, of func(string) (digest.Sum, bool)) {
	t.Helper()
	for _, k := range keys {
		sum, present := of(k.Name)
		if present != (k.Digest != "") {
			t.Errorf("key %q: reported %q, and it is there: %t", k.Name, k.Digest, present)
		}
		if want := "v1-" + lowerBase32.EncodeToString(sum[:]); present && k.Digest != want {
			t.Errorf("key %q: reported %s, want %s", k.Name, k.Digest, want)
		}
	}
}

func readEnvironment(t *testing.T, load *loaded.Load, c configMap, u use) {
	t.Helper()
	if u.envFrom {
		given := maps.Clone(c.data)
		for _, k := range u.overridden {
			given[k] = "of another entry"
		}
		for k, v := range given {
			t.Setenv(u.prefix+k, v)
		}
		keys := slices.Collect(maps.Keys(c.data))
		if u.byPrefix {
			keys = nil
		}
		if len(keys) > 0 || u.prefix != "" {
			got, err := load.EnvFrom(u.prefix, keys...)
			if err != nil || !maps.Equal(got, given) && len(given) > 0 {
				t.Errorf("the program gets %q, %v; want %q", got, err, given)
			}
		}
	}
	for i, k := range u.env {
		variable := fmt.Sprintf("VARIABLE_%d", i)
		if v, ok := c.data[k]; ok {
			t.Setenv(variable, v)
		}
		load.Getenv(k, variable)
	}
}

func readFiles(t *testing.T, load *loaded.Load, c configMap, u use) {
	t.Helper()
	dir := t.TempDir()
	for k, v := range c.files() {
		if err := os.WriteFile(filepath.Join(dir, k), v, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if u.volume {
		if _, err := load.ReadDir(dir); err != nil {
			t.Error(err)
		}
	}
	for _, k := range u.items {
		_, _ = load.ReadFile(k, filepath.Join(dir, k)) // an absent key is an error, and part of the digest
	}
}

func count(compared map[string]int, c configMap, u use, has bool) {
	for kind, is := range map[string]bool{
		"environment by prefix": u.envFrom && u.byPrefix,
		"environment by names":  u.envFrom && !u.byPrefix,
		"single keys":           len(u.env) > 0,
		"volume":                u.volume,
		"items":                 len(u.items) > 0,
		"binary":                len(c.binary) > 0 && (u.volume || len(u.items) > 0),
		"absent keys":           slices.Contains(slices.Concat(u.env, u.items), absentKey),
		"overridden keys":       len(u.overridden) > 0,
	} {
		if is && has {
			compared[kind]++
		}
	}
}

const (
	keyChars  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	absentKey = "not-there"
)

func isKey(s string) bool {
	return s != "" && len(s) < 200 && strings.Trim(s, keyChars) == "" && !strings.HasPrefix(s, ".")
}

func randomConfigMap(r *rand.Rand) configMap {
	c := configMap{namespace: text(r, "abcdefgh", 8) + "n", name: text(r, "abcdefgh", 12) + "m", data: map[string]string{}, binary: map[string][]byte{}}
	for range r.IntN(6) {
		c.data["k"+text(r, keyChars, 20)] = text(r, "ab\n\t ={}:\"'ü€日\U0001F600;\\", 60)
	}
	for range r.IntN(4) {
		blob := make([]byte, r.IntN(200))
		for i := range blob {
			blob[i] = byte(r.IntN(256))
		}
		c.binary["b"+text(r, keyChars, 20)] = blob
	}
	return c
}

func text(r *rand.Rand, chars string, longest int) string {
	all := []rune(chars)
	out := make([]rune, r.IntN(longest))
	for i := range out {
		out[i] = all[r.IntN(len(all))]
	}
	return string(out)
}

func randomUse(r *rand.Rand, c configMap) use {
	u := use{envFrom: r.IntN(2) == 0, byPrefix: r.IntN(2) == 0, volume: r.IntN(2) == 0}
	if u.byPrefix || r.IntN(2) == 0 {
		u.prefix = "TIDEMARK_" + text(r, keyChars, 8) + "."
	}
	some := func(keys []string) []string {
		out := []string{}
		for _, k := range append(keys, absentKey) {
			if r.IntN(2) == 0 {
				out = append(out, k)
			}
		}
		slices.Sort(out)
		return out
	}
	if u.envFrom && r.IntN(2) == 0 {
		u.overridden = slices.DeleteFunc(some(slices.Sorted(maps.Keys(c.data))), func(k string) bool { return k == absentKey })
	}
	if !u.envFrom {
		u.env = some(slices.Sorted(maps.Keys(c.data)))
	}
	if !u.volume {
		u.items = some(slices.Sorted(maps.Keys(c.files())))
	}
	return u
}
