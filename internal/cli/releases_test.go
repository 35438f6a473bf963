package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/recovery"
	"tidemark.dev/tidemark/internal/release"
)

// releaseSight has a release in each state.
func releaseSight() *helm.Sight {
	deployed := func(n int64) release.Revision {
		return release.Revision{Record: "r", Number: n, Status: release.Deployed, Created: ago(day)}
	}
	pending := func(n int64, age time.Duration, deploy string) release.Revision {
		return release.Revision{Record: "r", Number: n, Status: release.PendingUpgrade, Created: ago(age), Deploy: deploy}
	}
	guard := func(unchanged time.Duration) *release.Lease {
		return &release.Lease{
			Deploy: "d1", Revision: 5, Holder: "guard-1", Starter: "ann", Job: "https://ci.example/1", Began: ago(40 * time.Minute),
			Timeout: 10 * time.Minute, Duration: 3 * time.Minute, Renewed: ago(unchanged), Unchanged: unchanged,
		}
	}
	told := guard(time.Hour)
	told.Revision, told.Finished = 7, &release.Outcome{Time: ago(time.Hour), ExitStatus: 137}
	alive := guard(10 * time.Second)
	alive.Timeout = 0
	inputs := map[string]release.Input{
		"abandoned": {Revisions: []release.Revision{deployed(4), pending(5, 40*time.Minute, "d1")}, Lease: guard(4 * time.Minute)},
		"healthy":   {Revisions: []release.Revision{deployed(4)}},
		"live":      {Revisions: []release.Revision{deployed(4), pending(5, time.Minute, "d1")}, Lease: alive},
		"overdue":   {Revisions: []release.Revision{deployed(4), pending(5, 40*time.Minute, "d1")}, Lease: guard(10 * time.Second)},
		"residue":   {Revisions: []release.Revision{pending(3, 2*day, ""), deployed(4)}},
		"settled":   {Revisions: []release.Revision{deployed(7)}, Lease: told},
		"torn":      {Revisions: []release.Revision{deployed(4)}, Undecodable: []string{`secret/sh.helm.release.v1.torn.v5 (label "version" is "", which is no revision)`}},
		"unguarded": {Revisions: []release.Revision{deployed(4), pending(5, 40*time.Minute, "")}},
		"veiled":    {Revisions: []release.Revision{deployed(4)}, LeaseProblem: "missing the right to list leases in namespace shop"},
	}
	s := &helm.Sight{Now: now, Remarks: []string{"missing the right to list configmaps in namespace shop: releases that Helm keeps there are not shown"}}
	for _, name := range []string{"abandoned", "healthy", "live", "overdue", "residue", "settled", "torn", "unguarded", "veiled"} {
		in := inputs[name]
		in.Now = now
		s.Releases = append(s.Releases, helm.Release{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}, Input: in})
	}
	return s
}

func TestReleasesPrint(t *testing.T) {
	request := release.Request{Actor: release.ByController, Policy: release.PolicyForward, ReportAfter: defaultReportAfter}
	for _, output := range []string{"", "wide", "json", "yaml", "name"} {
		t.Run("as "+output, func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			o := releasesOptions{IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, output: output, withNamespace: output == "wide"}
			s := releaseSight()
			if err := o.print(judgeReleases(s.Releases, request), s); err != nil {
				t.Fatal(err)
			}
			golden(t, "releases."+map[string]string{"": "txt"}[output]+output, out.String())
		})
	}
}

func TestNobodyIsShownToHaveStartedWhatSomebodyElseDid(t *testing.T) {
	in := release.Input{
		Now:       now,
		Revisions: []release.Revision{{Number: 6, Status: release.Deployed, Created: ago(day)}, {Number: 7, Status: release.PendingUpgrade, Created: ago(time.Hour)}},
		Lease:     &release.Lease{Deploy: "d1", Revision: 6, Starter: "ann", Job: "https://ci.example/1", Finished: &release.Outcome{Time: ago(day)}},
	}
	one := judgeReleases([]helm.Release{{Input: in}}, release.Request{})[0]
	if starter, heartbeat, job := one.deployText(); starter != none || heartbeat != none || job != none {
		t.Errorf("%s is %s: started by %s, heartbeat %s, job %s", one.verdict.Newest.Status, one.verdict.State, starter, heartbeat, job)
	}
	if d := one.document().Deploy; d != nil {
		t.Errorf("as JSON %s is %s, of the deploy %+v", one.verdict.Newest.Status, one.verdict.State, d)
	}
}

func TestReleasesAreNamedOrNotThere(t *testing.T) {
	all := releaseSight().Releases
	got, err := pickReleases(all, []string{"live", "healthy"}, "shop")
	if err != nil || len(got) != 2 || got[0].Name != "live" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := pickReleases(all, []string{"live", "gone"}, "shop"); err == nil || !strings.Contains(err.Error(), "release gone is in namespace shop") {
		t.Errorf("error %v", err)
	}
}

func TestReleasesRefuseWhatMakesNoSense(t *testing.T) {
	for arguments, want := range map[string]string{
		"releases --policy rollback":             "report or forward",
		"releases -A web":                        "exclude each other",
		"releases -o table":                      "--output",
		"releases recover":                       "name one release",
		"releases recover web --policy forwards": "is no policy",
	} {
		errOut := &bytes.Buffer{}
		code := Run(t.Context(), Config{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: errOut}}, strings.Fields(arguments))
		if code != exitError || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: exit status %d: %s", arguments, code, errOut)
		}
	}
}

func TestRecoveryLeavesAsLongAHistoryAsHelm(t *testing.T) {
	for variable, want := range map[string]string{"": "10", "25": "25", "0": "0"} {
		s := &session{Config: Config{Getenv: func(name string) string { return map[string]string{"HELM_MAX_HISTORY": variable}[name] }}}
		flag := newRecover(s, "tidemark").Flag("history-max")
		if flag.Value.String() != want || flag.DefValue != "10" {
			t.Errorf("HELM_MAX_HISTORY=%s: it leaves %s, want %s; the help says %s", variable, flag.Value, want, flag.DefValue)
		}
	}
}

func TestRecoverySaysWhatItDid(t *testing.T) {
	pending := release.Verdict{State: release.Abandoned, Operation: release.Upgrade, Newest: release.Revision{Number: 5}}
	live := pending
	live.State = release.Live
	for name, tc := range map[string]struct {
		result recovery.Result
		policy release.Policy
		dryRun bool
		want   string
		fails  bool
	}{
		"forward":                  {recovery.Result{Verdict: pending, Plan: release.Plan{Action: release.DoForward, To: 5, Why: "W"}, Done: true}, release.PolicyForward, false, "revision 5 marked failed: the next upgrade is accepted (W)", false},
		"rollback":                 {recovery.Result{Verdict: pending, Plan: release.Plan{Action: release.DoRollback, To: 4, Why: "W"}, Done: true}, release.PolicyRollback, false, "rolled back to revision 4 (W)", false},
		"a dry run":                {recovery.Result{Verdict: pending, Plan: release.Plan{Action: release.DoUninstall, Why: "W"}}, release.PolicyUninstall, true, "uninstalled (dry run; W)", false},
		"a live one":               {recovery.Result{Verdict: live, Plan: release.Plan{Action: release.DoNothing, Why: "W"}}, release.PolicyForward, false, "release web in namespace shop is live and was not touched: W", true},
		"a live one, asked about":  {recovery.Result{Verdict: live, Plan: release.Plan{Action: release.DoNothing, Why: "W"}}, release.PolicyReport, false, "release web is live: W", false},
		"nothing pending":          {recovery.Result{Verdict: release.Verdict{State: release.Healthy}, Plan: release.Plan{Action: release.DoNothing, Why: "W"}}, release.PolicyForward, false, "needs no recovery: W", false},
		"nothing that can be told": {recovery.Result{Verdict: release.Verdict{State: release.Unknown}, Plan: release.Plan{Action: release.DoReport, Why: "W"}}, release.PolicyForward, false, "is unknown and was not touched: W", true},
	} {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			o := recoverOptions{IOStreams: genericiooptions.IOStreams{Out: out}, namespace: "shop", name: "web"}
			o.request.Policy, o.request.DryRun = tc.policy, tc.dryRun
			err := o.tell(tc.result)
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if (err != nil) != tc.fails || !strings.Contains(said, tc.want) || errors.Is(err, errFindings) {
				t.Errorf("%v, %q", err, out)
			}
		})
	}
}
