package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// soon is a clean-up that keeps one snapshot of each source and waits for hardly anything, with further flags.
func soon(flags ...string) []string {
	return append([]string{"gc", "--history", "1", "--min-age", "1s"}, flags...)
}

// snapshotted makes a ConfigMap with so many snapshots, named after it: "pricing-1" is the oldest.
func (s *scene) snapshotted(source string, n int) {
	s.t.Helper()
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = s.Namespace, source
	s.must(s.API.Create(s.t.Context(), cm))
	for i := range n {
		cm.Data = map[string]string{"MODE": fmt.Sprint(i + 1)}
		s.must(s.API.Create(s.t.Context(), snapshot.OfConfigMap(cm, fmt.Sprintf("%s-%d", source, i+1), snapshot.Provenance{
			Source: workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: source}, Revision: int64(i + 1), Time: time.Now(),
		})))
	}
}

// gc runs clean-up in the namespace, and returns what became of each object: "keep used: used by pod/x".
func (s *scene) gc(args ...string) map[string]string {
	s.t.Helper()
	out, err := s.Tidemark(s.t.Context(), append(args, "-o", "json")...)
	s.must(err)
	return s.outcomes(out)
}

func (s *scene) outcomes(document string) map[string]string {
	s.t.Helper()
	c := v1.Cleanup{}
	s.must(json.Unmarshal([]byte(document), &c))
	out := map[string]string{}
	for _, item := range c.Items {
		name := item.Object[strings.LastIndex(item.Object, "/")+1:]
		out[name] = fmt.Sprintf("%s %s: %s%s", item.Action, item.Reason, item.Detail, item.Problem)
		if item.Action != "keep" && item.Done == c.DryRun {
			s.t.Errorf("%s: done %t, as a dry run %t", item.Object, item.Done, c.DryRun)
		}
	}
	return out
}

// becomes runs clean-up until what becomes of the object begins so.
func (s *scene) becomes(name, want string, args ...string) {
	s.t.Helper()
	s.eventually(name+" to be "+want, func() error {
		if got := s.gc(args...)[name]; !strings.HasPrefix(got, want) {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// there reports whether a snapshot is there.
func (s *scene) there(name string) bool {
	s.t.Helper()
	_, there := s.mark(name)
	return there
}

// mark is the mark of condemnation on a snapshot; there says whether the snapshot is.
func (s *scene) mark(name string) (mark string, there bool) {
	s.t.Helper()
	cm := &corev1.ConfigMap{}
	err := s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return "", false
	}
	s.must(err)
	return cm.Annotations[v1.AnnotationCondemned], true
}

// pinsTo is the annotations of a pod template that is pinned to the older of two snapshots.
func pinsTo(source string) string { return pinsToRevision(source, 1) }

func pinsToRevision(source string, n int) string {
	return fmt.Sprintf("{%s: configmap/%s=%s-%d}", v1.AnnotationPins, source, source, n)
}

const idle = "containers: [{name: app, image: tidemark-sample}]"

// usersOfSnapshots are workloads without pods, but for one, each of which uses the older snapshot of its own source.
var usersOfSnapshots = `
apiVersion: v1
kind: Pod
metadata: {name: single, annotations: ` + pinsTo("by-pod") + `}
spec: {nodeSelector: {nowhere: "yes"}, ` + idle + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rolled}
spec:
  replicas: 0
  selector: {matchLabels: {app: rolled}}
  template: {metadata: {labels: {app: rolled}, annotations: ` + pinsTo("by-replicaset") + `}, spec: {` + idle + `}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: rolled}
spec:
  replicas: 0
  selector: {matchLabels: {app: rolled-set}}
  template: {metadata: {labels: {app: rolled-set}, annotations: ` + pinsTo("by-controllerrevision") + `}, spec: {` + idle + `}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stopped}
spec:
  paused: true
  replicas: 0
  selector: {matchLabels: {app: stopped}}
  template: {metadata: {labels: {app: stopped}, annotations: ` + pinsTo("by-deployment") + `}, spec: {` + idle + `}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: manual}
spec:
  selector: {matchLabels: {app: manual}}
  template:
    metadata: {labels: {app: manual}}
    spec: {nodeSelector: {nowhere: "yes"}, ` + idle + `, volumes: [{name: v, projected: {sources: [{configMap: {name: by-daemonset-1}}]}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  suspend: true
  template: {metadata: {annotations: ` + pinsTo("by-job") + `}, spec: {restartPolicy: Never, ` + idle + `}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 0 29 2 *"
  suspend: true
  jobTemplate: {spec: {template: {metadata: {annotations: ` + pinsTo("by-cronjob") + `}, spec: {restartPolicy: Never, ` + idle + `}}}}
---
apiVersion: example.tidemark.dev/v1
kind: Machines
metadata: {name: fleet}
spec: {machine: {template: {metadata: {annotations: ` + pinsTo("by-machines") + `}, spec: {` + idle + `}}}}
`

// usedBy is what the reason to keep the older snapshot of each source names.
var usedBy = map[string]string{
	"by-pod": "pod/single", "by-replicaset": "replicaset/rolled-", "by-controllerrevision": "controllerrevision/rolled-", "by-deployment": "deployment/stopped",
	"by-daemonset": "daemonset/manual", "by-job": "job/once", "by-cronjob": "cronjob/nightly", "by-machines": "machines/fleet",
}

func TestCleanupKeepsWhatIsUsedAndRemovesTheRestInTwoRuns(t *testing.T) {
	v := alone(t)
	v.serveMachines()
	s := v.open("gc-uses", "")
	kinds := soon(machinesKind)
	for source := range usedBy {
		s.snapshotted(source, 2)
	}
	s.snapshotted("unused", 3)
	s.apply(usersOfSnapshots)
	// A release later the older revisions are all that names the older snapshots.
	for _, object := range []string{"deployment/rolled", "statefulset/rolled"} {
		s.revisionsAre(object, 1)
		source := map[string]string{"deployment/rolled": "by-replicaset", "statefulset/rolled": "by-controllerrevision"}[object]
		s.kubectl("patch", object, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:"configmap/%s=%s-2"}}}}}`, v1.AnnotationPins, source, source))
		s.revisionsAre(object, 2)
	}

	s.becomes("unused-1", "condemn superseded", soon(machinesKind, "--dry-run")...)
	if mark, _ := s.mark("unused-1"); mark != "" {
		t.Errorf("a dry run marked it: %s", mark)
	}
	first := s.gc(kinds...)
	for name, got := range first {
		source, n := name[:len(name)-2], name[len(name)-1:]
		want := "keep recent: among the last 1 of configmap/" + source
		switch {
		case source == "unused" && n != "3":
			want = "condemn superseded: nothing uses it"
		case source == "unused":
		case n == "1" || source == "by-replicaset" || source == "by-controllerrevision":
			want = "keep used: used by"
		}
		if !strings.HasPrefix(got, want) || n == "1" && !strings.Contains(got, usedBy[source]) {
			t.Errorf("%s: %q, want %q and %q", name, got, want, usedBy[source])
		}
	}
	s.becomes("unused-1", "delete superseded", kinds...)
	for name := range first {
		if _, there := s.mark(name); there != (name != "unused-1" && name != "unused-2") {
			t.Errorf("%s is there: %t", name, there)
		}
	}

	s.usedAgain(kinds)
}

// usedAgain takes the only use of a snapshot away, and gives it back when the snapshot is condemned.
func (s *scene) usedAgain(gc []string) {
	s.t.Helper()
	s.kubectl("delete", "cronjob", "nightly")
	s.becomes("by-cronjob-1", "condemn superseded", gc...)
	s.apply(usersOfSnapshots)
	s.becomes("by-cronjob-1", "pardon used", gc...)
	if mark, there := s.mark("by-cronjob-1"); mark != "" || !there {
		s.t.Errorf("the snapshot that is used again is there: %t, with the mark %q", there, mark)
	}
}

func TestCleanupRemovesAllSnapshotsOfWhatIsGoneWithItsUsers(t *testing.T) {
	s := alone(t).open("gc-gone", "")
	s.snapshotted("pricing", 3)
	s.snapshotted("rules", 3)
	s.kubectl("delete", "configmap", "pricing")

	s.becomes("pricing-3", "delete orphaned", soon()...)
	for _, name := range []string{"pricing-1", "pricing-2", "pricing-3"} { // in the same run, or the next when this one took longer than an age
		s.eventually(name+" to go", func() error {
			if s.does(strings.Join(soon(), " ")); s.there(name) {
				return errors.New("it is there")
			}
			return nil
		})
	}
	if !s.there("rules-3") {
		t.Error("the newest snapshot of what is applied is gone")
	}
}

// janitor may do all that clean-up needs in its namespace, but for what is taken out.
const janitor = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: janitor}
rules:
- {apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, patch, delete]}
- {apiGroups: [""], resources: [pods, replicationcontrollers, serviceaccounts, resourcequotas], verbs: [list]}
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
- {apiGroups: [apps], resources: [deployments, statefulsets, daemonsets, replicasets, controllerrevisions], verbs: [list]}
- {apiGroups: [batch], resources: [jobs, cronjobs], verbs: [list]}
- {apiGroups: [argoproj.io], resources: [rollouts], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: janitor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: janitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: janitor}]
`

func TestCleanupWithoutARightRemovesNothingAndNamesIt(t *testing.T) {
	s := alone(t).open("gc-rights", "")
	s.snapshotted("pricing", 2)
	asJanitor := soon("--as", "janitor")
	for without, want := range map[string]string{
		"jobs, ":                  "missing the right to list jobs in namespace gc-rights",
		"pods, ":                  "missing the right to list pods in namespace gc-rights",
		", controllerrevisions":   "missing the right to list controllerrevisions in namespace gc-rights",
		", secrets":               "missing the right to list secrets in namespace gc-rights",
		", patch":                 "missing the right to patch configmaps in namespace gc-rights",
		"replicationcontrollers,": "missing the right to list replicationcontrollers",
	} {
		s.apply(strings.Replace(janitor, without, "", 1))
		s.eventually("a message that has "+want, func() error {
			_, err := s.Tidemark(t.Context(), asJanitor...)
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("it says %w", err)
			}
			return nil
		})
	}
	if mark, there := s.mark("pricing-1"); mark != "" || !there {
		t.Errorf("the snapshot is there: %t, marked %q", there, mark)
	}
	s.apply(janitor)
	s.becomes("pricing-1", "delete superseded", asJanitor...)
}

func TestCleanupLeavesAPausedNamespaceAlone(t *testing.T) {
	s := alone(t).open("gc-paused", "")
	s.snapshotted("pricing", 2)
	s.becomes("pricing-1", "condemn superseded", soon("--dry-run")...)
	s.tidemark("pause", "-n", s.Namespace, "--reason", "incident 4711")

	if got := s.gcLeft(); !strings.Contains(got, "paused in the namespace") || !strings.Contains(got, "incident 4711") {
		t.Errorf("it is %q", got)
	}
	if mark, _ := s.mark("pricing-1"); mark != "" {
		t.Errorf("it is marked %s", mark)
	}
	s.tidemark("resume", "-n", s.Namespace)
	s.becomes("pricing-1", "condemn superseded", soon()...)
}

// gcLeft runs clean-up and returns why it left the first snapshot.
func (s *scene) gcLeft() string {
	s.t.Helper()
	out, err := s.Tidemark(s.t.Context(), soon("-o", "json")...)
	s.must(err)
	c := v1.Cleanup{}
	s.must(json.Unmarshal([]byte(out), &c))
	for _, item := range c.Items {
		if strings.HasSuffix(item.Object, "-1") {
			return item.Problem
		}
	}
	return "not there"
}

func TestCleanupWarnsOfAQuotaThatIsNearlyFull(t *testing.T) {
	s := alone(t).open("gc-quota", "")
	s.snapshotted("pricing", 9)
	s.apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: objects}
spec: {hard: {count/configmaps: "12"}}
`)
	s.eventually("a warning of the quota", func() error {
		out, err := s.Tidemark(t.Context(), soon("--dry-run", "-o", "json")...)
		s.must(err)
		c := v1.Cleanup{}
		s.must(json.Unmarshal([]byte(out), &c))
		// With the source, and the trust bundle that every namespace has.
		want := []v1.CleanupQuota{{Namespace: s.Namespace, Name: "objects", Resource: "count/configmaps", Used: 11, Hard: 12}}
		if diff := cmp.Diff(want, c.Quotas); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestCleanupOfAHelmReleaseKeepsItsLastRevisionsAndWhatIsUsed(t *testing.T) {
	s := alone(t).open("gc-helm", "")
	for _, family := range []string{"app", "app-two"} {
		for i := range 12 {
			s.apply(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: %s-config-%d
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: %s, meta.helm.sh/release-namespace: gc-helm, helm.sh/resource-policy: keep}
`, family, i+1, family))
		}
	}
	s.apply(program("deployment/app", 0, sample+"envFrom: [{configMapRef: {name: app-config-2}}]\n"))
	helm := []string{"gc", "--helm-release", "app", "--history", "5"}

	dry := s.gc(append(helm, "--dry-run")...)
	done := s.gc(helm...)
	if diff := cmp.Diff(dry, done); diff != "" {
		t.Errorf("a dry run says something else (-dry +done):\n%s", diff)
	}
	for i := 1; i <= 12; i++ {
		for family, want := range map[string]bool{"app": i >= 8 || i == 2, "app-two": true} {
			name := fmt.Sprintf("%s-config-%d", family, i)
			if _, there := s.mark(name); there != want {
				t.Errorf("%s is there: %t, want %t: %s", name, there, want, done[name])
			}
		}
	}
	if want := "used by the template of deployment/app"; !strings.HasSuffix(done["app-config-2"], want) {
		t.Errorf("app-config-2: %q, want %q", done["app-config-2"], want)
	}
	if again := s.gc(helm...); len(again) != 6 {
		t.Errorf("another run finds %v", again)
	}
}

func TestAStampThatComesBetweenTheListingAndTheDeletionKeepsItsSnapshot(t *testing.T) {
	s := alone(t).open("gc-race", "")
	s.apply(webConfig)
	copier := &cluster.Copier{Client: s.API}
	read := func() cluster.Source {
		source, err := copier.Read(t.Context(), workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: "web"})
		s.must(err)
		return source
	}
	stamp := func(source cluster.Source, revision int64) string {
		name, err := copier.Copy(t.Context(), source, revision, time.Now())
		s.must(err)
		return name
	}
	before := read()
	first := stamp(before, 1)
	s.set("web", "MODE", "two")
	second := stamp(read(), 2)
	s.becomes(first, "condemn superseded", soon()...)

	raced := 0
	c := cleanup.Round{
		Now: time.Now, Namespace: s.Namespace, System: scenario.SystemNamespace, Retention: snapshot.Retention{History: 1, MinAge: time.Second},
		Client: interceptor.NewClient(s.API, interceptor.Funcs{
			Delete: func(ctx context.Context, api ctrlclient.WithWatch, obj ctrlclient.Object, opts ...ctrlclient.DeleteOption) error {
				raced++
				if again := stamp(before, 3); again != first {
					t.Errorf("the stamp names %s, before it was %s", again, first)
				}
				return api.Delete(ctx, obj, opts...)
			},
		}),
	}
	var left string
	s.eventually("a deletion", func() error {
		cleaned, err := c.Run(t.Context())
		s.must(err)
		for _, item := range cleaned.Items {
			if item.Object.Name == first {
				left = item.Left
			}
		}
		if raced == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	if mark, there := s.mark(first); mark != "" || !there || left == "" {
		t.Errorf("the snapshot is there: %t, marked %q, left because %q", there, mark, left)
	}
	s.becomes(first, "keep recent", soon()...)
	s.eventually("the one that is now the older to go in its place", func() error {
		s.gc(soon()...)
		if _, there := s.mark(second); there {
			return errors.New("it is there")
		}
		return nil
	})
}

func TestANamespaceWithSnapshotsGoesAway(t *testing.T) {
	v := alone(t)
	s := v.open("gc-ending", "")
	s.snapshotted("pricing", 3)
	s.becomes("pricing-1", "condemn superseded", soon()...)
	second, err := scenario.Open(t.Context(), v.lab, "gc-ending-too", "")
	s.must(err)
	e := &scene{Scene: second, t: t}
	e.snapshotted("pricing", 3)
	e.kubectl("delete", "namespace", e.Namespace, "--timeout=60s")
	if out := e.gc(soon()...); len(out) > 0 {
		t.Errorf("it finds %v", out)
	}
	labtest.Kubectl(t, v.lab, "get", "namespace", s.Namespace)
}

func TestCleanupKeepsWhatACanaryAndItsUndoNeed(t *testing.T) {
	turn(t)
	s := openRollouts(t, "gc-rollouts")
	const pods = 2
	// Each release is an image and then its configuration, one step after the other: whether an undo finds the one or the other
	// alone in between must not be left to the time that they take.
	release := func(n int, mode, before string, running client.RolloutState) string {
		s.apply(rolloutOf(pods, canarySteps, fmt.Sprint("web:", n), richTemplate))
		between := s.at(client.RolloutPaused, running)
		s.set("web", "MODE", mode)
		pin := s.pinned(web, "web", before)
		s.at(client.RolloutPaused, between)
		return pin
	}
	one, first := s.begins(pods, canarySteps)
	second := release(2, "two", first, one)

	// The canary's, and the one of the pods beside it.
	s.becomes(first, "keep used", soon()...)
	s.becomes(second, "keep used", soon()...)
	s.must(s.rollouts.Abort(t.Context(), "web"))
	s.is(client.RolloutDegraded)
	s.becomes(first, "keep used", soon()...)
	two := s.promoted()
	third := release(3, "three", second, two)
	three := s.promoted()
	s.becomes(first, "keep used", soon()...) // an undo may go back as far

	// Argo deletes the oldest revision, and nothing can go back to it any more.
	s.kubectl("patch", web, "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":1}}`)
	s.eventually("the first copy to go", func() error {
		s.gc(soon()...)
		if s.there(first) {
			return errors.New(first + " is there")
		}
		return nil
	})
	s.must(s.rollouts.Undo(t.Context(), "web", 0)) // the new image with the second copy, which was a revision in between
	s.at(client.RolloutPaused, three)
	s.promoted()
	s.loads(mode, map[string]int{"two": pods})
	for _, name := range []string{second, third} {
		if !s.there(name) {
			t.Errorf("%s is gone", name)
		}
	}
}
