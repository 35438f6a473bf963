package acceptance

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark.dev/tidemark/lab/client/labtest"
)

// childless is an error while a process has children.
func childless(pid int) error {
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	var none *exec.ExitError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return fmt.Errorf("processes %s live", text)
	}
	return nil
}

// isRecoveredByAge checks that what a command without a label left is refused by the next deploy, and recovered by one that was
// given an age.
func (d *deployed) isRecoveredByAge(status string) {
	d.t.Helper()
	refused := d.guard(short("--policy", "forward", "--wait-for-lock=1m"))
	if exit := refused.ended(d.t); exit != 125 || !strings.Contains(refused.said.String(), status) {
		d.t.Errorf("exit status %d: %s", exit, refused.said.String())
	}
	d.eventually("the next upgrade to go through", func() error {
		next := d.guard(short("--policy", "forward", "--recover-unguarded-after", "1s"), "--set", "release=3,hook=")
		if next.ended(d.t) != 0 {
			return fmt.Errorf("exit status %d: %s", next.ProcessState.ExitCode(), next.said.String())
		}
		return nil
	})
	if got := d.statuses(); !strings.HasSuffix(got, "deployed") || strings.Contains(got, "pending") {
		d.t.Errorf("the revisions are %s", got)
	}
}

// TestAGuardedRollbackThatIsCancelledIsLeftToAPerson cancels `helm rollback --wait`, which leaves its revision pending.
func TestAGuardedRollbackThatIsCancelledIsLeftToAPerson(t *testing.T) {
	d := deploy(t, "guard-cancelled")
	for _, values := range []string{"release=2,bootDelay=1h", "release=3"} {
		_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--set", values)
		d.must(err)
	}
	g := d.guardHelm(short(), "rollback", "checkout", "2", "--wait", "--timeout", "1h")
	const pending = "1 superseded, 2 superseded, 3 deployed, 4 pending-rollback"
	d.eventually("the rollback to be pending", func() error { return labtest.Equal("the revisions", d.statuses(), pending) })
	send(t, syscall.SIGTERM, g.Process.Pid)
	if status := g.ended(t); status == 0 || d.statuses() != pending {
		t.Errorf("exit status %d, revisions %s: %s", status, d.statuses(), g.said.String())
	}
	if out, err := d.helmPlugin("tidemark", "pending", "-n", d.Namespace); err != nil || !strings.Contains(out, "checkout") || !strings.Contains(out, "pending-rollback") || !strings.Contains(out, "unguarded") {
		t.Errorf("helm tidemark pending: %v: %s", err, out)
	}
	if out, err := d.helmPlugin("tidemark", "pending", "-n", d.Namespace, "--exit-code", "--report-after", "1s"); err == nil {
		t.Errorf("a check succeeds: %s", out)
	}
	d.isRecoveredByAge("pending-rollback")
}

// TestTheStarterIsToldOfACancelledDeploy cancels `helm upgrade --wait`, which heeds the signal and exits with 1: a message. Then
// `helm rollback --wait`, which leaves its revision pending: a page at once.
func TestTheStarterIsToldOfACancelledDeploy(t *testing.T) {
	v := alone(t)
	in := newInbox(t)
	d := deployOn(v, "cancel-upgrade")
	d.controller = v.control(append(in.flags, "--release-interval=500ms")...)
	d.eventually("people to be told of what holds from now on", d.controllerHasLooked)
	g := d.hangs("--started-by", "ann", "--job-url", "https://ci.example/8")
	send(t, syscall.SIGTERM, g.Process.Pid)
	if status := g.ended(t); status != 1 || d.statuses() != "1 deployed, 2 failed" {
		t.Errorf("exit status %d, revisions %s: %s", status, d.statuses(), g.said.String())
	}
	told := in.gets(d.scene, "checkout", "TidemarkDeployCancelled", "firing")
	d.untold(g, in)
	back := deployOn(v, "cancel-rollback")
	_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", back.chart, "-n", back.Namespace, "--set", "release=2,bootDelay=1h")
	d.must(err)
	_, _, err = d.Lab.Helm(t.Context(), "upgrade", "checkout", back.chart, "-n", back.Namespace, "--set", "release=3")
	d.must(err)
	g = back.guardHelm(short("--started-by", "bob"), "rollback", "checkout", "2", "--wait", "--timeout", "1h")
	back.eventually("the rollback to be pending", func() error {
		return labtest.Equal("the revisions", back.statuses(), "1 superseded, 2 superseded, 3 deployed, 4 pending-rollback")
	})
	send(t, syscall.SIGTERM, g.Process.Pid)
	g.ended(t)
	page := in.gets(back.scene, "checkout", "TidemarkReleaseAbandoned", "firing")
	if page.Severity != "page" || page.Fact("started by") != "bob" || !strings.Contains(page.Title, "probably left revision 4 pending-rollback: its guard got SIGTERM at ") {
		t.Errorf("the page is %+v", page)
	}
	if told.Severity != "message" || told.Fact("started by") != "ann" || told.Fact("job") != "https://ci.example/8" ||
		!strings.Contains(told.Title, "its guard got SIGTERM at ") || !strings.Contains(told.Title, "revision 2 is failed") {
		t.Errorf("the message is %+v", told)
	}
}

// killedAfter is how long after SIGTERM a CI system kills: ten seconds are usual (docs/guard.md).
const killedAfter = 10 * time.Second

// TestAnUpgradeThatRollsBackWhenItIsKilledIsRecovered cancels `helm upgrade --rollback-on-failure`, which goes on to roll back, and
// kills it in the middle of that, as a CI system does. A hook holds the rollback up, for longer than the lease lasts after that.
func TestAnUpgradeThatRollsBackWhenItIsKilledIsRecovered(t *testing.T) {
	d := deploy(t, "guard-rolling-back")
	_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--set", "hook=pre-rollback,hookRuns=45s")
	d.must(err)
	g := d.guard([]string{"--lease-duration", "12s"}, "--rollback-on-failure", "--timeout", "1h", "--set", "release=2,bootDelay=1h")
	d.eventually("the upgrade to be pending", func() error {
		return labtest.Equal("the revisions", d.statuses(), "1 superseded, 2 deployed, 3 pending-upgrade")
	})
	time.Sleep(time.Second) // it waits for its pods
	cancelled := time.Now()
	send(t, syscall.SIGTERM, g.Process.Pid)
	d.eventually("the rollback to be pending", func() error {
		if got := d.statuses(); !strings.HasSuffix(got, "4 pending-rollback") {
			return errors.New(got)
		}
		return nil
	})
	time.Sleep(time.Until(cancelled.Add(killedAfter)))
	d.killedWhole(g)
	refused := d.guard(short("--policy", "forward", "--recover-unguarded-after", "1s", "--wait-for-lock=1m"))
	if status := refused.ended(t); status != 125 || !strings.Contains(refused.said.String(), "hook") {
		t.Errorf("while its hook runs: exit status %d: %s", status, refused.said.String())
	}
	d.isRecoveredByAge("pending-rollback")
}

// TestAPartitionEndsTheDeployBeforeItsLeaseDoes parts a guard and its helm from the API, and heals that after the lease: nothing
// of theirs is written then.
func TestAPartitionEndsTheDeployBeforeItsLeaseDoes(t *testing.T) {
	d := deploy(t, "guard-parted")
	b := venue{t, d.Lab}.bridge()
	g := d.guard(short("--timeout", "12s"), "--set", "bootDelay=1h,release=2", "--kube-apiserver", "https://"+b.address())
	d.eventually("the upgrade to be pending", func() error { return labtest.Equal("the revisions", d.statuses(), "1 deployed, 2 pending-upgrade") })
	time.Sleep(2 * time.Second) // it waits for its pods, and its guard renews
	helm := helmOf(t, g)
	parted := time.Now()
	heal := b.part()
	state := func() string {
		return d.kubectl("get", "secrets,deployments,replicasets", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.labels.status}\n{end}")
	}
	before := state()
	d.eventually("the command to be stopped", func() error {
		if err := syscall.Kill(helm, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d lives", helm)
		}
		return nil
	})
	if took := time.Since(parted); took > 6*time.Second {
		t.Errorf("it ended %s after the partition, and the lease may have run out after 6s", took)
	}
	time.Sleep(time.Until(parted.Add(8 * time.Second)))
	heal()
	if status := g.ended(t); status < 128 || !strings.Contains(g.said.String(), "stopping the command") {
		t.Errorf("exit status %d: %s", status, g.said.String())
	}
	time.Sleep(time.Second)
	if after := state(); after != before {
		t.Errorf("after the partition there is\n%s\nbefore there was\n%s", after, before)
	}
	d.eventually("the next upgrade to go through", func() error {
		next := d.guard(short("--policy", "forward"), "--set", "release=3")
		if next.ended(t) != 0 {
			t.Log(next.said.String())
			return errors.New("it did not")
		}
		return nil
	})
	if got := d.statuses(); got != "1 superseded, 2 failed, 3 deployed" {
		t.Errorf("the revisions are %s", got)
	}
}
