package controller

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/release"
)

// deployOf is release web after a guarded deploy, as a look sees it an hour after noon.
func deployOf(status release.Status, change func(*deploy)) deploy {
	d := deploy{Release: helm.Release{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, Input: release.Input{
		Now:       noon.Add(time.Hour),
		Revisions: []release.Revision{{Number: 1, Status: release.Deployed, Created: noon}, {Number: 2, Status: status, Created: noon, Deploy: "d1"}},
		Lease: &release.Lease{
			Deploy: "d1", Revision: 2, Starter: "ann", Job: "https://ci.example/1", Began: noon, Timeout: 10 * time.Minute, Duration: 3 * time.Minute,
			Unchanged: time.Hour,
		},
	}}}
	change(&d)
	d.verdict = release.Judge(d.Input)
	d.plan = release.Decide(d.verdict, release.Request{Now: d.Now, Actor: release.ByController, Policy: release.PolicyReport, ReportAfter: 30 * time.Minute})
	return d
}

func TestTheStarterIsToldWhatBecameOfADeploy(t *testing.T) {
	ended := func(status int) func(*deploy) {
		return func(d *deploy) { d.Lease.Finished = &release.Outcome{Time: noon, ExitStatus: status} }
	}
	cancelled := func(d *deploy) { // as Helm leaves it: it heeds the signal and exits with 1
		ended(1)(d)
		d.Lease.Signal, d.Lease.Signalled = "SIGTERM", noon
	}
	left := func(d *deploy) { // no label says that the revision is its own; a minute after it began the record was written
		d.Revisions[1].Deploy, d.Revisions[1].Written, d.Lease.Written = "", noon.Add(time.Minute), noon.Add(2*time.Minute)
	}
	for name, tc := range map[string]struct {
		status   release.Status
		change   func(*deploy)
		alert    string
		severity notify.Severity
		key      string
		title    string
		once     bool
	}{
		"its guard fell silent": {
			release.PendingUpgrade, func(*deploy) {}, "TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "its guard fell silent", false},
		"its job pod is gone": {
			release.PendingUpgrade, func(d *deploy) { d.Life = release.Dead }, "TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "its job's pod is gone", false},
		"its command was killed": {
			release.PendingUpgrade, ended(137), "TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "signal 9 (killed) ended its command", false},
		"it was cancelled and settled": {
			release.Failed, ended(143), "TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1", "signal 15 (terminated) ended its command; revision 2 is failed", true},
		"it was cancelled, and helm heeded the signal": {
			release.Failed, cancelled, "TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1",
			"its guard got SIGTERM at 2026-06-01T12:00:00Z, and its command ended with exit status 1; revision 2 is failed", true},
		"it was cancelled and rolled back": {
			release.Failed, func(d *deploy) {
				cancelled(d)
				d.Revisions = append(d.Revisions, release.Revision{Number: 3, Status: release.Deployed})
			},
			"TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1", "revision 3 has replaced its revision 2, and is deployed", true},
		"its guard stopped it at its timeout": {
			release.Failed, func(d *deploy) {
				d.Lease.Finished = &release.Outcome{Time: noon, ExitStatus: 1, Stopped: release.StoppedAtTimeout}
			},
			"TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1", "its guard stopped it at its timeout", true},
		"its guard stopped it in silence": {
			release.Failed, func(d *deploy) {
				d.Lease.Finished = &release.Outcome{Time: noon, ExitStatus: 1, Stopped: release.StoppedInSilence}
			},
			"TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1", "its guard could not renew its lease", true},
		"its rollback was cancelled, which helm leaves pending and cannot label": {
			release.PendingRollback, func(d *deploy) {
				cancelled(d)
				left(d)
			},
			"TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "probably left revision 2 pending-rollback: its guard got SIGTERM", false},
		"its uninstall was cancelled": {
			release.Uninstalling, func(d *deploy) {
				cancelled(d)
				left(d)
			},
			"TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "probably left revision 2 uninstalling", false},
		"its rollback was killed with its guard": {
			release.PendingRollback, left, "TidemarkReleaseAbandoned", notify.Page, "release/shop/web/abandoned/d1", "its guard fell silent", false},
		"it failed, and somebody without a guard began later": {
			release.PendingUpgrade, func(d *deploy) {
				cancelled(d)
				left(d)
				d.Now, d.Revisions[1].Created, d.Revisions[1].Written = noon.Add(20*time.Minute), noon.Add(10*time.Minute), noon.Add(10*time.Minute)
			},
			"", "", "", "", false},
		"it was cancelled days ago":               {release.Failed, func(d *deploy) { cancelled(d); d.Now = noon.Add(25 * time.Hour) }, "", "", "", "", false},
		"it succeeded in spite of a signal":       {release.Deployed, func(d *deploy) { cancelled(d); d.Lease.Finished.ExitStatus = 0 }, "", "", "", "", false},
		"it failed by itself, which its job says": {release.Failed, ended(1), "", "", "", "", false},
		"it succeeded":                            {release.Deployed, ended(0), "", "", "", "", false},
		"it is at work":                           {release.PendingUpgrade, func(d *deploy) { d.Lease.Unchanged, d.Lease.Timeout = 0, 0; d.Now = noon }, "", "", "", "", false},
		"it is overdue": {
			release.PendingUpgrade, func(d *deploy) { d.Lease.Unchanged = 0 }, "TidemarkReleasePending", notify.Note, "release/shop/web/pending/2", "state overdue", false},
		"a newer revision replaced it": {
			release.PendingUpgrade, func(d *deploy) {
				d.Revisions = append(d.Revisions, release.Revision{Number: 3, Status: release.Deployed})
			},
			"TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1", "revision 3 has replaced", true},
		"it was killed after helm had settled it": {
			release.Deployed, func(*deploy) {}, "TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1",
			"ended without a word: its guard fell silent; revision 2 is deployed", true},
		"it was killed before helm wrote anything": {
			release.Failed, func(d *deploy) { d.Revisions = d.Revisions[:1] }, "TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1",
			"ended without a word: its guard fell silent; revision 1 is deployed", true},
		"a first install was killed before helm wrote anything": {
			release.Failed, func(d *deploy) { d.Revisions = nil }, "TidemarkDeployCancelled", notify.Note, "release/shop/web/ended/d1",
			"no record of the release is in the cluster", true},
		"it was killed days ago, and nobody took its lease": {
			release.Deployed, func(d *deploy) { d.Lease.Written, d.Now = noon, noon.Add(25*time.Hour) }, "", "", "", "", false},
		"a first install has written nothing yet": {
			release.Failed, func(d *deploy) { d.Revisions, d.Lease.Unchanged, d.Now = nil, 0, noon }, "", "", "", "", false},
		"many fell silent together": {release.PendingUpgrade, func(d *deploy) { d.together = 4 }, "", "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			m, once := deployOf(tc.status, tc.change).message()
			if m.Key != tc.key || once != tc.once || m.Key != "" && (m.Alert != tc.alert || m.Severity != tc.severity || !strings.Contains(m.Title, tc.title)) {
				t.Fatalf("told (once: %t) %+v", once, m)
			}
			if m.Key == "" {
				return
			}
			if probably := strings.Contains(m.Title, "probably"); probably != strings.Contains(strings.Join(factsOf(m), "\n"), "remedy: find out that nothing of its job runs any more") {
				t.Errorf("nothing proves that it is over, and the remedy is not to look first: %+v", m)
			}
			if m.Person != "ann" || !strings.Contains(strings.Join(factsOf(m), "\n"), "job: https://ci.example/1") {
				t.Errorf("told %+v", m)
			}
			if _, err := os.Stat("../../docs/runbooks/" + m.Alert + ".md"); err != nil || !strings.HasSuffix(m.Runbook, m.Alert+".md") {
				t.Errorf("runbook %s: %v", m.Runbook, err)
			}
		})
	}
}

// Ann's deploy is over, and bob leaves his pending with plain helm: the message is not hers.
func TestNobodyIsToldOfWhatSomebodyElseBeganLater(t *testing.T) {
	for name, status := range map[string]int{"hers succeeded": 0, "hers had failed": 1} {
		d := deployOf(release.PendingUpgrade, func(d *deploy) {
			d.Lease.Finished, d.Lease.Written = &release.Outcome{Time: noon, ExitStatus: status}, noon
			d.Revisions[1].Number, d.Revisions[1].Deploy, d.Revisions[1].Created = 3, "", noon.Add(10*time.Minute)
		})
		m, once := d.message()
		if m.Key != "release/shop/web/pending/3" || once || m.Person != "" || strings.Contains(strings.Join(factsOf(m), "\n"), "ci.example") {
			t.Errorf("%s: told (once: %t) %+v", name, once, m)
		}
	}
}

// Bob's guard takes the lease of ann's deploy before anybody looked: she is told when his is done, and not before.
func TestAStarterWhoseLeaseAnotherTookIsToldOfTheEnd(t *testing.T) {
	bobs := func(status release.Status, change func(*deploy)) deploy {
		return deployOf(status, func(d *deploy) {
			d.Lease.Starter = "bob"
			d.Formers = []helm.Former{
				{Lease: release.Lease{Deploy: "d0", Revision: 1, Starter: "ann", Job: "https://ci.example/0"}, Taken: noon},
				{Lease: release.Lease{Deploy: "dx", Revision: 1, Starter: "eve", Signal: "SIGTERM", Finished: &release.Outcome{ExitStatus: 1}}, Taken: noon},
			}
			change(d)
		})
	}
	atWork := func(d *deploy) { d.Now, d.Lease.Unchanged = noon, 0 }
	done := func(d *deploy) { d.Lease.Finished = &release.Outcome{Time: noon} }
	for name, d := range map[string]deploy{
		"while his waits for pods":   bobs(release.PendingUpgrade, atWork),
		"while his has written all":  bobs(release.Deployed, atWork),
		"while his is left pending":  bobs(release.PendingUpgrade, func(*deploy) {}),
		"while his guard is watched": bobs(release.Deployed, func(d *deploy) { d.LeaseProblem = "torn" }),
	} {
		if told := d.overdue(); len(told) > 0 {
			t.Errorf("%s she is told %+v", name, told)
		}
	}
	d := bobs(release.Deployed, done)
	told := d.overdue()
	if len(told) != 2 {
		t.Fatalf("told %+v", told)
	}
	for i, want := range []struct{ key, person, title string }{
		{"release/shop/web/ended/d0", "ann", "ended without a word: its guard fell silent; revision 2 has replaced its revision 1, and is deployed"},
		{"release/shop/web/ended/dx", "eve", "was cancelled: its guard got SIGTERM, and its command ended with exit status 1; revision 2 has replaced"},
	} {
		if m := told[i]; m.Key != want.key || m.Person != want.person || !strings.Contains(m.Title, want.title) || m.Severity != notify.Note {
			t.Errorf("told %+v, want %+v", m, want)
		}
	}
}

// Ann was paged. Bob's guard takes the lease, and may refuse: her page ends when his deploy does, not before.
func TestAPageWaitsForTheEndOfANewerDeploy(t *testing.T) {
	bobs := func(lives bool) deploy {
		return deployOf(release.PendingUpgrade, func(d *deploy) {
			d.Lease.Deploy, d.Lease.Timeout = "d2", 0
			if lives {
				d.Lease.Unchanged = 0
			}
		})
	}
	for key, want := range map[string]bool{
		"release/shop/web/abandoned/d1": true, "release/shop/web/abandoned/d2": false, "release/shop/web/pending/2": false, "release/shop/api/abandoned/d1": false, silentKey: false,
	} {
		if bobs(true).keeps(key) != want || bobs(false).keeps(key) {
			t.Errorf("%s is kept while his lives: %t, afterwards: %t", key, bobs(true).keeps(key), bobs(false).keeps(key))
		}
	}
}

func TestWhatEndedThePodIsToldOfItsOwnDeployAlone(t *testing.T) {
	d := deployOf(release.Failed, func(d *deploy) {
		d.PodEnd = "EvictionByEvictionAPI"
		d.Lease.Signal, d.Lease.Finished = "SIGTERM", &release.Outcome{Time: noon, ExitStatus: 1}
		d.Formers = []helm.Former{{Lease: release.Lease{Deploy: "d0", Revision: 1}, Taken: noon}}
	})
	own, _ := d.message()
	before := d.overdue()
	if len(before) != 1 {
		t.Fatalf("told %+v", before)
	}
	for m, want := range map[*notify.Message]bool{&own: true, &before[0]: false} {
		if told := strings.Contains(strings.Join(factsOf(*m), "\n"), "its pod was ended by: EvictionByEvictionAPI"); told != want {
			t.Errorf("told %+v", m)
		}
	}
}

func TestTwoIncidentsOfSilentGuardsAreToldApart(t *testing.T) {
	incident := func(first time.Time) []deploy {
		var all []deploy
		for i := range 4 {
			all = append(all, deployOf(release.PendingUpgrade, func(d *deploy) {
				d.together, d.Lease.Written = 4, first.Add(time.Duration(3-i)*time.Second)
			}))
		}
		return append(all, deployOf(release.PendingUpgrade, func(d *deploy) { d.together, d.Lease.Written = 1, noon.Add(-time.Hour) }))
	}
	for _, first := range []time.Time{noon, noon.Add(5 * time.Hour)} {
		if m := silentTogether(incident(first)); m.Key != silentKey || !m.Since.Equal(first) {
			t.Errorf("told %+v", m)
		}
	}
	if m := silentTogether(incident(noon)[4:]); m.Key != "" {
		t.Errorf("of one alone told %+v", m)
	}
}

func factsOf(m notify.Message) []string {
	var out []string
	for _, f := range m.Facts {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

func TestADeployThatWasCancelledLatelyIsLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		status, ended, signal string
		want                  bool
	}{
		"killed an hour ago":         {"143", "2026-07-01T11:00:00Z", "", true},
		"cancelled an hour ago":      {"1", "2026-07-01T11:00:00Z", "SIGTERM 2026-07-01T11:00:00Z", true},
		"failed an hour ago":         {"1", "2026-07-01T11:00:00Z", "", false},
		"succeeded after a signal":   {"0", "2026-07-01T11:00:00Z", "SIGHUP 2026-07-01T11:00:00Z", false},
		"cancelled last week":        {"143", "2026-06-20T11:00:00Z", "", false},
		"unreadable":                 {"143", "yesterday", "", false},
		"whose end was not said yet": {"", "", "", true},
	} {
		l := guardOf("web", "d1")
		if tc.signal != "" {
			l.Annotations[v1.AnnotationDeploySignal] = tc.signal
		}
		if tc.ended != "" {
			l.Annotations[v1.AnnotationDeployExitStatus], l.Annotations[v1.AnnotationDeployEnded] = tc.status, tc.ended
		}
		if got := telling(l, time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestALeaseIsLookedAtForWhomItToldOfBefore(t *testing.T) {
	l := guardOf("web", "d1")
	l.Annotations[v1.AnnotationDeployExitStatus], l.Annotations[v1.AnnotationDeployEnded] = "0", noon.Format(time.RFC3339)
	if telling(l, noon) {
		t.Error("one that tells nothing is looked at")
	}
	former := guardOf("web", "d0")
	l.Annotations[v1.AnnotationDeployBefore] = helm.EncodeFormers(former, noon)
	if !telling(l, noon.Add(23*time.Hour)) || telling(l, noon.Add(25*time.Hour)) {
		t.Error("it is not looked at for a day")
	}
}
