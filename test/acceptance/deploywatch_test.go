package acceptance

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// pendingFlags make the controller look at releases often, and report what is pending after seconds.
var pendingFlags = []string{"--release-interval=500ms", "--pending-report-after=4s"}

// TestTheControllerTellsOfADeployThatCannotComeBack kills the process tree of a guarded deploy, beside releases of which there is
// nothing to tell and records that cannot be read. The controller has the rights that ship, and then those that docs/install.md
// adds for the policy forward.
func TestTheControllerTellsOfADeployThatCannotComeBack(t *testing.T) {
	v := alone(t)
	const starter = "ANN" // people are found whatever the case
	in := newInbox(t, starter)
	flags := slices.Concat(in.flags, pendingFlags)
	d, other := deployOn(v, "deploy-watch"), deployOn(v, "deploy-residue")
	other.leavesResidue()
	d.controller = v.control(flags...)
	d.nothingIsAmiss()

	g := d.hangs("--timeout", "10s", "--started-by", "ann", "--job-url", "https://ci.example/7")
	d.metricIs(`tidemark_release_unreadable{namespace="deploy-watch",release="torn"}`, 1) // below: what cannot be read is there too
	d.pendingIs("live")
	id := d.lease().Labels[v1.LabelDeploy]
	d.killedWhole(g)
	told := in.gets(d.scene, "checkout", "TidemarkReleaseAbandoned", "firing")
	if want := "tidemark/lab/release/deploy-watch/checkout/abandoned/" + id; told.To != starter || told.Key != want || told.Severity != "page" || told.Fact("started by") != "ann" || told.Fact("job") != "https://ci.example/7" {
		t.Errorf("the page is %+v, want the key %s", told, want)
	}
	d.pendingIs("abandoned")
	d.tells("secret/sh.helm.release.v1.checkout.v2", "ReleaseNotSettled", "its timeout of 10s is past")
	if !strings.Contains(about(d.controller.Log(), "abandoned"), "deploy-watch/checkout") {
		t.Error("the log does not tell of it")
	}
	d.tells("secret/sh.helm.release.v1.torn.v1", "ReleaseNotSettled", "secret/sh.helm.release.v1.torn.v1 cannot be read")
	d.tells("namespace/deploy-watch", "ReleaseNotSettled", "record secret/sh.helm.release.v1.odd.v1 ")
	if got := d.statuses(); got != "1 deployed, 2 pending-upgrade" {
		t.Errorf("policy report: the revisions are %s", got)
	}
	d.untold(g, in)
	d.must(d.controller.Stop())

	labtest.Apply(t, v.lab, forwardRights(t))
	before := d.kubectl("get", "deployments,replicasets", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	d.controller = v.control(slices.Concat(flags, []string{"--release-policy=forward"})...)
	ended := in.gets(d.scene, "checkout", "TidemarkReleaseAbandoned", "resolved")
	in.gets(d.scene, "checkout", "TidemarkReleaseAbandoned", "firing") // one for both controllers
	if ended.Key != told.Key || d.statuses() != "1 deployed, 2 failed" {
		t.Errorf("ended under %s; the revisions are %s", ended.Key, d.statuses())
	}
	d.tells("secret/sh.helm.release.v1.checkout.v2", "ReleaseRecovered", "revision 2 was marked failed")
	d.metricIs(`tidemark_release_recoveries_total{result="done"}`, 1)
	if after := d.kubectl("get", "deployments,replicasets", "-o", "jsonpath={.items[*].metadata.resourceVersion}"); after != before {
		t.Errorf("workloads were at %s and are at %s", before, after)
	}
	d.untold(g, in)
	_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--set", "release=3")
	d.must(err)

	for _, name := range []string{"torn", "odd"} {
		if got := in.of("TidemarkReleasePending", d.Namespace, name, "firing"); len(got) != 1 || got[0].To != scenario.Everybody || !strings.Contains(got[0].Fact("why"), "sh.helm.release.v1."+name+".v1") {
			t.Errorf("of record %s the fallback got %+v", name, got)
		}
	}
	if text := in.text() + other.kubectl("get", "events", "-o", "name"); strings.Contains(text, "deploy-residue") || strings.Contains(text, "releasenotsettled") {
		t.Errorf("the residue was told of: %s", text)
	}
}

// leavesResidue leaves a dead pending revision below a deployed one.
func (d *deployed) leavesResidue() {
	d.t.Helper()
	c, err := d.Lab.HelmCommand(d.t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--wait", "--set", "release=2,bootDelay=1h")
	d.must(err)
	d.must(d.CutOff(d.t.Context(), c))
	_, _, err = d.Lab.Helm(d.t.Context(), "rollback", "checkout", "1", "-n", d.Namespace)
	d.must(err)
	if got := d.statuses(); got != "1 superseded, 2 pending-upgrade, 3 deployed" {
		d.t.Fatalf("the revisions are %s", got)
	}
}

// nothingIsAmiss waits until the controller has looked at the releases, and lets records follow that cannot be read: one whose
// payload is torn off, one whose labels tell no revision.
func (d *deployed) nothingIsAmiss() {
	d.t.Helper()
	d.eventually("people to be told of what holds from now on", d.controllerHasLooked)
	d.apply(tornRecord("torn", "1") + tornRecord("odd", "one"))
}

// tornRecord is the manifest of Helm's record of a pending revision, of whose payload only the beginning is there.
func tornRecord(release, version string) string {
	payload := base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255, 170})
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.%s.v1, labels: {owner: helm, name: %s, version: %q, status: pending-install}}
type: helm.sh/release.v1
stringData: {release: %s}
`, release, release, version, payload)
}

// controllerHasLooked is an error until the notifications know what held at the start.
func (d *deployed) controllerHasLooked() error { return scenario.ReleasesSeen(d.t.Context(), d.Lab) }

// pendingIs waits until the metric of the pending release has the state.
func (d *deployed) pendingIs(state string) {
	d.t.Helper()
	series := fmt.Sprintf(`tidemark_release_pending_seconds{namespace=%q,operation="upgrade",release="checkout",state=%q}`, d.Namespace, state)
	d.eventually(series+" to tell an age", func() error {
		age, found, err := d.controller.Metric(d.t.Context(), series)
		if err == nil && (!found || age <= 0 || age > 300) {
			err = fmt.Errorf("found %t, %v", found, age)
		}
		return err
	})
}

// killedWhole kills a guard and its helm as the loss of their machine would.
func (d *deployed) killedWhole(g *guarded) {
	d.t.Helper()
	send(d.t, syscall.SIGKILL, g.Process.Pid, helmOf(d.t, g))
	g.ended(d.t)
}

// forwardRights are the rights that docs/install.md adds for the policy forward.
func forwardRights(t *testing.T) string {
	t.Helper()
	root, err := scenario.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "name: tidemark-release-forward") {
			return block[1]
		}
	}
	t.Fatal("docs/install.md has no rights for the policy forward")
	return ""
}
