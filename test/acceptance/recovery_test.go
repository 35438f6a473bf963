package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// hookKept is what `kubectl get jobs -o name` prints once a hook of the chart has run.
const hookKept = "job.batch/checkout-migrate\n"

func TestARecoveryRunsTheHooksOfHelmUnlessItIsToldNot(t *testing.T) {
	for flag, want := range map[string]string{"": hookKept, "--no-hooks": ""} {
		flags := " " + flag
		t.Run("rollback"+flag, func(t *testing.T) {
			d := openDeploys(t, "hooks-rollback"+strings.Trim(flags, " -"), "secret")
			d.installed("--set", "hook=pre-rollback")
			d.killed("upgrade")
			d.does("releases recover checkout --policy rollback"+flags, "rolled back to revision 1")
			if got := d.kubectl("get", "jobs", "-o", "name"); got != want {
				t.Errorf("the jobs are %q, want %q", got, want)
			}
		})
		t.Run("uninstall"+flag, func(t *testing.T) {
			d := openDeploys(t, "hooks-uninstall"+strings.Trim(flags, " -"), "secret")
			d.killed("install", "--set", "hook=pre-delete")
			d.does("releases recover checkout --policy uninstall"+flags, "uninstalled")
			if got := d.kubectl("get", "jobs", "-o", "name"); got != want {
				t.Errorf("the jobs are %q, want %q", got, want)
			}
		})
	}
}

// revisionsLeft counts the records of the release.
func (d *deploys) revisionsLeft() int {
	d.t.Helper()
	return len(strings.Fields(d.kubectl("get", "secrets", "-l", "owner=helm", "-o", "jsonpath={.items[*].metadata.name}")))
}

func TestARecoveryLeavesTheHistoryThatHelmWould(t *testing.T) {
	d := openDeploys(t, "history", "secret")
	d.installed()
	for range 3 {
		d.must(d.helm("upgrade", service, d.chart))
	}
	d.killed("upgrade")
	d.does("releases recover checkout --policy rollback --history-max 4")
	if got := d.revisionsLeft(); got != 4 {
		t.Errorf("--history-max 4 leaves %d revisions", got)
	}
	d.killed("upgrade")
	environment := func(name string) string { return map[string]string{"HELM_MAX_HISTORY": "3"}[name] }
	if got := d.callIn(environment, "releases", "recover", service, "--policy", "rollback"); got.code != 0 {
		t.Fatalf("exit status %d: %s%s", got.code, got.out, got.errOut)
	}
	if got := d.revisionsLeft(); got != 3 {
		t.Errorf("HELM_MAX_HISTORY=3 leaves %d revisions", got)
	}
}

// TestAGuardLeavesTheHistoryThatItsHelmDoes recovers a release with more revisions than helm leaves by default, before an upgrade
// that leaves all.
func TestAGuardLeavesTheHistoryThatItsHelmDoes(t *testing.T) {
	d := openDeploys(t, "guarded-history", "secret")
	d.installed()
	for range 10 {
		d.must(d.helm("upgrade", service, d.chart, "--history-max=0"))
	}
	d.killed("upgrade", "--history-max=0")
	next, err := d.GuardCommand(t.Context(), short("--policy", "rollback", "--recover-unguarded-after", "1s"), "upgrade", service, d.chart, "--history-max=0")
	d.must(err)
	if out, err := next.CombinedOutput(); err != nil || !strings.Contains(string(out), "it is rolled back to revision 11") {
		t.Errorf("%v: %s", err, out)
	}
	if got := d.revisionsLeft(); got != 14 {
		t.Errorf("%d revisions are left, want the 11 of before, the killed one, its rollback and the upgrade", got)
	}
}

func TestAReleaseIsRecoveredByItsOwnWayToApply(t *testing.T) {
	d := openDeploys(t, "client-side", "secret")
	d.installed("--server-side=false")
	d.killed("upgrade", "--server-side=false")
	d.does("releases recover checkout --policy rollback --wait", "rolled back to revision 1")
	d.isWrittenByHelm(metav1.ManagedFieldsOperationUpdate)
	d.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=3"))
	d.isWrittenByHelm(metav1.ManagedFieldsOperationUpdate)
}

// isWrittenByHelm checks that the workload's spec is helm's alone, written in one way.
func (d *deploys) isWrittenByHelm(way metav1.ManagedFieldsOperationType) {
	d.t.Helper()
	written := 0
	for _, m := range d.get("deployment/" + service).GetManagedFields() {
		if m.Subresource != "" {
			continue
		}
		written++
		if m.Manager != "helm" || m.Operation != way {
			d.t.Errorf("the workload is written by %s of %s too, want helm's %s alone", m.Operation, m.Manager, way)
		}
	}
	if written == 0 {
		d.t.Error("nothing tells who wrote the workload")
	}
}

// TestAReleaseOfHelm3IsRecovered does so with records in the form in which Helm 3 writes them.
func TestAReleaseOfHelm3IsRecovered(t *testing.T) {
	for policy, want := range map[string]string{"forward": "deployed failed", "rollback": "superseded failed deployed"} {
		t.Run(policy, func(t *testing.T) {
			d := openDeploys(t, "helm3-"+policy, "secret")
			d.installed("--server-side=false") // Helm 3 knows no other way
			d.killed("upgrade")
			d.recordsAreHelm3s()
			d.does("releases checkout", "pending-upgrade", "unguarded")
			d.does("releases recover checkout --policy " + policy)
			d.historyIs(want)
			d.revisionsAre(want)
			d.isWrittenByHelm(metav1.ManagedFieldsOperationUpdate)
			d.must(d.helm("upgrade", service, d.chart, "--wait", "--set", "release=3"))
		})
	}
}

// recordsAreHelm3s rewrites the release's records to what Helm 3 writes: it notes no way to apply, and has an empty string where there
// is no time.
func (d *deploys) recordsAreHelm3s() {
	d.t.Helper()
	records := &corev1.SecretList{}
	d.must(d.API.List(d.t.Context(), records, ctrlclient.InNamespace(d.Namespace), ctrlclient.MatchingLabels{"owner": "helm"}))
	for i := range records.Items {
		record := &records.Items[i]
		packed, err := base64.StdEncoding.DecodeString(string(record.Data["release"]))
		d.must(err)
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		d.must(err)
		var payload map[string]any
		d.must(json.NewDecoder(unpacked).Decode(&payload))
		info, is := payload["info"].(map[string]any)
		if _, noted := payload["apply_method"]; !is || !noted {
			d.t.Fatalf("the record of Helm 4 has the members %v", slices.Collect(maps.Keys(payload)))
		}
		delete(payload, "apply_method")
		info["deleted"] = ""

		again := &bytes.Buffer{}
		pack, err := gzip.NewWriterLevel(again, gzip.BestCompression)
		d.must(err)
		d.must(json.NewEncoder(pack).Encode(payload))
		d.must(pack.Close())
		record.Data["release"] = []byte(base64.StdEncoding.EncodeToString(again.Bytes()))
		d.must(d.API.Update(d.t.Context(), record, ctrlclient.FieldOwner("helm")))
	}
}
