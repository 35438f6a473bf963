package release

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// pending is a release whose revision 5 is pending since 40 minutes; good adds a deployed revision 4. An install without it is
// the first one, and revision 1.
func pending(operation Operation, good bool) Input {
	status := Status("pending-" + string(operation))
	if operation == Uninstall {
		status = Uninstalling
	}
	in := Input{Now: now, Revisions: []Revision{
		{Record: "r5", Number: 5, Status: status, Created: ago(40 * time.Minute), Deploy: "d1"},
		{Record: "r3", Number: 3, Status: Superseded, Created: ago(90 * time.Minute)},
	}}
	if good {
		in.Revisions = append(in.Revisions, Revision{Record: "r4", Number: 4, Status: Deployed, Created: ago(80 * time.Minute)})
	}
	if operation == Install && !good {
		in.Revisions[0].Number = 1
		in.Revisions = in.Revisions[:1]
	}
	return in
}

// leases are the states of a lease; each fits a release of [pending].
var leases = map[string]func(number int64) *Lease{
	"none": func(int64) *Lease { return nil },
	"fresh": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Timeout = time.Hour })
	},
	"fresh past its timeout": func(n int64) *Lease { return lease(n, func(*Lease) {}) },
	"stale": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Timeout, l.Unchanged = time.Hour, l.Duration })
	},
	"stale without a timeout": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Timeout, l.Unchanged = 0, time.Hour })
	},
	"stale past its timeout": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Unchanged = l.Duration })
	},
	"finished": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Finished = &Outcome{Time: ago(time.Minute), ExitStatus: 137} })
	},
	"stale of another revision": func(n int64) *Lease {
		return lease(n-1, func(l *Lease) { l.Unchanged = time.Hour })
	},
	"fresh of another revision": func(n int64) *Lease { return lease(n+1, func(*Lease) {}) },
	"stale of this number by another deploy": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Deploy, l.Unchanged = "d2", time.Hour })
	},
	"without an id": func(n int64) *Lease {
		return lease(n, func(l *Lease) { l.Deploy, l.Unchanged = "", time.Hour })
	},
}

func lease(number int64, change func(*Lease)) *Lease {
	l := &Lease{
		Deploy: "d1", Revision: number, Holder: "g", Began: ago(41 * time.Minute), Timeout: 10 * time.Minute,
		Duration: 3 * time.Minute, Unchanged: time.Minute,
	}
	change(l)
	return l
}

func TestStateFollowsFromLeaseAndProofOfDeath(t *testing.T) {
	// For each lease: the state with no knowledge of the job pod, with a living one, with a dead one.
	want := map[string][3]State{
		"none":                                   {Unguarded, Unguarded, Unguarded},
		"fresh":                                  {Live, Live, Live},
		"fresh past its timeout":                 {Overdue, Overdue, Overdue},
		"stale":                                  {Unknown, Unknown, Abandoned},
		"stale without a timeout":                {Unknown, Unknown, Abandoned},
		"stale past its timeout":                 {Abandoned, Unknown, Abandoned},
		"finished":                               {Abandoned, Abandoned, Abandoned},
		"stale of another revision":              {Unguarded, Unguarded, Unguarded},
		"fresh of another revision":              {Unguarded, Unguarded, Unguarded},
		"stale of this number by another deploy": {Unguarded, Unguarded, Unguarded},
		"without an id":                          {Unguarded, Unguarded, Unguarded},
	}
	for _, operation := range []Operation{Install, Upgrade, Rollback, Uninstall} {
		for name, make := range leases {
			for i, life := range []Life{LifeUnknown, Alive, Dead} {
				for _, good := range []bool{true, false} {
					in := pending(operation, good)
					in.Lease, in.Life = make(in.Revisions[0].Number), life
					if got := Judge(in); got.State != want[name][i] || got.Operation != operation {
						t.Errorf("%s, lease %s, job pod %q: %s of %q (%s), want %s", operation, name, life, got.State, got.Operation, got.Reason, want[name][i])
					}
					in.HookActive = true
					if got := Judge(in); got.State != Live {
						t.Errorf("%s, lease %s, a hook is active: %s", operation, name, got.State)
					}
				}
			}
		}
	}
}

func TestActionFollowsFromStateAndPolicy(t *testing.T) {
	type column struct {
		actor  Actor
		policy Policy
	}
	// For an abandoned operation: what each actor does under each policy. [without a good revision, with one].
	want := map[Operation]map[column][2]Action{}
	for _, operation := range []Operation{Install, Upgrade, Rollback, Uninstall} {
		want[operation] = map[column][2]Action{}
		for _, actor := range []Actor{ByController, ByPreflight, ByPerson} {
			for _, policy := range Policies() {
				want[operation][column{actor, policy}] = [2]Action{DoReport, DoReport}
			}
		}
	}
	for _, operation := range []Operation{Install, Upgrade, Rollback} {
		want[operation][column{ByController, PolicyForward}] = [2]Action{DoForward, DoForward}
		for _, actor := range []Actor{ByPreflight, ByPerson} {
			want[operation][column{actor, PolicyForward}] = [2]Action{DoForward, DoForward}
			want[operation][column{actor, PolicyRollback}] = [2]Action{DoReport, DoRollback}
		}
	}
	for _, actor := range []Actor{ByPreflight, ByPerson} {
		want[Install][column{actor, PolicyUninstall}] = [2]Action{DoUninstall, DoReport}
	}
	for operation, row := range want {
		for c, actions := range row {
			for i, good := range []bool{false, true} {
				in := pending(operation, good)
				for name, make := range leases {
					in.Lease = make(in.Revisions[0].Number)
					v := Judge(in)
					got := Decide(v, Request{Now: now, Actor: c.actor, Policy: c.policy, ReportAfter: 30 * time.Minute})
					dead := v.State == Abandoned || v.State == Unguarded && c.actor == ByPerson && !v.Busy
					switch {
					case dead && got.Action != actions[i]:
						t.Errorf("%s, lease %s, good revision %v, %s under %s: %+v, want %s", operation, name, good, c.actor, c.policy, got, actions[i])
					case !dead && got.Action != DoReport:
						t.Errorf("%s, lease %s, %s under %s: %+v, want a report after 40 minutes", operation, name, c.actor, c.policy, got)
					case got.Action == DoRollback && got.To != 4, got.Action == DoForward && got.To != v.Newest.Number:
						t.Errorf("%s: acts on revision %d: %+v", operation, got.To, got)
					case got.Why == "":
						t.Errorf("%s, lease %s: no reason", operation, name)
					}
				}
			}
		}
	}
}

func TestUnguardedIsRecoveredByAPreflightOnlyFromTheGivenAge(t *testing.T) {
	v := Judge(pending(Upgrade, true))
	for _, tc := range []struct {
		name  string
		actor Actor
		after time.Duration
		busy  bool
		want  Action
	}{
		{"not asked for", ByPreflight, 0, false, DoReport},
		{"too young", ByPreflight, time.Hour, false, DoReport},
		{"old enough", ByPreflight, 30 * time.Minute, false, DoRollback},
		{"old enough, and another guard is at work", ByPreflight, 30 * time.Minute, true, DoReport},
		{"by the controller", ByController, time.Minute, false, DoReport},
		{"by a person while a guard is at work", ByPerson, 0, true, DoReport},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := v
			v.Busy = tc.busy
			got := Decide(v, Request{Now: now, Actor: tc.actor, Policy: PolicyRollback, UnguardedAfter: tc.after, ReportAfter: time.Minute})
			if got.Action != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// A rollback cannot be labelled. Where number and time say whose it was, its starter is told; nobody acts on that but a person.
func TestAnUnguardedOperationThatADeployProbablyLeftIsReportedAtOnce(t *testing.T) {
	finished := func(status int) func(*Lease) {
		return func(l *Lease) { l.Finished = &Outcome{Time: ago(time.Minute), ExitStatus: status} }
	}
	for _, tc := range []struct {
		name    string
		change  func(*Lease)
		written time.Duration // ago; the lease began two minutes ago, and was last written one ago
		number  int64         // of the lease
		want    bool
	}{
		{"its command ended while it was pending", finished(1), 90 * time.Second, 5, true},
		{"a signal ended it", finished(143), 90 * time.Second, 5, true},
		{"it rolls back by itself what it wrote before", finished(137), 90 * time.Second, 4, true},
		{"its guard is silent and its timeout past", func(l *Lease) { l.Unchanged, l.Timeout = l.Duration, time.Second }, 30 * time.Second, 5, true},
		{"its guard is silent, and that is all", func(l *Lease) { l.Unchanged, l.Timeout = l.Duration, time.Hour }, 90 * time.Second, 5, false},
		{"its guard lives", func(*Lease) {}, 90 * time.Second, 5, false},
		{"its command succeeded", finished(0), 90 * time.Second, 5, false},
		{"the record was written after its command ended", finished(1), 30 * time.Second, 5, false},
		{"the record was written before its command began", finished(1), 3 * time.Minute, 5, false},
		{"it was to write an older revision", finished(1), 90 * time.Second, 3, false},
		{"it was to write a newer one", finished(1), 90 * time.Second, 6, false},
		{"what it was to write is not known", finished(1), 90 * time.Second, 0, false},
	} {
		for _, operation := range []Operation{Rollback, Uninstall} {
			in := pending(operation, true)
			in.Revisions[0].Created, in.Revisions[0].Written, in.Revisions[0].Deploy = ago(tc.written), ago(tc.written), "d0"
			in.Lease = lease(tc.number, func(l *Lease) { l.Began, l.Written = ago(2*time.Minute), ago(time.Minute) })
			tc.change(in.Lease)
			v := Judge(in)
			if v.State != Unguarded || v.Left != tc.want {
				t.Errorf("%s: %s, left: %t: %s", tc.name, v.State, v.Left, v.Reason)
			}
			for _, actor := range []Actor{ByController, ByPreflight} {
				p := Decide(v, Request{Now: now, Actor: actor, Policy: PolicyForward, ReportAfter: 30 * time.Minute})
				if p.Action.Writes() || p.Action == DoReport != tc.want {
					t.Errorf("%s: the %s does %s", tc.name, actor, p.Action)
				}
			}
			in.HookActive = true
			if v := Judge(in); v.Left {
				t.Errorf("%s: it is left while its hook runs", tc.name)
			}
		}
	}
}

func TestStateOfASettledRelease(t *testing.T) {
	revision := func(n int64, s Status) Revision { return Revision{Number: n, Status: s, Created: ago(time.Hour)} }
	for _, tc := range []struct {
		name string
		in   Input
		want State
	}{
		{"a deployed revision", Input{Revisions: []Revision{revision(2, Deployed), revision(1, Superseded)}}, Healthy},
		{"a failed revision above a deployed one", Input{Revisions: []Revision{revision(2, Failed), revision(1, Deployed)}}, Healthy},
		{"a pending revision below a deployed one", Input{Revisions: []Revision{revision(2, PendingUpgrade), revision(3, Deployed)}}, Residue},
		{"a deploy that has not written yet", Input{Revisions: []Revision{revision(4, Deployed)}, Lease: lease(5, func(l *Lease) { l.Timeout = time.Hour })}, Live},
		{"a deploy that is past its timeout", Input{Revisions: []Revision{revision(5, Deployed)}, Lease: lease(5, func(*Lease) {})}, Overdue},
		{"a deploy that was replaced", Input{Revisions: []Revision{revision(6, Deployed)}, Lease: lease(5, func(l *Lease) { l.Unchanged = time.Hour })}, Outrun},
		{"a deploy that was killed after all was settled", Input{Revisions: []Revision{revision(5, Deployed)}, Lease: lease(5, func(l *Lease) { l.Unchanged = l.Duration })}, Silent},
		{"a deploy that was killed before it wrote", Input{Revisions: []Revision{revision(4, Deployed)}, Lease: lease(5, func(l *Lease) { l.Unchanged = time.Hour })}, Silent},
		{"a script that was killed", Input{Revisions: []Revision{revision(4, Deployed)}, Lease: lease(0, func(l *Lease) { l.Unchanged = time.Hour })}, Silent},
		{"a killed deploy above residue", Input{Revisions: []Revision{revision(5, Deployed), revision(3, PendingUpgrade)}, Lease: lease(5, func(l *Lease) { l.Unchanged = time.Hour })}, Silent},
		{"a first install that has not written yet", Input{Lease: lease(1, func(l *Lease) { l.Timeout = time.Hour })}, Live},
		{"a first install that was killed before it wrote", Input{Lease: lease(1, func(l *Lease) { l.Unchanged = time.Hour })}, Silent},
		{"a first install that ended and wrote nothing", Input{Lease: leases["finished"](1)}, Healthy},
		{"a deploy that ended", Input{Revisions: []Revision{revision(5, Deployed)}, Lease: leases["finished"](5)}, Healthy},
		{"a status of a later Helm", Input{Revisions: []Revision{revision(5, "pending-migration"), revision(4, Deployed)}}, Unknown},
		{"Helm's own unknown", Input{Revisions: []Revision{revision(5, StatusUnknown)}}, Unknown},
		{"a record that cannot be read", Input{Revisions: []Revision{revision(5, PendingUpgrade)}, Undecodable: []string{"r6"}}, Unknown},
		{"a lease that cannot be read", Input{Revisions: []Revision{revision(5, PendingUpgrade)}, LeaseProblem: "no duration"}, Unknown},
		{"no record at all", Input{}, Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Now = now
			if got := Judge(tc.in); got.State != tc.want || got.Reason == "" {
				t.Errorf("%s (%s), want %s", got.State, got.Reason, tc.want)
			}
			for _, policy := range Policies() {
				for _, actor := range []Actor{ByController, ByPreflight, ByPerson} {
					if p := Decide(Judge(tc.in), Request{Now: now, Actor: actor, Policy: policy, UnguardedAfter: 1}); p.Action.Writes() {
						t.Errorf("%s under %s: %+v", actor, policy, p)
					}
				}
			}
		})
	}
}

func TestResidueIsNeverReported(t *testing.T) {
	in := Input{Now: now, Revisions: []Revision{
		{Number: 7, Status: Deployed, Created: ago(time.Hour)}, {Number: 6, Status: PendingUpgrade, Created: ago(90 * day)},
	}}
	for _, actor := range []Actor{ByController, ByPreflight, ByPerson} {
		if p := Decide(Judge(in), Request{Now: now, Actor: actor, Policy: PolicyRollback, ReportAfter: time.Minute}); p.Action != DoNothing {
			t.Errorf("%s: %+v", actor, p)
		}
	}
	if v := Judge(in); !slices.Equal(v.Residue, []int64{6}) || v.Good != 7 {
		t.Errorf("%+v", v)
	}
}

const day = 24 * time.Hour

func TestALeaseOnlyWeakensThePolicy(t *testing.T) {
	for _, tc := range []struct{ configured, allowed, want Policy }{
		{PolicyRollback, "", PolicyRollback},
		{PolicyRollback, PolicyReport, PolicyReport},
		{PolicyRollback, PolicyForward, PolicyForward},
		{PolicyForward, PolicyRollback, PolicyForward},
		{PolicyReport, PolicyUninstall, PolicyReport},
		{PolicyUninstall, PolicyRollback, PolicyReport},
		{PolicyRollback, PolicyUninstall, PolicyReport},
		{PolicyUninstall, PolicyUninstall, PolicyUninstall},
		{PolicyForward, "delete", PolicyReport},
	} {
		if got := tc.configured.Weakened(tc.allowed); got != tc.want {
			t.Errorf("%s under a lease that allows %q: %s, want %s", tc.configured, tc.allowed, got, tc.want)
		}
	}
	in := pending(Upgrade, true)
	in.Lease = leases["finished"](5)
	in.Lease.Policy = PolicyReport
	if p := Decide(Judge(in), Request{Now: now, Actor: ByPerson, Policy: PolicyForward}); p.Action != DoReport {
		t.Errorf("%+v", p)
	}
}

func TestOfASilentGuardWithoutATimeoutTheRemedyIsSaid(t *testing.T) {
	in := pending(Upgrade, true)
	in.Lease = leases["stale without a timeout"](5)
	byPerson := Request{Now: now, Actor: ByPerson, Policy: PolicyForward}
	v := Judge(in)
	if v.State != Unknown || !strings.Contains(v.Reason, "delete its Lease") || Decide(v, byPerson).Action == DoForward {
		t.Errorf("%+v", v)
	}
	in.Lease = nil // as it says
	if v := Judge(in); v.State != Unguarded || Decide(v, byPerson).Action != DoForward {
		t.Errorf("without the Lease: %+v, %+v", v, Decide(v, byPerson))
	}
}

func TestAForeignReleaseIsOnlyReported(t *testing.T) {
	in := pending(Upgrade, true)
	in.Lease = leases["finished"](5)
	for _, policy := range Policies() {
		if p := Decide(Judge(in), Request{Now: now, Actor: ByPerson, Policy: policy, Foreign: "Flux"}); p.Action != DoReport {
			t.Errorf("%s: %+v", policy, p)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for _, p := range Policies() {
		if got, err := ParsePolicy(string(p)); got != p || err != nil {
			t.Error(p, got, err)
		}
	}
	if _, err := ParsePolicy("delete"); err == nil || err.Error() != `"delete" is no policy: write one of report, forward, rollback, uninstall` {
		t.Error(err)
	}
}

func ExampleJudge() {
	in := pending(Upgrade, true)
	fmt.Println(Judge(in).State)
	in.Lease = leases["stale past its timeout"](5)
	fmt.Println(Judge(in).State)
	// Output:
	// unguarded
	// abandoned
}

func TestNothingIsDecidedWhileAHookMayRun(t *testing.T) {
	pending := []Revision{{Number: 2, Status: PendingUpgrade, Created: now.Add(-time.Hour), Deploy: "d1"}, {Number: 1, Status: Deployed}}
	ended := &Lease{Deploy: "d1", Revision: 2, Duration: time.Minute, Finished: &Outcome{Time: now}}
	for _, lease := range []*Lease{nil, ended} {
		in := Input{Now: now, Revisions: pending, Lease: lease, HookProblem: "forbidden"}
		v := Judge(in)
		if v.State != Unknown {
			t.Errorf("with lease %v: %s: %s", lease, v.State, v.Reason)
		}
		if p := Decide(v, Request{Now: now, Actor: ByPerson, Policy: PolicyRollback}); p.Action.Writes() {
			t.Errorf("with lease %v it does a %s", lease, p.Action)
		}
	}
}
