package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/report"
	"tidemark.dev/tidemark/internal/stamp"
)

// fakeCluster serves the objects of a YAML stream, but for what is forbidden: "VERB KIND". It fails the test when somebody writes.
func fakeCluster(t *testing.T, text string, forbidden ...string) *cluster.Connection {
	t.Helper()
	known := runtime.NewScheme() // of its own, for the fake client adds kinds to it
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(known)
	for _, document := range strings.Split(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetNamespace() == "" && u.GetKind() != "Namespace" {
			u.SetNamespace("shop")
		}
		builder.WithObjects(u)
	}
	may := func(c client.Client, verb string, obj any) error {
		o, is := obj.(interface{ GetObjectKind() apischema.ObjectKind })
		if !is {
			return nil
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if kind == "" {
			if typed, ok := obj.(client.Object); ok {
				gvk, _ := c.GroupVersionKindFor(typed)
				kind = gvk.Kind
			} else if list, ok := obj.(client.ObjectList); ok {
				gvk, _ := c.GroupVersionKindFor(list)
				kind = gvk.Kind
			}
		}
		if kind = strings.TrimSuffix(kind, "List"); slices.Contains(forbidden, verb+" "+kind) {
			return apierrors.NewForbidden(apischema.GroupResource{Resource: kind}, "", nil)
		}
		return nil
	}
	written := func() error { t.Error("something was written"); return nil }
	c := builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := may(c, "get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := may(c, "list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return written() },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return written() },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return written()
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return written() },
	}).Build()
	return cluster.ConnectionOf(c, func() time.Time { return now })
}

// replicaSet is a revision of deployment/pricing: its number, what its template is annotated with, and how many pods it has.
func replicaSet(number, annotations, pods string) string {
	return `apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: pricing-` + number + `
  labels: {app: pricing, pod-template-hash: h` + number + `}
  annotations: {deployment.kubernetes.io/revision: "` + number + `"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: pricing, uid: pricing-uid, controller: true}]
spec:
  replicas: ` + pods + `
  selector: {matchLabels: {app: pricing, pod-template-hash: h` + number + `}}
  template:
    metadata: {labels: {app: pricing, pod-template-hash: h` + number + `}, annotations: {` + annotations + `}}
    spec: {containers: [{name: app, image: "pricing:` + number + `", envFrom: [{configMapRef: {name: pricing}}, {secretRef: {name: door}}]}]}
status: {replicas: ` + pods + `}
---
`
}

func deploymentPricing(annotations, image string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: pricing, uid: pricing-uid, annotations: {deployment.kubernetes.io/revision: "4"}}
spec:
  selector: {matchLabels: {app: pricing}}
  template:
    metadata: {labels: {app: pricing}, annotations: {` + annotations + `}}
    spec: {containers: [{name: app, image: "pricing:` + image + `", envFrom: [{configMapRef: {name: pricing}}, {secretRef: {name: door}}]}]}
---
`
}

const (
	readsOld = "tidemark.dev/reads: DISCOUNT_RULES_PATH"
	readsNew = "tidemark.dev/reads: RULES_DISCOUNT_PATH"
	pinOne   = "tidemark.dev/pins: configmap/pricing=pricing-aaaaaaaaaa"
	pinGone  = "tidemark.dev/pins: configmap/pricing=pricing-zzzzzzzzzz"
)

// liveShop is a shop whose canary, revision 3, was forgotten: 2 reads its own copy, 1 one that is gone.
func liveShop() string {
	return `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pricing}
data: {DISCOUNT_RULES_PATH: /etc/rules, RULES_DISCOUNT_PATH: /etc/rules, LEVEL: info}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
data: {CODE: TUFSS0VS, OLD: TUFSS0VS}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: pricing-aaaaaaaaaa
  labels: {tidemark.dev/snapshot: "true"}
  annotations: {tidemark.dev/snapshot-of: configmap/pricing, tidemark.dev/snapshot-revision: "1"}
immutable: true
data: {DISCOUNT_RULES_PATH: /etc/rules}
---
` + replicaSet("1", readsOld+", "+pinGone, "0") + replicaSet("2", readsOld+", "+pinOne, "0") + replicaSet("3", readsOld, "1") +
		replicaSet("4", readsNew, "5") + deploymentPricing(readsNew, "4") + `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: report, uid: report-uid}
spec:
  selector: {matchLabels: {app: report}}
  template:
    metadata: {labels: {app: report}}
    spec: {containers: [{name: app, image: "report:1", env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: pricing, key: LEVEL}}}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unrelated, uid: unrelated-uid}
spec:
  selector: {matchLabels: {app: unrelated}}
  template:
    metadata: {labels: {app: unrelated}}
    spec: {containers: [{name: app, image: "unrelated:1", envFrom: [{configMapRef: {name: other}}]}]}`
}

// newRelease drops the old name, and a key that another workload reads.
func newRelease() string {
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: pricing}
data: {RULES_DISCOUNT_PATH: /etc/rules}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {CODE: MARKER}
---
` + deploymentPricing(readsNew, "5")
}

// checkLive checks against a cluster, and gives what it prints.
func checkLive(t *testing.T, c *cluster.Connection, given, mode string, format report.Format) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	options := &checkOptions{
		IOStreams: genericiooptions.IOStreams{Out: &o, ErrOut: &e}, output: format, now: now, mode: mode,
		checkInput: checkInput{
			source: render.Source{Files: []string{render.Stdin}, In: strings.NewReader(given)}, against: []string{againstLive}, namespace: "shop",
			kinds: manifestKinds(cluster.BuiltinKinds()), clusterKinds: cluster.BuiltinKinds(), defaultMode: stamp.Observe,
			connect: func() (*cluster.Connection, error) { return c, nil },
		},
	}
	err = options.run(t.Context())
	return o.String(), e.String(), err
}

func TestCheckAgainstTheClusterLooksAtEachRevision(t *testing.T) {
	out, errOut, err := checkLive(t, fakeCluster(t, liveShop()), newRelease(), "", report.Wide)
	if err != nil || errOut != "" {
		t.Fatalf("%v: %s", err, errOut)
	}
	golden(t, "check-live.wide", out)
	out, _, err = checkLive(t, fakeCluster(t, liveShop()), newRelease(), "", report.JSON)
	if err != nil || strings.Contains(out, "MARKER") {
		t.Errorf("%v: a Secret is shown: %s", err, out)
	}
}

func TestCheckAgainstTheClusterSaysWhatWillNotRoll(t *testing.T) {
	given := `apiVersion: v1
kind: ConfigMap
metadata: {name: pricing}
data: {DISCOUNT_RULES_PATH: /etc/rules, RULES_DISCOUNT_PATH: /etc/rules, LEVEL: debug}
`
	out, errOut, err := checkLive(t, fakeCluster(t, liveShop()), given, "", report.Text)
	if err != nil || errOut != "" || strings.Count(out, "unversioned-reference") != 2 {
		t.Errorf("%v: %s%s", err, errOut, out)
	}
	roll := strings.Replace(liveShop(), "{name: shop}", "{name: shop, labels: {tidemark.dev/mode: roll}}", 1)
	out, errOut, err = checkLive(t, fakeCluster(t, roll), given, "", report.Text)
	if err != nil || errOut != "" || !strings.Contains(out, "No findings in the standard input, compared with the cluster.") {
		t.Errorf("in mode roll: %v: %s%s", err, errOut, out)
	}
	// A template as it was applied differs by nothing but the API's defaults; one with another image rolls.
	for image, want := range map[string]int{"4": 1, "5": 0} {
		out, _, err := checkLive(t, fakeCluster(t, liveShop()), given+"---\n"+deploymentPricing(readsNew, image), "", report.Text)
		if err != nil || strings.Count(out, "deployment/shop/pricing  pricing") != 0 || strings.Count(out, "unversioned-reference\n  deployment/shop/pricing") != want {
			t.Errorf("image %s: %v: %s", image, err, out)
		}
	}
}

func TestCheckAgainstTheClusterKnowsNothingOfWhatItMayNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		forbidden   []string
		remark, row string
	}{
		"revisions": {
			[]string{"list ReplicaSet"}, "missing the right to list replicasets in namespace shop: revisions are unknown",
			"deployment/shop/pricing    the cluster           the standard input   unknown",
		},
		"Secrets": {
			[]string{"get Secret"}, "missing the right to get secrets in namespace shop: what revisions read of them is unknown",
			"deployment/shop/pricing    revision 4            the standard input   unknown",
		},
		"copies": {
			[]string{"get PartialObjectMetadata"}, "", "",
		},
		"workloads": {
			[]string{"list StatefulSet"}, "missing the right to list statefulsets in namespace shop: which of them use what is given is unknown", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := checkLive(t, fakeCluster(t, liveShop(), c.forbidden...), newRelease(), "", report.Wide)
			if err != nil || strings.Count(errOut, c.remark) != 1 && c.remark != "" {
				t.Errorf("%v: want one remark %q:\n%s", err, c.remark, errOut)
			}
			if squeezed(c.row) != "" && !strings.Contains(squeezed(out), squeezed(c.row)) {
				t.Errorf("want %q in:\n%s", c.row, out)
			}
		})
	}
}

// In the second step of a rename the present revision knows both names; one from before the first step may not.
func TestCheckAgainstTheClusterKnowsThatPastRevisionsKnewLess(t *testing.T) {
	shop := strings.NewReplacer(readsOld+", ", "", readsOld, "", readsNew, "").Replace(liveShop())
	given := strings.Replace(strings.Split(newRelease(), "---\n")[0], "{RULES", "{LEVEL: info, RULES", 1) + "---\n" + deploymentPricing("", "5")
	out, errOut, err := checkLive(t, fakeCluster(t, shop), given, "", report.Wide)
	if err != nil || strings.Count(out, "key-removed-while-read") != 1 || !strings.Contains(out, "pods of revision 3 may read it") {
		t.Errorf("%v: %s%s", err, errOut, out)
	}
}

// A file says what the program that is checked reads, and nothing of those that run.
func TestCheckAgainstTheClusterJudgesNoRevisionByAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	file(t, ".", "schema.json", `{"required": ["RULES_DISCOUNT_PATH"]}`)
	shop := strings.NewReplacer(readsOld, "tidemark.dev/config-schema: schema.json", readsNew, "tidemark.dev/config-schema: schema.json").Replace(liveShop())
	out, errOut, err := checkLive(t, fakeCluster(t, shop), newRelease(), "", report.Wide)
	if err != nil || !strings.Contains(out, "pods of revision 3 may read it") || strings.Count(errOut, "remark: schema.json is not known to be the schema of deployment/shop/pricing in the cluster") != 1 {
		t.Errorf("%v: %s%s", err, errOut, out)
	}
}

func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestCheckAgainstTheClusterOfNewWorkloadsComparesNothing(t *testing.T) {
	given := strings.ReplaceAll(newRelease(), "name: pricing", "name: fresh")
	out, errOut, err := checkLive(t, fakeCluster(t, liveShop()), strings.ReplaceAll(given, "name: door", "name: latch"), "", report.Wide)
	if err != nil || errOut != "" || !strings.Contains(out, "No findings") {
		t.Errorf("%v: %s%s", err, errOut, out)
	}
}

// That two Secrets are equal, or that one changes, is no part of what is said.
func TestCheckAgainstTheClusterTellsNothingOfSecrets(t *testing.T) {
	given := strings.Replace(newRelease(), "pricing:5", "pricing:4", 1)
	same, _, _ := checkLive(t, fakeCluster(t, liveShop()), given, "", report.JSON)
	other, _, _ := checkLive(t, fakeCluster(t, strings.ReplaceAll(liveShop(), "CODE: TUFSS0VS", "CODE: b3RoZXI=")), given, "", report.JSON)
	if diff := cmp.Diff(same, other); diff != "" || strings.Contains(same, "MARKER") {
		t.Error(diff)
	}
}

// Of an immutable Secret it would be told whether it is another one; of a ConfigMap it is, which past revisions have no part in.
func TestCheckAgainstTheClusterKnowsImmutableObjects(t *testing.T) {
	shop := strings.NewReplacer("metadata: {name: pricing}\ndata", "metadata: {name: pricing}\nimmutable: true\ndata", "metadata: {name: door}\n", "metadata: {name: door}\nimmutable: true\n").Replace(liveShop())
	given := strings.NewReplacer("metadata: {name: pricing}\ndata", "metadata: {name: pricing}\nimmutable: true\ndata", "metadata: {name: door}\n", "metadata: {name: door}\nimmutable: true\n").Replace(newRelease())
	out, _, err := checkLive(t, fakeCluster(t, shop), given, "", report.JSON)
	var r v1.CheckReport
	if err := errors.Join(err, json.Unmarshal([]byte(out), &r)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range r.Findings {
		if f.Rule == string(check.ImmutableChanged) {
			found = append(found, f.Object+" "+f.Why)
		}
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], "configmap/shop/pricing ") || strings.ContainsAny(found[0], "123") {
		t.Errorf("found %q", found)
	}
}

// A CronJob that is not given starts its next Job with the template that it has.
func TestCheckLiveConsidersCronJobs(t *testing.T) {
	t.Parallel()
	cronJob := func(name, annotations, container string) string {
		return `
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: ` + name + `, uid: ` + name + `-uid}
spec:
  schedule: "0 0 * * *"
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {` + annotations + `}}
        spec: {restartPolicy: Never, containers: [{name: app, image: "job:1", ` + container + `}]}`
	}
	const all = "envFrom: [{configMapRef: {name: pricing}}]"
	shop := liveShop() + cronJob("by-key", "", "env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: pricing, key: LEVEL}}}]") +
		cronJob("declared", readsOld, all) + cronJob("pinned", readsOld+", "+pinOne, all) + cronJob("aside", "", "envFrom: [{configMapRef: {name: other}}]")
	out, errOut, err := checkLive(t, fakeCluster(t, shop), newRelease(), "observe", report.JSON)
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	var r v1.CheckReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	for _, f := range r.Findings {
		rules[f.Workload+f.Object] = append(rules[f.Workload+f.Object], f.Rule)
	}
	outcomes := map[string][]string{}
	for _, c := range r.Matrix {
		if c.Revision == "the present template" {
			outcomes[c.Workload] = append(outcomes[c.Workload], c.Outcome)
		}
	}
	for name, want := range map[string]struct{ outcomes, rules string }{
		"by-key": {"[breaks]", "[key-missing key-removed-while-read]"}, "declared": {"[breaks]", "[key-removed-while-read]"}, "pinned": {"[never]", "[]"}, "aside": {"[]", "[]"},
	} {
		w := "cronjob/shop/" + name
		found := rules[w+"configmap/shop/pricing"]
		slices.Sort(found)
		if got := fmt.Sprint(outcomes[w]); got != want.outcomes || fmt.Sprint(found) != want.rules || len(rules[w]) > 0 {
			t.Errorf("%s: %s, found %v and %v", name, got, found, rules[w])
		}
	}
	if strings.Contains(strings.Join(r.Remarks, ""), "revisions") {
		t.Errorf("remarks: %q", r.Remarks)
	}
}
