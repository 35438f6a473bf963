package acceptance

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// deployed is a release of the chart `checkout` in a namespace of its own.
type deployed struct {
	*scene
	chart string
}

// deploy installs the release on the shared lab, with plain helm.
func deploy(t *testing.T, namespace string) *deployed {
	t.Helper()
	turn(t)
	return deployOn(venue{t, shared.lab}, namespace)
}

func deployOn(v venue, namespace string) *deployed {
	v.t.Helper()
	s := v.open(namespace, "")
	chart, err := scenario.Chart(v.t.TempDir())
	s.must(err)
	if _, _, err := s.Lab.Helm(v.t.Context(), "install", "checkout", chart, "-n", namespace, "--wait"); err != nil {
		v.t.Fatal(err)
	}
	return &deployed{s, chart}
}

// short are flags of a guard that make everything about its lease a matter of seconds.
func short(more ...string) []string { return append([]string{"--lease-duration", "6s"}, more...) }

// guarded is a guard that was started.
type guarded struct {
	*exec.Cmd
	said bytes.Buffer
}

// guard starts a guarded upgrade with further flags for helm.
func (d *deployed) guard(flags []string, helm ...string) *guarded {
	d.t.Helper()
	return d.guardHelm(flags, append([]string{"upgrade", "checkout", d.chart, "--wait"}, helm...)...)
}

// guardHelm starts a guarded helm.
func (d *deployed) guardHelm(flags []string, helm ...string) *guarded {
	d.t.Helper()
	c, err := d.GuardCommand(d.t.Context(), flags, helm...)
	d.must(err)
	g := &guarded{Cmd: c}
	c.Stdout, c.Stderr = &g.said, &g.said
	d.must(c.Start())
	return g
}

// ended waits for the end of a guard, and gives its exit status.
func (g *guarded) ended(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := g.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return g.ProcessState.ExitCode()
}

// statuses are those of the release's revisions, "1 deployed, 2 pending-upgrade", by what their labels say.
func (d *deployed) statuses() string {
	d.t.Helper()
	revisions, err := d.Revisions(d.t.Context())
	d.must(err)
	return revisions
}

func (d *deployed) lease() *coordinationv1.Lease {
	d.t.Helper()
	l := &coordinationv1.Lease{}
	d.must(d.API.Get(d.t.Context(), ctrlclient.ObjectKey{Namespace: d.Namespace, Name: v1.DeployLeasePrefix + "checkout"}, l))
	return l
}

// password is given to guarded helms by --set.
const password = "S3cretMarker"

// untold checks that the password is in no lease, event, log, metric or message, nor in what the guard said, once the controller has
// told of the deploy. Helm's records hold it, for they hold all values.
func (d *deployed) untold(g *guarded, in *inbox) {
	d.t.Helper()
	metrics, err := d.controller.Metrics(d.t.Context())
	d.must(err)
	said := map[string]string{
		"the guard": g.said.String(), "the log": d.controller.Log(), "a metric": metrics,
		"a lease or event": d.kubectl("get", "leases,events", "-o", "yaml"), "a message": in.text(),
	}
	for where, text := range said {
		if text == "" && where != "the guard" { // which may have nothing to remark
			d.t.Errorf("%s told nothing at all", where)
		}
		for _, form := range []string{password, base64.StdEncoding.EncodeToString([]byte(password))} {
			if strings.Contains(text, form) {
				d.t.Errorf("%s told the password", where)
			}
		}
	}
}

// isPending is an error unless an upgrade of the release that was installed is pending.
func (d *deployed) isPending() error {
	d.t.Helper()
	return labtest.Equal("the revisions", d.statuses(), "1 deployed, 2 pending-upgrade")
}

// hangs starts a guarded upgrade that waits for pods for ever, and returns when helm does so.
func (d *deployed) hangs(flags ...string) *guarded {
	d.t.Helper()
	g := d.guard(short(flags...), "--set", "bootDelay=1h,release=2,padding="+password)
	d.eventually("the upgrade to be pending", d.isPending)
	d.eventually("pods of release 2", func() error {
		out, err := d.Kubectl(d.t.Context(), "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}")
		if err == nil && !strings.Contains(out, "tidemark-sample:2") {
			err = fmt.Errorf("there are %s", out)
		}
		return err
	})
	return g
}

// helmOf is the process of helm below a guard.
func helmOf(t *testing.T, g *guarded) int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(g.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func send(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGuardedUpgradeTellsOfItselfAndOfNoPassword(t *testing.T) {
	d := deploy(t, "guard-upgrade")
	g := d.guard([]string{"--started-by", "ann"}, "--set", "padding="+password+",release=2,bootDelay=6s")
	if status := g.ended(t); status != 0 {
		t.Fatalf("exit status %d: %s", status, g.said.String())
	}
	if got := d.statuses(); got != "1 superseded, 2 deployed" {
		t.Errorf("revisions %s", got)
	}
	l := d.lease()
	if a := l.Annotations; a[v1.AnnotationDeployRevision] != "2" || a[v1.AnnotationDeployExitStatus] != "0" || a[v1.AnnotationDeployStartedBy] != "ann" {
		t.Errorf("lease %v", a)
	}
	record := &corev1.Secret{}
	d.must(d.API.Get(t.Context(), ctrlclient.ObjectKey{Namespace: d.Namespace, Name: "sh.helm.release.v1.checkout.v2"}, record))
	if record.Labels[v1.LabelDeploy] == "" || record.Labels[v1.LabelDeploy] != l.Labels[v1.LabelDeploy] {
		t.Errorf("the record is labelled %q, the lease %q", record.Labels[v1.LabelDeploy], l.Labels[v1.LabelDeploy])
	}
	if !strings.Contains(g.said.String(), "deployment/checkout: ") {
		t.Errorf("nothing was said of what is waited for: %s", g.said.String())
	}
	events, err := d.Kubectl(t.Context(), "get", "leases,events", "-o", "yaml")
	d.must(err)
	if strings.Contains(events, password) || strings.Contains(g.said.String(), password) {
		t.Error("the password was told")
	}
}

func TestAKilledDeployIsRecoveredByTheNext(t *testing.T) {
	for policy, want := range map[string]string{
		"forward":  "1 superseded, 2 failed, 3 deployed",
		"rollback": "1 superseded, 2 failed, 3 superseded, 4 deployed",
	} {
		t.Run(policy, func(t *testing.T) {
			d := deploy(t, "guard-"+policy)
			g := d.hangs("--timeout", "10s")
			helm := helmOf(t, g)
			send(t, syscall.SIGKILL, g.Process.Pid)
			g.ended(t)
			d.eventually("helm to die with its guard", func() error {
				if err := syscall.Kill(helm, 0); !errors.Is(err, syscall.ESRCH) {
					return fmt.Errorf("process %d lives", helm)
				}
				return nil
			})
			_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace)
			if err == nil || !strings.Contains(err.Error(), "another operation") {
				t.Errorf("plain helm: %v", err)
			}
			var next *guarded
			d.eventually("the next upgrade to go through", func() error { // refused while the first may yet be alive
				next = d.guard(short("--policy", policy), "--set", "release=3")
				return labtest.Equal("the exit status", next.ended(t), 0)
			})
			if got := d.statuses(); got != want || !strings.Contains(next.said.String(), "is recovered") {
				t.Errorf("revisions %s, want %s; said %s", got, want, next.said.String())
			}
		})
	}
}

func TestAStoppedHelmIsNeverTouched(t *testing.T) {
	d := deploy(t, "guard-stopped")
	g := d.guard(short(), "--set", "bootDelay=3s,release=2")
	d.eventually("the upgrade to be pending", func() error {
		return labtest.Equal("the revisions", d.statuses(), "1 deployed, 2 pending-upgrade")
	})
	helm := helmOf(t, g)
	send(t, syscall.SIGSTOP, helm)
	time.Sleep(8 * time.Second) // longer than the lease, which its guard renews
	for _, policy := range []string{"forward", "rollback"} {
		other := d.guard(short("--policy", policy, "--recover-unguarded-after", "1s"))
		if status := other.ended(t); status != 125 || !strings.Contains(other.said.String(), "is being deployed by") {
			t.Errorf("%s: exit status %d: %s", policy, status, other.said.String())
		}
	}
	send(t, syscall.SIGCONT, helm)
	if status := g.ended(t); status != 0 || d.statuses() != "1 superseded, 2 deployed" {
		t.Errorf("exit status %d, revisions %s: %s", status, d.statuses(), g.said.String())
	}
}

func TestAGuardThatIsStoppedWithItsHelmIsNeverTouched(t *testing.T) {
	d := deploy(t, "guard-both-stopped")
	g := d.hangs("--timeout", "1h")
	helm := helmOf(t, g)
	send(t, syscall.SIGSTOP, g.Process.Pid, helm)
	first := d.lease().Labels[v1.LabelDeploy]
	time.Sleep(8 * time.Second) // longer than the lease, which nobody renews
	other := d.guard(short("--policy", "rollback", "--recover-unguarded-after", "1s"))
	if status := other.ended(t); status != 125 || !strings.Contains(other.said.String(), "that is unknown") {
		t.Errorf("exit status %d: %s", status, other.said.String())
	}
	if l := d.lease(); l.Labels[v1.LabelDeploy] != first || d.statuses() != "1 deployed, 2 pending-upgrade" {
		t.Errorf("lease of %s, was of %s; revisions %s", l.Labels[v1.LabelDeploy], first, d.statuses())
	}
	send(t, syscall.SIGCONT, g.Process.Pid, helm)
	if status := g.ended(t); status < 128 || !strings.Contains(g.said.String(), "stopping the command") {
		t.Errorf("it went on without its lease: exit status %d: %s", status, g.said.String())
	}
}

// helmPlugin runs helm with the plugin loaded, and this program as the plugin's.
func (d *deployed) helmPlugin(args ...string) (string, error) {
	d.t.Helper()
	root, err := scenario.Root()
	d.must(err)
	c, err := d.Lab.HelmCommand(d.t.Context(), args...)
	d.must(err)
	c.Env = append(c.Env, "HELM_PLUGINS="+filepath.Join(root, "deploy"), "PATH="+filepath.Dir(c.Path)+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestHelmRunsThePlugin(t *testing.T) {
	d := deploy(t, "guard-plugin")
	out, err := d.helmPlugin("tidemark", "--namespace", d.Namespace, "guard", "--", "helm", "upgrade", "checkout", d.chart, "--set", "release=2")
	if err != nil || d.statuses() != "1 superseded, 2 deployed" || d.lease().Annotations[v1.AnnotationDeployExitStatus] != "0" {
		t.Errorf("%v, revisions %s: %s", err, d.statuses(), out)
	}
	out, err = d.helmPlugin("tidemark", "pending", "-n", d.Namespace)
	if err != nil || !strings.Contains(out, "No pending Helm releases found in namespace "+d.Namespace) {
		t.Errorf("%v: %s", err, out)
	}
}
