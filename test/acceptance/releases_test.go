package acceptance

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

const service = "checkout" // the release, and its Deployment

// deploys are the deploys of one chart by the real Helm into a namespace.
type deploys struct {
	*scene
	chart string
	// driver is where Helm keeps its records: "secret" or "configmap".
	driver string
}

func openDeploys(t *testing.T, namespace, driver string) *deploys {
	t.Helper()
	turn(t)
	chart, err := scenario.Chart(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &deploys{scene: venue{t, shared.lab}.open(namespace, ""), chart: chart, driver: driver}
}

func (d *deploys) command(args ...string) *exec.Cmd {
	d.t.Helper()
	c, err := d.Lab.HelmCommand(d.t.Context(), append([]string{"-n", d.Namespace}, args...)...)
	d.must(err)
	c.Env = append(c.Env, "HELM_DRIVER="+d.driver)
	return c
}

// helm runs it, and returns what it printed with its error.
func (d *deploys) helm(args ...string) error {
	d.t.Helper()
	if out, err := d.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", args[0], err, out)
	}
	return nil
}

func (d *deploys) installed(flags ...string) {
	d.t.Helper()
	d.must(d.helm(append([]string{"install", service, d.chart, "--wait"}, flags...)...))
}

// stuck starts a deploy of the second release that waits for its pods, until it does.
func (d *deploys) stuck(verb string, flags ...string) *exec.Cmd {
	d.t.Helper()
	c := d.command(append([]string{verb, service, d.chart, "--wait", "--set", "release=2,bootDelay=1h"}, flags...)...) // the last --set wins
	d.must(c.Start())
	d.t.Cleanup(func() { _ = c.Process.Kill() }) // as a rule it has ended
	d.eventually("the deploy to wait for its pods", func() error {
		image, err := d.Kubectl(d.t.Context(), "get", "deployment", service, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
		if err == nil && !strings.HasSuffix(image, ":2") {
			err = fmt.Errorf("the image is %s", image)
		}
		return err
	})
	return c
}

// killed is a deploy whose process is gone in the middle.
func (d *deploys) killed(verb string, flags ...string) {
	d.t.Helper()
	c := d.stuck(verb, flags...)
	d.must(c.Process.Kill())
	if err := c.Wait(); err == nil {
		d.t.Fatal("the deploy succeeded")
	}
}

// revisionsAre checks the statuses of the release's revisions, in order, as its records' labels say.
func (d *deploys) revisionsAre(want string) {
	d.t.Helper()
	kind := "secrets"
	if d.driver == "configmap" {
		kind = "configmaps"
	}
	got := d.kubectl("get", kind, "-l", "owner=helm", "--sort-by={.metadata.labels.version}", "-o", "jsonpath={.items[*].metadata.labels.status}")
	if got != want {
		d.t.Errorf("the revisions are %q, want %q", got, want)
	}
}

// historyIs checks the same as Helm reads it from the payload.
func (d *deploys) historyIs(want string) {
	d.t.Helper()
	out, err := d.command("history", service, "-o", "json").Output()
	d.must(err)
	var revisions []struct{ Status string }
	d.must(json.Unmarshal(out, &revisions))
	var got []string
	for _, r := range revisions {
		got = append(got, r.Status)
	}
	if strings.Join(got, " ") != want {
		d.t.Errorf("helm history is %q, want %q", got, want)
	}
}

// deployment tells whether anybody wrote to the Deployment.
func (d *deploys) deployment() string {
	d.t.Helper()
	return d.kubectl("get", "deployment", service, "-o", "jsonpath={.metadata.uid} {.metadata.generation} {.spec.template.spec.containers[0].image}")
}

// TestAKilledDeployIsRecovered kills a real helm with SIGKILL while it waits, and recovers the release under each policy, wherever
// Helm keeps its records.
func TestAKilledDeployIsRecovered(t *testing.T) {
	for _, driver := range []string{"secret", "configmap"} {
		t.Run("in "+driver+"s", func(t *testing.T) {
			t.Run("forward", func(t *testing.T) { forwarded(openDeploys(t, "forward-"+driver, driver)) })
			t.Run("rollback", func(t *testing.T) { rolledBack(openDeploys(t, "rollback-"+driver, driver)) })
			t.Run("uninstall", func(t *testing.T) { uninstalled(openDeploys(t, "uninstall-"+driver, driver)) })
		})
	}
}

func forwarded(d *deploys) {
	d.installed()
	d.killed("upgrade")
	if err := d.helm("upgrade", service, d.chart); err == nil || !strings.Contains(err.Error(), "another operation") {
		d.t.Fatalf("without recovery the next upgrade gives: %v", err)
	}
	d.does("releases", service, "pending-upgrade", "unguarded")
	before := d.deployment()
	d.does("releases recover checkout --dry-run", "revision 2 marked failed", "dry run")
	d.historyIs("deployed pending-upgrade")
	d.does("releases recover checkout", "revision 2 marked failed")
	d.historyIs("deployed failed")
	d.revisionsAre("deployed failed")
	if after := d.deployment(); after != before {
		d.t.Errorf("the workload was %q and is %q", before, after)
	}
	d.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=3"))
	d.does("releases recover checkout", "needs no recovery")
	d.historyIs("superseded failed deployed")
}

func rolledBack(d *deploys) {
	d.installed()
	d.killed("upgrade")
	d.does("releases recover checkout --policy rollback --wait", "rolled back to revision 1")
	d.historyIs("superseded failed deployed")
	d.revisionsAre("superseded failed deployed")
	if got := d.deployment(); !strings.HasSuffix(got, ":1") {
		d.t.Errorf("the workload is %s", got)
	}
	d.isWrittenByHelm(metav1.ManagedFieldsOperationApply)
	d.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=3"))
}

func uninstalled(d *deploys) {
	d.killed("install")
	d.does("releases recover checkout --policy uninstall", "uninstalled")
	d.revisionsAre("")
	d.eventually("the Deployment to be gone", func() error {
		if got := d.kubectl("get", "deployments", "-o", "name"); got != "" {
			return errors.New(got)
		}
		return nil
	})
	d.must(d.helm("install", service, d.chart))
}

// TestARecordOfAMebibyteIsRecovered does so with a record as large as the API takes.
func TestARecordOfAMebibyteIsRecovered(t *testing.T) {
	d := openDeploys(t, "mebibyte", "secret")
	noise := make([]byte, 770_000) // text that does not compress but by what base64 added
	_, _ = rand.Read(noise)
	values := filepath.Join(t.TempDir(), "padding")
	d.must(os.WriteFile(values, []byte(base64.StdEncoding.EncodeToString(noise)), 0o600))
	d.installed()
	d.killed("upgrade", "--set-file", "padding="+values)
	size := len(d.kubectl("get", "secret", "sh.helm.release.v1.checkout.v2", "-o", "jsonpath={.data.release}")) * 3 / 4
	if size < 1_000_000 {
		t.Fatalf("the record has %d bytes only", size)
	}
	d.does("releases recover checkout", "revision 2 marked failed")
	d.historyIs("deployed failed")
}

// TestALiveDeployIsNeverRecovered stops a real helm with SIGSTOP, and its guard renews the lease: then the guard is stopped too,
// while its pod runs on.
func TestALiveDeployIsNeverRecovered(t *testing.T) {
	d := openDeploys(t, "live", "secret")
	d.installed()
	lease := d.guarding("d1", 2)
	c := d.stuck("upgrade", "--labels", v1.LabelDeploy+"=d1", "--set", "bootDelay=3s")
	d.must(c.Process.Signal(syscall.SIGSTOP))
	renewed := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(renewed)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				lease.renew()
			}
		}
	}()
	time.Sleep(6 * time.Second) // longer than the lease, whose guard lives
	for _, policy := range []string{"forward", "rollback"} {
		d.fails("releases recover checkout --policy "+policy, "was not touched")
	}
	close(stop)
	<-renewed
	d.fails("releases recover checkout", "was not touched")
	d.historyIs("deployed pending-upgrade")
	d.must(c.Process.Signal(syscall.SIGCONT))
	d.must(c.Wait())
	d.historyIs("superseded deployed")
}

// lease is that of a guard, played by the test.
type lease struct {
	d      *deploys
	object *coordinationv1.Lease
}

func (d *deploys) guarding(deploy string, revision int) *lease {
	d.t.Helper()
	now := metav1.NowMicro()
	l := &lease{d, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: v1.DeployLeasePrefix + service, Labels: map[string]string{v1.LabelDeploy: deploy},
			Annotations: map[string]string{
				v1.AnnotationDeployRevision: fmt.Sprint(revision), v1.AnnotationDeployStartedBy: "ann",
				v1.AnnotationDeployBegan: now.UTC().Format(time.RFC3339), v1.AnnotationDeployTimeout: "1h",
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("guard"), LeaseDurationSeconds: ptr.To[int32](5), RenewTime: &now},
	}}
	d.must(d.API.Create(d.t.Context(), l.object))
	return l
}

func (l *lease) renew() {
	before := l.object.DeepCopy()
	now := metav1.NowMicro()
	l.object.Spec.RenewTime = &now
	if err := l.d.API.Patch(l.d.t.Context(), l.object, ctrlclient.MergeFrom(before)); err != nil {
		l.d.t.Error(err)
	}
}
