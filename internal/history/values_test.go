package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// step is a content that an object takes on, with what was read of it right after.
type step struct{ applied, read map[string]string }

// kept plays the steps of an object of which all keys but "unread" are read, and encodes its log and reads it back after each.
func kept(t *testing.T, steps ...step) Log {
	t.Helper()
	l := Log{Object: object}
	for i, s := range steps {
		l.Observe(look(float64(10*i), fmt.Sprint(i), digest.OfConfigMap(object.Namespace, object.Name, s.applied, nil)))
		l.Keep(s.read, func(key string) bool { return key != "unread" })
		shards, err := Encode([]Log{l})
		if err != nil {
			t.Fatal(err)
		}
		logs, err := Decode(object.Namespace, shards)
		if err != nil || len(logs) != 1 {
			t.Fatalf("read back %d logs, %v", len(logs), err)
		}
		l = logs[0]
	}
	return l
}

// was gives the value of each version, oldest first; "-" where it is not kept.
func was(l Log, key string) []string {
	var out []string
	for _, v := range l.Versions {
		value, ok := l.Value(key, v.Content.Data[key])
		if !ok {
			value = "-"
		}
		out = append(out, value)
	}
	return out
}

func same(data map[string]string) step { return step{data, data} }

func TestValuesAreKept(t *testing.T) {
	one := func(key, value string) map[string]string { return map[string]string{key: value} }
	long := strings.Repeat("x", MaxValue)
	for name, tc := range map[string]struct {
		key   string
		steps []step
		want  []string
	}{
		"of every version":                     {"LEASE", []step{same(one("LEASE", "10m")), same(one("LEASE", "2m"))}, []string{"10m", "2m"}},
		"that come back":                       {"LEASE", []step{same(one("LEASE", "10m")), same(one("LEASE", "2m")), same(one("LEASE", "10m"))}, []string{"10m", "2m", "10m"}},
		"that are empty":                       {"LEASE", []step{same(one("LEASE", "")), same(one("LEASE", "2m"))}, []string{"", "2m"}},
		"of up to 1 KiB":                       {"LEASE", []step{same(one("LEASE", long)), same(one("LEASE", long+"x"))}, []string{long, "-"}},
		"only of keys that are read":           {"unread", []step{same(one("unread", "1"))}, []string{"-"}},
		"never where they look like passwords": {"DB_PASSWORD", []step{same(one("DB_PASSWORD", "hunter2"))}, []string{"-"}},
		"only as text":                         {"LEASE", []step{same(one("LEASE", "\xff"))}, []string{"-"}},
		"never from another state":             {"LEASE", []step{{one("LEASE", "10m"), one("LEASE", "5m")}, same(one("LEASE", "5m"))}, []string{"-", "5m"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, was(kept(t, tc.steps...), tc.key)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOldestValuesGoFirst(t *testing.T) {
	var steps []step
	for i := range MaxVersions {
		steps = append(steps, same(map[string]string{"LEASE": fmt.Sprint(i), "big": fmt.Sprint(i) + strings.Repeat("x", MaxValue-1)}))
	}
	l := kept(t, steps...)
	if got := was(l, "big"); got[0] != "-" || got[1] != "-" || got[MaxVersions-1] != steps[MaxVersions-1].applied["big"] {
		t.Errorf("kept of the oldest %.5q, %.5q, and of the newest %.5q", got[0], got[1], got[MaxVersions-1])
	}
	size := 0
	for _, values := range l.Values {
		for _, v := range values {
			size += len(v)
		}
	}
	if size > MaxValues {
		t.Errorf("kept %d bytes", size)
	}
}

func TestValuesGoWithTheirVersions(t *testing.T) {
	var steps []step
	for i := range MaxVersions + 2 {
		steps = append(steps, same(map[string]string{"LEASE": fmt.Sprint(i)}))
	}
	if got := kept(t, steps...).Values["LEASE"]; len(got) != MaxVersions || slices.Contains(got, "1") {
		t.Errorf("kept %v", got)
	}
}

func TestSecretsNeverHaveValues(t *testing.T) {
	key, _ := digest.NewKey(make([]byte, digest.KeySize))
	l := Log{Object: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}}
	l.Observe(look(10, "1", digest.OfSecret(key, "shop", "db", map[string][]byte{"user": []byte("MARKER")})))
	l.Keep(map[string]string{"user": "MARKER"}, func(string) bool { return true })
	shards, _ := Encode([]Log{l})
	if l.Values != nil || strings.Contains(shards[0]["secret.db"], "MARKER") {
		t.Errorf("kept %v", l.Values)
	}
	planted := strings.Replace(shards[0]["secret.db"], `"v":[`, `"val":{"user":["MARKER"]},"v":[`, 1)
	logs, err := Decode("shop", []map[string]string{{"secret.db": planted}})
	if err != nil || logs[0].Values != nil {
		t.Errorf("took over %v, %v", logs[0].Values, err)
	}
}

// TestEntriesOfEarlierReleasesAreRead reads an entry as releases wrote it that kept no values.
func TestEntriesOfEarlierReleasesAreRead(t *testing.T) {
	const earlier = `{"f":1,"o":"configmap/shop/pricing","v":[{"s":"2026-06-01T10:00:10Z","nb":"2026-06-01T10:00:08Z","uid":"u1","rv":"2",` +
		`"d":"v1","data":{"interval":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},{"s":"2026-06-01T10:00:00Z","uid":"u1","rv":"1","d":"v1",` +
		`"data":{"interval":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}`
	logs, err := Decode("shop", []map[string]string{{"configmap.pricing": earlier}})
	if err != nil || len(logs) != 1 || len(logs[0].Versions) != 2 {
		t.Fatalf("got %d logs, %v", len(logs), err)
	}
	if logs[0].Values != nil || !slices.Equal(was(logs[0], "interval"), []string{"-", "-"}) {
		t.Errorf("it has values: %v", logs[0].Values)
	}
}

// TestValuesGiveWayToVersions fills a log so far that it has no room for values.
func TestValuesGiveWayToVersions(t *testing.T) {
	data := manyKeys(1800, "")
	l := Log{Object: object}
	l.Observe(look(10, "1", digest.OfConfigMap("shop", "pricing", data, nil)))
	data["application.setting-000"] = strings.Repeat("x", MaxValue)
	l.Observe(look(20, "2", digest.OfConfigMap("shop", "pricing", data, nil)))
	l.Keep(data, func(string) bool { return true })
	text, err := encodeLog(l)
	if err != nil {
		t.Fatal(err)
	}
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil || len(e.Versions) != 2 || e.Values != nil {
		t.Errorf("kept %d versions, %d values, %v", len(e.Versions), len(e.Values), err)
	}
}

// TestTheHistoryOfTenThousandObjectsIsKeptWhole has each object ten versions with values, in one namespace, which is the worst case.
func TestTheHistoryOfTenThousandObjectsIsKeptWhole(t *testing.T) {
	const objects = 10_000
	const limit = 1 << 20 // of an object of the API
	logs := make([]Log, 0, objects)
	for i := range objects {
		o := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: fmt.Sprintf("config-%05d", i)}
		l := Log{Object: o}
		data := map[string]string{"LEASE": "", "MODE": "fast", "LIMITS": strings.Repeat("x", i%200)}
		l.Values = Values{"MODE": {data["MODE"]}, "LIMITS": {data["LIMITS"]}}
		for v := range MaxVersions {
			data["LEASE"] = fmt.Sprintf("%dm of %d", v, i)
			l.Observe(look(float64(10*v), fmt.Sprint(v), digest.OfConfigMap(o.Namespace, o.Name, data, nil)))
			l.Values["LEASE"] = append(l.Values["LEASE"], data["LEASE"])
		}
		logs = append(logs, l)
	}
	shards, err := Encode(logs)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shards {
		if size := sizeOf(s); size > limit/4*3 {
			t.Errorf("shard %d has %d bytes", i, size)
		}
	}
	t.Logf("%d shards", len(shards))
	got, err := Decode("shop", shards)
	if err != nil || len(got) != objects {
		t.Fatalf("got %d logs, %v", len(got), err)
	}
	for i, l := range got {
		if oldest, ok := l.Value("LEASE", l.Versions[0].Content.Data["LEASE"]); len(l.Versions) != MaxVersions || !ok || oldest != fmt.Sprintf("0m of %d", i) {
			t.Fatalf("%s has %d versions, the oldest with %q", l.Object, len(l.Versions), oldest)
		}
	}
}

func sizeOf(shard map[string]string) int {
	n := 0
	for k, v := range shard {
		n += len(k) + len(v)
	}
	return n
}
