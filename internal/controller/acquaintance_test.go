package controller

import (
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
)

func TestAcquaintanceTellsWhatTheWatchShowedBeforeAnybodyConsumedTheObject(t *testing.T) {
	watched, now := noon, noon.Add(time.Hour)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	listed := func(d *cluster.Digested, version string) *cluster.Digested {
		d.Listed, d.ResourceVersion = true, version
		return d
	}
	prices := configMap("prices", "1", nil).Object
	for name, tc := range map[string]struct {
		events func(x *index)
		want   acquaintance
	}{
		"an object that the first list brought has been so since": {
			events: func(x *index) { x.putObject(listed(configMap("prices", "1", nil), "1"), at(0)) },
			want:   acquaintance{since: at(0)},
		},
		"an object that came into being was absent before": {
			events: func(x *index) { x.putObject(configMap("prices", "1", nil), at(30)) },
			want:   acquaintance{since: at(30), born: true, absent: at(29)},
		},
		"an edit of its metadata does not change that": {
			events: func(x *index) {
				x.putObject(configMap("prices", "1", nil), at(30))
				x.putObject(configMap("prices", "1", map[string]string{"a": "b"}), at(40))
			},
			want: acquaintance{since: at(30), born: true, absent: at(29)},
		},
		"an object that was edited has been so since the edit": {
			events: func(x *index) {
				x.putObject(configMap("prices", "0", nil), at(30))
				x.putObject(configMap("prices", "1", nil), at(40))
			},
			want: acquaintance{since: at(40)},
		},
		"a list after a break of the watch that shows another state says nothing of before": {
			events: func(x *index) {
				x.putObject(configMap("prices", "1", nil), at(30))
				x.putObject(listed(configMap("prices", "1", nil), "2"), at(50))
			},
			want: acquaintance{since: at(50)},
		},
		"an object that was deleted and made again was absent only in between": {
			events: func(x *index) {
				x.putObject(configMap("prices", "0", nil), at(20))
				x.dropObject(prices, at(30).Add(-time.Second))
				x.putObject(configMap("prices", "1", nil), at(30))
			},
			want: acquaintance{since: at(30), born: true, absent: at(30).Add(-time.Second)},
		},
		"an object that is absent has been so for a while": {
			events: func(*index) {},
			want:   acquaintance{since: at(59)},
		},
		"an object that is absent has been so since it was deleted": {
			events: func(x *index) {
				x.putObject(configMap("prices", "0", nil), at(20))
				x.dropObject(prices, now.Add(-time.Second))
			},
			want: acquaintance{since: now.Add(-time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex()
			tc.events(x)
			got := x.acquaintance(prices, watched, now)
			got.digested = nil
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAnObjectThatIsMadeAgainIsTakenIn(t *testing.T) {
	x := newIndex()
	x.putWorkload(deployment, reads("pricing", 1, "prices"))
	d := configMap("prices", "1", nil)
	x.putObject(d, noon)
	x.dropObject(d.Object, noon)
	if got := namesOf(x.putObject(d, noon)); len(got) != 1 {
		t.Errorf("it matters to %v, want the one that consumes it", got)
	}
}
