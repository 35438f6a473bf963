package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// equally compares logs by what they say: whether a set without keys is nil does not matter.
var equally = cmp.Options{cmpopts.EquateEmpty()}

// manyKeys makes the data of a ConfigMap.
func manyKeys(n int, value string) map[string]string {
	data := map[string]string{}
	for i := range n {
		data[fmt.Sprintf("application.setting-%03d", i)] = value
	}
	return data
}

// logOf makes a log of as many versions, in each of which one key differs.
func logOf(name string, versions, keys int) Log {
	l := Log{Object: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}}
	data := manyKeys(keys, "")
	for i := range versions {
		data[fmt.Sprintf("application.setting-%03d", i%keys)] = fmt.Sprint(i)
		l.Observe(look(float64(10*i), fmt.Sprint(i), digest.OfConfigMap("shop", name, data, map[string][]byte{"logo": {byte(i)}})))
	}
	return l
}

func TestEncodedLogsAreReadBack(t *testing.T) {
	recreated := logOf("a", 3, 4)
	recreated.Observe(look(100, "", absent))
	recreated.Observe(with(look(200.123456789, "9", holding("x")), func(o *Observation) {
		o.UID, o.Unwatched, o.Immutable = "u9", at(150), true
	}))
	secret := Log{Object: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: strings.Repeat("a.", 126) + "b"}}
	key, _ := digest.NewKey(make([]byte, digest.KeySize))
	secret.Observe(look(10, "1", digest.OfSecret(key, "shop", "a", map[string][]byte{"password": []byte("p")})))
	secret.Lingering = true

	joined := logOf("c", 1, 1)
	for i := range 2 * MaxVersions {
		joined.Observe(with(look(float64(100+i), fmt.Sprint(i), holding(fmt.Sprint(i))), func(o *Observation) {
			o.Reads = func(string) bool { return false }
		}))
	}

	want := []Log{recreated, logOf("b", MaxVersions+2, 3), joined, secret}
	shards, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if len(joined.Versions[0].Forgotten) == 0 || !strings.HasPrefix(shards[0]["configmap.c"], `{"f":2,`) || !strings.HasPrefix(shards[0]["configmap.a"], `{"f":1,`) {
		t.Error("want the entry of a log that forgot something, and no other, in the format that older releases do not read")
	}
	got, err := Decode("shop", shards)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, equally); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	again, err := Encode(got)
	if err != nil || !cmp.Equal(shards, again) {
		t.Errorf("what was read back encodes otherwise: %v", err)
	}
}

func TestLogsOfManyObjectsFitInShards(t *testing.T) {
	var logs []Log
	l := logOf("any", 10, 20)
	for i := range 1000 {
		l.Object.Name = fmt.Sprintf("config-%04d", i)
		logs = append(logs, l)
	}
	shards, err := Encode(logs)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, s := range shards {
		size := 0
		for k, v := range s {
			size += len(k) + len(v)
		}
		if size > ShardLimit {
			t.Errorf("shard %d has %d bytes", i, size)
		}
		total += size
	}
	t.Logf("%d logs in %d shards, %d bytes", len(logs), len(shards), total)
	got, err := Decode("shop", shards)
	if err != nil || len(got) != len(logs) {
		t.Fatalf("got %d logs, %v", len(got), err)
	}
	for i, l := range logs {
		if got[i].Object != l.Object || len(got[i].Versions) != 10 || !got[i].Newest().Content.Equal(l.Newest().Content) {
			t.Fatalf("%s was not read back", l.Object)
		}
	}
	if len(shards) > 16 {
		t.Errorf("got %d shards for %d bytes", len(shards), total)
	}
}

func TestAnEntryStaysInItsShardWhenOthersChange(t *testing.T) {
	before, _ := Encode([]Log{logOf("a", 3, 20), logOf("b", 3, 20)})
	after, _ := Encode([]Log{logOf("a", 3, 20), logOf("b", 4, 20), logOf("aa", 2, 2)})
	if before[0]["configmap.a"] == "" || before[0]["configmap.a"] != after[0]["configmap.a"] {
		t.Error("an entry changed with others")
	}
}

func TestLogsThatAreTooLargeLoseTheirOldestVersions(t *testing.T) {
	l := Log{Object: object}
	for i := range 5 {
		l.Observe(look(float64(10*i), fmt.Sprint(i), digest.OfConfigMap("shop", "pricing", manyKeys(900, fmt.Sprint(i)), nil)))
	}
	huge := logOf("huge", 1, 1)
	huge.Observe(look(50, "9", digest.OfConfigMap("shop", "huge", manyKeys(5000, "x"), nil)))

	shards, err := Encode([]Log{l, huge, logOf("small", 2, 2)})
	const want = "encode history of configmap/shop/huge: its newest version alone takes more than 160 KiB"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
	got, err := Decode("shop", shards)
	if err != nil || len(got) != 2 || got[1].Object.Name != "small" {
		t.Fatalf("got %d logs, %v; want the small one and what fits of the large one", len(got), err)
	}
	kept := got[0]
	if n := len(kept.Versions); n == 0 || n == 5 || !kept.Dropped.Equal(kept.Versions[0].Seen) {
		t.Errorf("kept %d versions, dropped before %v", n, kept.Dropped)
	}
	if diff := cmp.Diff(l.Newest(), kept.Newest(), equally); diff != "" {
		t.Errorf("the newest version (-want +got):\n%s", diff)
	}
	if len(l.Versions) != 5 {
		t.Error("encoding changed the log")
	}
}

func TestABadEntryDoesNotLoseTheOthers(t *testing.T) {
	good, _ := Encode([]Log{logOf("good", 2, 2)})
	text := good[0]["configmap.good"]
	for name, tc := range map[string]struct{ key, value, want string }{
		"no JSON":                  {"configmap.bad", "{", `decode history entry "configmap.bad": unexpected end of JSON input`},
		"another format":           {"configmap.bad", `{"f":3}`, `decode history entry "configmap.bad": format of another release`},
		"a key that names another": {"configmap.bad", text, `decode history entry "configmap.bad": its key names another object`},
		"an object of another namespace": {
			"configmap.good", strings.Replace(text, "/shop/", "/other/", 1), `decode history entry "configmap.good": object of another namespace`,
		},
		"no versions": {
			"configmap.bad", `{"f":1,"o":"configmap/shop/bad","v":[]}`, `decode history entry "configmap.bad": no versions`,
		},
		"times out of order": {
			"configmap.bad", `{"f":1,"o":"configmap/shop/bad","v":[{"s":"2026-01-01T00:00:00Z"},{"s":"2026-01-02T00:00:00Z"}]}`,
			`decode history entry "configmap.bad": times out of order`,
		},
		"a window that ends before it begins": {
			"configmap.bad", `{"f":1,"o":"configmap/shop/bad","v":[{"nb":"2026-01-02T00:00:00Z","s":"2026-01-01T00:00:00Z"}]}`,
			`decode history entry "configmap.bad": times out of order`,
		},
		"a sum that is cut off": {
			"configmap.bad", `{"f":1,"o":"configmap/shop/bad","v":[{"s":"2026-01-01T00:00:00Z","data":{"a":"AAAA"}}]}`,
			`decode history entry "configmap.bad": sum "AAAA": want 32 bytes of base64`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs, err := Decode("shop", []map[string]string{{tc.key: tc.value}, nil, {"configmap.other": strings.ReplaceAll(text, "/good", "/other")}})
			if len(logs) != 1 || logs[0].Object.Name != "other" {
				t.Errorf("got %d logs, want the good one", len(logs))
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("got error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestEncodeNamesALogThatItCannotKeep(t *testing.T) {
	shards, err := Encode([]Log{{Object: workload.Object{Kind: "Pod", Namespace: "shop", Name: "x"}}, logOf("a", 1, 1)})
	if err == nil || !strings.Contains(err.Error(), "pod/shop/x") || len(shards) != 1 || len(shards[0]) != 1 {
		t.Errorf("got %d shards, %v", len(shards), err)
	}
}

func TestOfTwoEntriesOfAnObjectTheLatestCounts(t *testing.T) {
	older, _ := Encode([]Log{logOf("a", 2, 2)})
	newer, _ := Encode([]Log{logOf("a", 5, 2)})
	for _, shards := range [][]map[string]string{{older[0], newer[0]}, {newer[0], older[0]}} {
		logs, err := Decode("shop", shards)
		if err != nil || len(logs) != 1 || len(logs[0].Versions) != 5 {
			t.Errorf("got %d logs, %v", len(logs), err)
		}
	}
}

func TestKeysOfEntriesNeverMeet(t *testing.T) {
	long := strings.Repeat("a", 253)
	keys := map[string]bool{}
	for _, o := range []workload.Object{
		{Kind: workload.ConfigMap, Name: "a"}, {Kind: workload.Secret, Name: "a"},
		{Kind: workload.ConfigMap, Name: long}, {Kind: workload.ConfigMap, Name: long[1:]}, {Kind: workload.Secret, Name: long},
	} {
		key := entryKey(o)
		if keys[key] || len(key) > maxKey || strings.Trim(key, "-._abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("bad key %q", key)
		}
		keys[key] = true
	}
}

func FuzzDecode(f *testing.F) {
	shards, _ := Encode([]Log{logOf("a", 4, 3), {Object: object, Versions: []Version{{Seen: at(1), Content: absent}}}})
	for k, v := range shards[0] {
		f.Add(k, v)
	}
	f.Add("configmap.a", `{"f":1,"o":"configmap/shop/a","v":[{"s":"2026-01-01T00:00:00Z","data":{"k":null}}]}`)
	f.Fuzz(func(t *testing.T, key, value string) {
		logs, err := Decode("shop", []map[string]string{{key: value}})
		if err != nil {
			return
		}
		shards, err := Encode(logs)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		again, err := Decode("shop", shards)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if len(again) == len(logs) && !cmp.Equal(logs, again, equally) {
			t.Errorf("decoded differently:\n%s", cmp.Diff(logs, again, equally))
		}
	})
}

func TestRandomLogsAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		l := Log{Object: object}
		data := map[string]string{}
		now := 0.0
		for range 1 + r.IntN(15) {
			now += r.Float64() * 100
			for range r.IntN(3) {
				data[fmt.Sprint("k", r.IntN(5))] = fmt.Sprint(r.IntN(3))
				delete(data, fmt.Sprint("k", r.IntN(5)))
			}
			o := look(now, fmt.Sprint(now), digest.OfConfigMap("shop", "pricing", maps.Clone(data), nil))
			if r.IntN(5) == 0 {
				o = look(now, "", absent)
			}
			if r.IntN(5) == 0 {
				o.Unwatched = at(now - 50)
			}
			l.Observe(o)
		}
		shards, err := Encode([]Log{l})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode("shop", shards)
		if diff := cmp.Diff([]Log{l}, got, equally); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
}
