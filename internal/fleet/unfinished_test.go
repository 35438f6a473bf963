package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/stamp"
)

func TestUnfinishedAt(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	weight := 20
	canary := Partial{
		Cause: CanaryPause, Why: "it pauses", Step: 2, Steps: 3, Weight: &weight, Owner: "Helm release shop", After: time.Hour,
		Revisions: []RevisionPods{
			{Name: "web-new", Number: 3, Pods: 1, Since: ago(2 * time.Hour)},
			{Name: "web-old", Number: 2, Pods: 4, Since: ago(100 * time.Hour)},
			{Name: "web-older", Number: 1, Since: ago(200 * time.Hour)},
		},
	}
	with := func(change func(*Partial)) *Partial {
		p := canary
		p.Revisions = slices.Clone(canary.Revisions)
		change(&p)
		return &p
	}
	for name, tc := range map[string]struct {
		partial *Partial
		found   bool
		overdue bool
		newer   string
	}{
		"nothing is known of a rollout":                      {nil, false, false, ""},
		"a canary that was forgotten":                        {&canary, true, true, "web-new"},
		"within its time":                                    {with(func(p *Partial) { p.After = 3 * time.Hour }), true, false, "web-new"},
		"exactly at its time":                                {with(func(p *Partial) { p.After = 2 * time.Hour }), true, true, "web-new"},
		"switched off":                                       {with(func(p *Partial) { p.After = 0 }), true, false, "web-new"},
		"only one revision has pods":                         {with(func(p *Partial) { p.Revisions[0].Pods = 0 }), false, false, ""},
		"the newer of those that have pods counts":           {with(func(p *Partial) { p.Revisions[0].Pods, p.Revisions[2].Pods = 0, 1 }), true, true, "web-old"},
		"the number decides which is newer, not the time":    {with(func(p *Partial) { p.Revisions[0].Since = ago(300 * time.Hour) }), true, true, "web-new"},
		"since when it is the newer one is not known":        {with(func(p *Partial) { p.Revisions[0].Since = time.Time{} }), true, false, "web-new"},
		"it may be going on: that makes no difference":       {with(func(p *Partial) { p.Cause, p.Why = NotKnownCause, "" }), true, true, "web-new"},
		"no revision at all, as right after a workload came": {with(func(p *Partial) { p.Revisions = nil }), false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := tc.partial.UnfinishedAt(now)
			if (u != nil) != tc.found {
				t.Fatalf("found %+v, want %v", u, tc.found)
			}
			if u != nil && (u.Overdue != tc.overdue || u.Revision != tc.newer) {
				t.Errorf("revision %s, overdue %v; want %s, %v", u.Revision, u.Overdue, tc.newer, tc.overdue)
			}
		})
	}
	want := "revision 3 (web-new) has 1 of 5 pods, at step 2 of 3, weight 20: it pauses; it belongs to Helm release shop"
	if got := canary.UnfinishedAt(now).Text(); got != want {
		t.Errorf("it is worded %q, want %q", got, want)
	}
}

func TestAnUnfinishedRolloutIsAVerdict(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	partial := &Partial{After: time.Hour, Revisions: []RevisionPods{
		{Name: "new", Number: 2, Pods: 1, Since: now.Add(-2 * time.Hour)}, {Name: "old", Number: 1, Pods: 2},
	}}
	pods := []Pod{{Name: "a", Phase: "Running"}, {Name: "b", Phase: "Running"}}
	for name, tc := range map[string]struct {
		fleet Fleet
		want  Verdict
	}{
		"also where nothing is read":           {Fleet{Partial: partial, Pods: pods}, LeftUnfinished},
		"not before its time":                  {Fleet{Partial: &Partial{After: 3 * time.Hour, Revisions: partial.Revisions}, Pods: pods}, InStep},
		"not when nothing is known of rollout": {Fleet{Pods: pods}, InStep},
	} {
		t.Run(name, func(t *testing.T) {
			tc.fleet.Now, tc.fleet.Mode = now, stamp.Observe
			r := Judge(tc.fleet)
			if r.Verdict != tc.want || (r.Unfinished != nil) != (tc.fleet.Partial != nil) {
				t.Errorf("it is %s (%s), unfinished %+v; want %s", r.Verdict, r.Reason, r.Unfinished, tc.want)
			}
			if tc.want == LeftUnfinished && (!r.Since.Equal(now.Add(-2*time.Hour)) || !strings.Contains(r.Reason, "revision 2 (new) has 1 of 3 pods")) {
				t.Errorf("since %s: %s", r.Since, r.Reason)
			}
		})
	}
}

func TestPromote(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ready := Pod{Name: "new", Ready: true, Containers: []Container{{Name: "app"}}}
	restarted := func(ago time.Duration) Pod {
		return Pod{Name: "new", Ready: true, Containers: []Container{{Name: "app", Restarts: 1, PreviousEnded: now.Add(-ago)}}}
	}
	for name, tc := range map[string]struct {
		change func(*Canary)
		now    bool
		at     time.Time
		why    string
	}{
		"a healthy canary whose time has come":              {func(*Canary) {}, true, now, ""},
		"nothing is asked for":                              {func(c *Canary) { c.After = 0 }, false, time.Time{}, ""},
		"it waits for nothing":                              {func(c *Canary) { c.Causes = nil }, false, time.Time{}, ""},
		"before its time":                                   {func(c *Canary) { c.After = 5 * time.Hour }, false, now.Add(2 * time.Hour), ""},
		"never from an abort":                               {func(c *Canary) { c.Causes = []Cause{Aborted} }, false, time.Time{}, "Aborted"},
		"never from an analysis that did not decide":        {func(c *Canary) { c.Causes = []Cause{CanaryPause, Inconclusive} }, false, time.Time{}, "Inconclusive"},
		"never from a person's pause, be it beside another": {func(c *Canary) { c.Causes = []Cause{PausedByPerson, CanaryPause} }, false, time.Time{}, "Paused"},
		"never from a pause of a blue-green Rollout":        {func(c *Canary) { c.Causes = []Cause{BlueGreenPause} }, false, time.Time{}, "BlueGreenPause"},
		"a pause that ends by itself is left to it":         {func(c *Canary) { c.Timed = true }, false, time.Time{}, "by itself"},
		"the beginning of the pause is not known":           {func(c *Canary) { c.Since = time.Time{} }, false, time.Time{}, "not known"},
		"Tidemark is paused":                                {func(c *Canary) { c.Stopped = "by ann" }, false, time.Time{}, "paused by ann"},
		"a pod is not ready":                                {func(c *Canary) { c.Pods[0].Ready = false }, false, time.Time{}, "new is not ready"},
		"too few pods":                                      {func(c *Canary) { c.Wanted = 2 }, false, time.Time{}, "1 of 2 pods"},
		"no pods are wanted":                                {func(c *Canary) { c.Wanted, c.Pods = 0, nil }, false, time.Time{}, "no pods"},
		"one on its way out does not count":                 {func(c *Canary) { c.Pods[0].Terminating = true }, false, time.Time{}, "0 of 1 pods"},
		"a container ended of late":                         {func(c *Canary) { c.Pods = []Pod{restarted(time.Minute)} }, false, time.Time{}, "container app of new ended"},
		"a container ended long ago":                        {func(c *Canary) { c.Pods = []Pod{restarted(time.Hour)} }, true, now, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := Canary{After: 2 * time.Hour, Causes: []Cause{CanaryPause}, Since: now.Add(-3 * time.Hour), Wanted: 1, Pods: []Pod{ready}}
			tc.change(&c)
			p := Promote(c, now)
			if p.Now != tc.now || !p.At.Equal(tc.at) || (p.Why == "") != (tc.why == "") || !strings.Contains(p.Why, tc.why) {
				t.Errorf("%+v; want now %v, at %s, why %q", p, tc.now, tc.at, tc.why)
			}
		})
	}
}
