package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func versioned(t *testing.T, name string, hours int) snapshot.Snapshot {
	t.Helper()
	s, _ := snapshot.ReadVersioned(workload.ConfigMap, &metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(hours) * time.Hour)),
	})
	return s
}

func TestReadVersioned(t *testing.T) {
	for name, want := range map[string]string{
		"app-config-12":                          "app-config-N 12",
		"app-config-0":                           "app-config-N 0",
		"app-config-v12":                         "app-config-vN 12",
		"app-2-config-12":                        "app-2-config-N 12",
		"app-config-20261130":                    "app-config-N 20261130",
		"app-config-3f2a9c01":                    "app-config-HASH 0",
		"app-config-" + strings.Repeat("a1", 32): "app-config-HASH 0",
		"app-config-012":                         "",
		"app-config":                             "",
		"app-config12":                           "",
		"app-12-config":                          "",
		"app-config-12.":                         "",
		"12":                                     "",
		"-12":                                    "",
		"app-config-3f2a9c0":                     "",
		"app-config-deadbeef":                    "",
		"app-config-3F2A9C01":                    "",
		"app-config-x12":                         "",
		"app.config.12":                          "",
		"app-" + strings.Repeat("a1", 33):        "",
	} {
		s, ok := snapshot.ReadVersioned(workload.ConfigMap, &metav1.ObjectMeta{Namespace: "shop", Name: name})
		got := ""
		if ok {
			got = fmt.Sprintf("%s %d", s.Source.Name, s.Revision)
		} else if s.Source != s.Object {
			t.Errorf("%s: no version, and yet of %s", name, s.Source)
		}
		if got != want || s.Object.Name != name {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPlanRelease(t *testing.T) {
	twelve := func() []snapshot.Snapshot {
		var out []snapshot.Snapshot
		for i := 12; i >= 1; i-- {
			out = append(out, versioned(t, fmt.Sprintf("app-config-%d", i), 24-i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		names    []string // made an hour after the other
		used     string
		released string
		revision int64
		minAge   time.Duration
		want     string
	}{
		"numbers are numbers, not texts": {
			names: []string{"c-1", "c-2", "c-9", "c-10", "c-12"}, want: "c-12 keep recent, c-10 keep recent, c-9 delete superseded, c-2 delete superseded, c-1 delete superseded",
		},
		"names that begin alike are other families": {
			names: []string{"app-1", "app-2", "app-3", "app-two-1", "app-two-2", "app-v1", "app-1-2"},
			want: "app-1-2 keep recent, app-3 keep recent, app-2 keep recent, app-1 delete superseded, " +
				"app-two-2 keep recent, app-two-1 keep recent, app-v1 keep recent",
		},
		"hashes by age": {
			names: []string{"c-00000001a", "c-f0000000", "c-a0000000", "c-b0000000"},
			want:  "c-b0000000 keep recent, c-a0000000 keep recent, c-f0000000 delete superseded, c-00000001a delete superseded",
		},
		"what is used stays": {
			names: []string{"c-1", "c-2", "c-3", "c-4"}, used: "c-1",
			want: "c-4 keep recent, c-3 keep recent, c-2 delete superseded, c-1 keep used",
		},
		"what the release has stays": {
			names: []string{"c-1", "c-2", "c-3", "c-4"}, released: "c-1",
			want: "c-4 keep recent, c-3 keep recent, c-2 delete superseded, c-1 keep released",
		},
		"what has no version stays": {
			names: []string{"c-1", "c-2", "c-3", "settings"}, want: "c-3 keep recent, c-2 keep recent, c-1 delete superseded, settings keep unversioned",
		},
		"no number above the newest revision is one": {
			names: []string{"c-1", "c-2", "c-3", "port-8080", "port-8081", "port-8082"}, revision: 3,
			want: "c-3 keep recent, c-2 keep recent, c-1 delete superseded, " +
				"port-8080 keep unversioned, port-8081 keep unversioned, port-8082 keep unversioned",
		},
		"what is young stays, where that is asked for": {
			names: []string{"c-1", "c-2", "c-3", "c-4"}, minAge: 3*time.Hour + time.Minute,
			want: "c-4 keep recent, c-3 keep recent, c-2 keep young, c-1 delete superseded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stock := snapshot.ReleaseStock{Now: noon, Uses: snapshot.Uses{}, Named: map[string]bool{tc.released: true}, Revision: tc.revision}
			for i, n := range tc.names {
				stock.Objects = append(stock.Objects, versioned(t, n, len(tc.names)-i))
			}
			if tc.used != "" {
				stock.Uses.Add(object(workload.ConfigMap, tc.used), snapshot.User{Role: snapshot.ByPod, Name: "pod/web"})
			}
			r := snapshot.Retention{History: 2, MinAge: tc.minAge}
			got := strings.Join(words(r.PlanRelease(stock)), ", ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("of twelve revisions the last five stay", func(t *testing.T) {
		deleted := 0
		for _, v := range (snapshot.Retention{History: 5}).PlanRelease(snapshot.ReleaseStock{Now: noon, Objects: twelve(), Revision: 12}) {
			if v.Action == snapshot.Delete {
				deleted++
			}
			if (v.Action == snapshot.Delete) != (v.Revision <= 7) {
				t.Errorf("revision %d: %s", v.Revision, v.Action)
			}
		}
		if deleted != 7 {
			t.Errorf("%d deleted, want 7", deleted)
		}
	})
}
