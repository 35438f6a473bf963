package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var retention = snapshot.Retention{History: 2, MinAge: time.Hour}

// revision is the n-th snapshot of pricing, made the hours ago.
func revision(n int64, hours int) snapshot.Snapshot {
	made := noon.Add(-time.Duration(hours) * time.Hour)
	return snapshot.Snapshot{
		Object:     object(workload.ConfigMap, fmt.Sprintf("pricing-%d", n)),
		Provenance: snapshot.Provenance{Source: object(workload.ConfigMap, "pricing"), Revision: n, Time: made},
		Created:    made, UID: fmt.Sprint("uid-", n), ResourceVersion: fmt.Sprint(n),
	}
}

func condemned(s snapshot.Snapshot, ago time.Duration) snapshot.Snapshot {
	s.Condemned = noon.Add(-ago)
	return s
}

// words are the verdicts in short: the name's end, action and reason of each.
func words(verdicts []snapshot.Verdict) []string {
	var out []string
	for _, v := range verdicts {
		out = append(out, strings.TrimPrefix(v.Object.Name, "pricing-")+" "+string(v.Action)+" "+string(v.Reason))
	}
	return out
}

func TestPlan(t *testing.T) {
	web := snapshot.User{Role: snapshot.ByRevision, Name: "replicaset/web-1"}
	source := object(workload.ConfigMap, "pricing")
	three := []snapshot.Snapshot{revision(1, 9), revision(2, 8), revision(3, 7)}
	for name, tc := range map[string]struct {
		snapshots []snapshot.Snapshot
		used      []string
		gone      bool
		want      []string
	}{
		"nothing there": {},
		"no more than the history": {
			snapshots: three[1:], want: []string{"3 keep recent", "2 keep recent"},
		},
		"one beyond the history is condemned": {
			snapshots: three, want: []string{"3 keep recent", "2 keep recent", "1 condemn superseded"},
		},
		"a use keeps it": {
			snapshots: three, used: []string{"pricing-1"}, want: []string{"3 keep recent", "2 keep recent", "1 keep used"},
		},
		"a use of its source by name keeps none of them": {
			snapshots: three, used: []string{"pricing"}, want: []string{"3 keep recent", "2 keep recent", "1 condemn superseded"},
		},
		"what is used counts in the history": {
			snapshots: three, used: []string{"pricing-3"}, want: []string{"3 keep used", "2 keep recent", "1 condemn superseded"},
		},
		"one that is young is not condemned yet": {
			snapshots: []snapshot.Snapshot{revision(1, 0), revision(2, 0), revision(3, 0)},
			want:      []string{"3 keep recent", "2 keep recent", "1 keep young"},
		},
		"condemned a while ago": {
			snapshots: []snapshot.Snapshot{condemned(three[0], 59*time.Minute), three[1], three[2]},
			want:      []string{"3 keep recent", "2 keep recent", "1 keep waiting"},
		},
		"condemned the minimum age ago": {
			snapshots: []snapshot.Snapshot{condemned(three[0], time.Hour), three[1], three[2]},
			want:      []string{"3 keep recent", "2 keep recent", "1 delete superseded"},
		},
		"condemned in the future, by another clock": {
			snapshots: []snapshot.Snapshot{condemned(three[0], -time.Hour), three[1], three[2]},
			want:      []string{"3 keep recent", "2 keep recent", "1 keep waiting"},
		},
		"condemned and used again": {
			snapshots: []snapshot.Snapshot{condemned(three[0], 2*time.Hour), three[1], three[2]}, used: []string{"pricing-1"},
			want: []string{"3 keep recent", "2 keep recent", "1 pardon used"},
		},
		"condemned and within the history again": {
			snapshots: []snapshot.Snapshot{condemned(three[0], 2*time.Hour), three[1]},
			want:      []string{"2 keep recent", "1 pardon recent"},
		},
		"the source is gone with all users": {
			snapshots: three, gone: true,
			want: []string{"3 condemn orphaned", "2 condemn orphaned", "1 condemn orphaned"},
		},
		"the source is gone with all users for long": {
			snapshots: []snapshot.Snapshot{condemned(three[0], time.Hour), condemned(three[1], time.Minute)}, gone: true,
			want: []string{"2 keep waiting", "1 delete orphaned"},
		},
		"the source is gone and young snapshots are left": {
			snapshots: []snapshot.Snapshot{revision(1, 0)}, gone: true, want: []string{"1 keep young"},
		},
		"the source is gone and a user of one snapshot is left": {
			snapshots: three, gone: true, used: []string{"pricing-1"}, want: []string{"3 keep recent", "2 keep recent", "1 keep used"},
		},
		"the source is gone and a template still names it": {
			snapshots: three, gone: true, used: []string{"pricing"}, want: []string{"3 keep recent", "2 keep recent", "1 condemn superseded"},
		},
		"without numbers the time of the copy decides": {
			snapshots: []snapshot.Snapshot{unnumbered(revision(1, 5)), unnumbered(revision(2, 9)), unnumbered(revision(3, 7))},
			want:      []string{"1 keep recent", "3 keep recent", "2 condemn superseded"},
		},
		"with equal times the name decides": {
			snapshots: []snapshot.Snapshot{unnumbered(revision(3, 5)), unnumbered(revision(2, 5)), unnumbered(revision(1, 5))},
			want:      []string{"1 keep recent", "2 keep recent", "3 condemn superseded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stock := snapshot.Stock{Now: noon, Snapshots: tc.snapshots, Uses: snapshot.Uses{}, Gone: map[workload.Object]bool{source: tc.gone}}
			for _, u := range tc.used {
				stock.Uses.Add(object(workload.ConfigMap, u), web)
			}
			if diff := cmp.Diff(tc.want, words(retention.Plan(stock))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func unnumbered(s snapshot.Snapshot) snapshot.Snapshot {
	s.Revision = 0
	return s
}

func TestPlanSaysWhy(t *testing.T) {
	stock := snapshot.Stock{Now: noon, Uses: snapshot.Uses{}, Snapshots: []snapshot.Snapshot{
		revision(6, 1), revision(5, 2), revision(4, 0), condemned(revision(3, 4), time.Minute), revision(2, 5), revision(1, 6),
	}}
	stock.Uses.Add(revision(1, 0).Object, snapshot.User{Role: snapshot.ByRevision, Name: "replicaset/web-1"})
	stock.Uses.Add(revision(1, 0).Object, snapshot.User{Role: snapshot.ByTemplate, Name: "deployment/web"})
	stock.Uses.Add(revision(1, 0).Object, snapshot.User{Role: snapshot.ByPod, Name: "pod/web-1"})
	var got []string
	for _, v := range retention.Plan(stock) {
		got = append(got, v.Detail)
	}
	want := []string{
		"among the last 2 of configmap/pricing",
		"among the last 2 of configmap/pricing",
		"not needed, and younger than 1h0m0s",
		"condemned; deleted after 2026-06-01T12:59:00Z unless something needs it again",
		"nothing uses it, and 2 newer of configmap/pricing are kept",
		"used by the template of deployment/web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stock.Gone, stock.Uses = map[workload.Object]bool{object(workload.ConfigMap, "pricing"): true}, nil
	if v := retention.Plan(stock)[0]; v.Detail != "configmap/pricing is gone, with all that used it" {
		t.Errorf("orphaned: %q", v.Detail)
	}
}

func TestUsersOfEachRoleAreWorded(t *testing.T) {
	for role, want := range map[snapshot.Role]string{
		snapshot.ByTemplate: "the template of a/b", snapshot.ByPod: "a/b", snapshot.ByJob: "a/b", snapshot.ByOther: "a/b",
		snapshot.ByRevision: "a/b, to which a rollback may go back",
	} {
		if got := (snapshot.User{Role: role, Name: "a/b"}).String(); got != want {
			t.Errorf("%d: %q, want %q", role, got, want)
		}
	}
}

func TestRetentionIsValidated(t *testing.T) {
	for want, r := range map[string]snapshot.Retention{
		"":                       {History: 1, MinAge: time.Second},
		"a history of 0":         {History: 0, MinAge: time.Hour},
		"a history of -1":        {History: -1, MinAge: time.Hour},
		"a minimum age of 999ms": {History: 1, MinAge: 999 * time.Millisecond},
		"a minimum age of 0s":    {History: 1},
	} {
		if err := r.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	if err := snapshot.Defaults().Validate(); err != nil {
		t.Error(err)
	}
}

func TestAMarkNeverSeemsOlderThanItIs(t *testing.T) {
	for _, past := range []time.Duration{0, 1, 499 * time.Millisecond, time.Second - 1} {
		now := noon.Add(past) // by a clock that may be up to a second behind
		mark := snapshot.Mark(now)
		if mark.Before(now.Add(time.Second)) || mark.After(now.Add(2*time.Second)) || mark.Nanosecond() != 0 {
			t.Errorf("at %v: mark %v", now, mark)
		}
	}
}

// world is a small cluster whose uses change at random while clean-up runs. It is the model of the tests below.
type world struct {
	rand    *rand.Rand
	now     time.Time
	there   map[string]snapshot.Snapshot
	used    map[string]bool
	gone    map[string]bool
	created int64
}

func newWorld(seed uint64) *world {
	return &world{
		rand: rand.New(rand.NewPCG(seed, 7)), now: noon, there: map[string]snapshot.Snapshot{}, used: map[string]bool{}, gone: map[string]bool{},
	}
}

var sources = []string{"pricing", "rules", "flags"}

// change makes, uses or stops using something. A stamp is written as Tidemark does: the mark is taken away before.
func (w *world) change() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(40)) * time.Minute)
	switch w.rand.IntN(5) {
	case 0, 1:
		w.created++
		s := revision(w.created, 0)
		s.Source.Name = sources[w.rand.IntN(len(sources))]
		s.Created, s.Time = w.now, w.now
		w.there[s.Object.Name] = s
	case 2:
		if name := w.any(); name != "" {
			s := w.there[name]
			s.Condemned = time.Time{}
			w.there[name], w.used[name] = s, true
		}
	case 3:
		if name := w.any(); name != "" {
			delete(w.used, name)
		}
	case 4:
		source := sources[w.rand.IntN(len(sources))]
		w.gone[source] = !w.gone[source]
	}
}

func (w *world) any() string {
	names := w.names()
	if len(names) == 0 {
		return ""
	}
	return names[w.rand.IntN(len(names))]
}

func (w *world) names() []string {
	names := []string{}
	for name := range w.there {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) stock() snapshot.Stock {
	s := snapshot.Stock{Now: w.now, Uses: snapshot.Uses{}, Gone: map[workload.Object]bool{}}
	for _, name := range w.names() {
		s.Snapshots = append(s.Snapshots, w.there[name])
		if w.used[name] {
			s.Uses.Add(w.there[name].Object, snapshot.User{Role: snapshot.ByPod, Name: "pod/" + name})
		}
	}
	for _, source := range sources {
		s.Gone[object(workload.ConfigMap, source)] = w.gone[source]
	}
	w.rand.Shuffle(len(s.Snapshots), func(i, j int) { s.Snapshots[i], s.Snapshots[j] = s.Snapshots[j], s.Snapshots[i] })
	return s
}

// clean does what the verdicts ask for.
func (w *world) clean(verdicts []snapshot.Verdict) {
	for _, v := range verdicts {
		s := v.Snapshot
		switch v.Action {
		case snapshot.Keep:
		case snapshot.Condemn:
			s.Condemned = snapshot.Mark(w.now)
			w.there[s.Object.Name] = s
		case snapshot.Pardon:
			s.Condemned = time.Time{}
			w.there[s.Object.Name] = s
		case snapshot.Delete:
			delete(w.there, s.Object.Name)
		}
	}
}

func TestPlanNeverDeletesWhatIsUsedOrNotCondemnedForLong(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed)
		for range 80 {
			w.change()
			stock := w.stock()
			verdicts := retention.Plan(stock)
			if len(verdicts) != len(stock.Snapshots) {
				t.Fatalf("seed %d: %d verdicts on %d snapshots", seed, len(verdicts), len(stock.Snapshots))
			}
			for _, v := range verdicts {
				if problem := w.wrong(v); problem != "" {
					t.Fatalf("seed %d: %s: %s %s: %s", seed, v.Object, v.Action, v.Reason, problem)
				}
			}
			w.clean(verdicts)
		}
	}
}

// wrong says what is wrong with a verdict, told from the world and not from the plan.
func (w *world) wrong(v snapshot.Verdict) string {
	s := w.there[v.Object.Name]
	newer := 0
	for _, other := range w.there {
		if other.Source == s.Source && other.Revision > s.Revision {
			newer++
		}
	}
	gone := w.gone[s.Source.Name]
	for name := range w.used {
		gone = gone && w.there[name].Source != s.Source
	}
	needed := w.used[v.Object.Name] || newer < retention.History && !gone
	switch {
	case v.Detail == "" || v.Reason == "":
		return "no reason"
	case needed && v.Action != snapshot.Keep && v.Action != snapshot.Pardon:
		return "it is needed"
	case needed && !s.Condemned.IsZero() && v.Action != snapshot.Pardon:
		return "it is needed, and keeps its mark"
	case !needed && v.Action == snapshot.Pardon:
		return "nothing needs it"
	case v.Action == snapshot.Condemn && w.now.Sub(s.Created) < retention.MinAge:
		return "it is young"
	case v.Action == snapshot.Delete && (s.Condemned.IsZero() || w.now.Sub(s.Condemned) < retention.MinAge):
		return "it has not been condemned for long"
	}
	return ""
}

func TestNothingThatNothingNeedsSurvivesTwoRounds(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed)
		for range 60 {
			w.change()
		}
		for range 2 {
			w.now = w.now.Add(retention.MinAge + 2*time.Second)
			w.clean(retention.Plan(w.stock()))
		}
		for _, v := range retention.Plan(w.stock()) {
			if v.Reason != snapshot.Used && v.Reason != snapshot.Recent || v.Action != snapshot.Keep {
				t.Errorf("seed %d: after two rounds %s: %s %s", seed, v.Object, v.Action, v.Reason)
			}
		}
	}
}

func TestPlanDoesNotDependOnTheOrderOfTheListing(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(seed)
		for range 60 {
			w.change()
			w.clean(retention.Plan(w.stock()))
		}
		if diff := cmp.Diff(retention.Plan(w.stock()), retention.Plan(w.stock())); diff != "" { // each stock is shuffled anew
			t.Errorf("seed %d:\n%s", seed, diff)
		}
	}
}

func TestTheNearestUserIsNamedInWhateverOrderTheyWereFound(t *testing.T) {
	users := []snapshot.User{
		{Role: snapshot.ByPod, Name: "pod/b"}, {Role: snapshot.ByPod, Name: "pod/a"}, {Role: snapshot.ByRevision, Name: "replicaset/a"},
	}
	o := object(workload.ConfigMap, "pricing-1")
	for range 20 {
		rand.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		uses := snapshot.Uses{}
		for _, u := range users {
			uses.Add(o, u)
		}
		if uses[o].Name != "pod/a" {
			t.Fatalf("%v: named %v", users, uses[o])
		}
	}
}

// BenchmarkPlan judges 10,000 snapshots of 500 sources, of which 2,000 ReplicaSets use one of each of ten.
func BenchmarkPlan(b *testing.B) {
	stock := snapshot.Stock{Now: noon}
	for i := range 10_000 {
		s := revision(int64(i/500), 9)
		s.Source.Name = fmt.Sprintf("source-%d", i%500)
		s.Object.Name = fmt.Sprintf("%s-%d", s.Source.Name, s.Revision)
		stock.Snapshots = append(stock.Snapshots, s)
	}
	b.ReportAllocs()
	for b.Loop() {
		stock.Uses = snapshot.Uses{}
		for i := range 2000 {
			for j := range 10 {
				stock.Uses.Add(stock.Snapshots[(i*10+j*997)%10_000].Object, snapshot.User{Role: snapshot.ByRevision, Name: fmt.Sprintf("replicaset/web-%d", i)})
			}
		}
		retention.Plan(stock)
	}
}
