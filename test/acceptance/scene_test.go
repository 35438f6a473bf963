package acceptance

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// scene is a scenario's namespace whose verbs fail the test.
type scene struct {
	*scenario.Scene
	t *testing.T
	// controller is the one that works on the scene; nil without.
	controller *scenario.Controller
}

func (s *scene) report(ctx context.Context) {
	for _, args := range [][]string{
		{"get", "pods,deployments,replicasets,statefulsets,daemonsets,controllerrevisions,cronjobs", "-o", "wide"},
		{"get", "events.events.k8s.io", "--sort-by=.metadata.creationTimestamp"},
	} {
		out, err := s.Kubectl(ctx, args...)
		if err != nil {
			s.t.Log(err)
			continue
		}
		s.t.Logf("kubectl -n %s %s\n%s", s.Namespace, strings.Join(args, " "), tail(out, 25))
	}
	if s.controller != nil {
		s.t.Logf("of the controller's log\n%s", tail(about(s.controller.Log(), s.Namespace), 25))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// about keeps the lines that mention the word.
func about(text, word string) string {
	return filtered(text, func(line string) bool { return strings.Contains(line, word) })
}

// unless keeps the lines that do not mention the words.
func unless(text, words string) string {
	return filtered(text, func(line string) bool { return !strings.Contains(line, words) })
}

func filtered(text string, keep func(line string) bool) string {
	var kept []string
	for line := range strings.Lines(text) {
		if keep(line) {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "\n")
}

// must fails the test on an error of a verb.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) apply(manifest string) { s.t.Helper(); s.must(s.Apply(s.t.Context(), manifest)) }

func (s *scene) set(configMap, key, value string) {
	s.t.Helper()
	s.must(s.Set(s.t.Context(), configMap, key, value))
}

func (s *scene) setSecret(secret, key, value string) {
	s.t.Helper()
	s.must(s.SetSecret(s.t.Context(), secret, key, value))
}

func (s *scene) kubectl(args ...string) string {
	s.t.Helper()
	out, err := s.Kubectl(s.t.Context(), args...)
	s.must(err)
	return out
}

func (s *scene) eventually(what string, check func() error) {
	s.t.Helper()
	labtest.Eventually(s.t, what, check)
}

// rolledOut waits until kubectl says that the workloads' rollouts are complete.
func (s *scene) rolledOut(workloads ...string) {
	s.t.Helper()
	for _, w := range workloads {
		s.must(s.RolledOut(s.t.Context(), w))
	}
}

// loads waits until the running containers, counted by what they loaded, are these.
func (s *scene) loads(what func(wire.Start) string, want map[string]int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the running containers to be %v by what they loaded", want), func() error {
		got, err := s.Loaded(s.t.Context(), what)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("they are %v", got)
		}
		return err
	})
}

// kinds by the name that kubectl knows them under.
var kinds = map[string]schema.GroupVersionKind{
	"deployment":  {Group: "apps", Version: "v1", Kind: "Deployment"},
	"statefulset": {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"daemonset":   {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	"cronjob":     {Group: "batch", Version: "v1", Kind: "CronJob"},
	"configmap":   {Version: "v1", Kind: "ConfigMap"},
	"secret":      {Version: "v1", Kind: "Secret"},
	"rollout":     {Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
	"machines":    {Group: "example.tidemark.dev", Version: "v1", Kind: "Machines"},
}

// get reads an object, written as kind/name.
func (s *scene) get(object string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.read(object)
	s.must(err)
	return u
}

func (s *scene) read(object string) (*unstructured.Unstructured, error) {
	kind, name, _ := strings.Cut(object, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kinds[kind])
	return u, s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: name}, u)
}

// templatePath is where the kind has its pod template.
func templatePath(object string) []string {
	switch kind, _, _ := strings.Cut(object, "/"); kind {
	case "cronjob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case "machines":
		return []string{"spec", "machine", "template"}
	}
	return []string{"spec", "template"}
}

// stamp reads the stamp on an object's pod template, "" when there is none.
func stampOn(u *unstructured.Unstructured, path []string) string {
	stamp, _, _ := unstructured.NestedString(u.Object, append(path, "metadata", "annotations", v1.AnnotationConfigHash)...)
	return stamp
}

func (s *scene) stamp(object string) string {
	s.t.Helper()
	return stampOn(s.get(object), templatePath(object))
}

// known waits until Tidemark has taken note of the workloads, after which a change of configuration is one.
func (s *scene) known(objects ...string) {
	s.t.Helper()
	for _, o := range objects {
		s.eventually("Tidemark to take note of "+o, func() error {
			u, err := s.read(o)
			if err == nil && u.GetAnnotations()[v1.AnnotationRecord] == "" {
				err = fmt.Errorf("no record on it")
			}
			return err
		})
	}
}

// stampedAgain waits until the workload carries another stamp than the one given, and returns it.
func (s *scene) stampedAgain(object, before string) string {
	s.t.Helper()
	var stamp string
	s.eventually("a new stamp on "+object, func() error {
		if stamp = s.stamp(object); stamp == before {
			return fmt.Errorf("it is still %q", stamp)
		}
		return nil
	})
	return stamp
}

// revisions counts what a workload's own controller keeps of its templates: ReplicaSets or ControllerRevisions.
func (s *scene) revisions(object string) int {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevisionList"})
	if strings.HasPrefix(object, "deployment/") {
		list.SetKind("ReplicaSetList")
	}
	s.must(s.API.List(s.t.Context(), list, ctrlclient.InNamespace(s.Namespace)))
	owner, n := s.get(object).GetUID(), 0
	for i := range list.Items {
		for _, ref := range list.Items[i].GetOwnerReferences() {
			if ref.UID == owner {
				n++
			}
		}
	}
	return n
}

// revisionsAre waits until a workload has so many revisions. As each new template gives one, more than that would be found.
func (s *scene) revisionsAre(object string, want int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d revisions of %s", want, object), func() error {
		return labtest.Equal("the number of revisions", s.revisions(object), want)
	})
}

// caughtUp waits until Tidemark has acted on a change that was made after everything before this call, so that what it has
// not done by then it will not do. The change is to a workload without pods.
func (s *scene) caughtUp() {
	s.t.Helper()
	const name = "sentinel"
	if _, err := s.read("deployment/" + name); apierrors.IsNotFound(err) {
		s.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: sentinel}
data: {at: start}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sentinel, annotations: {` + v1.AnnotationMode + `: roll}}
spec:
  replicas: 0
  selector: {matchLabels: {app: sentinel}}
  template:
    metadata: {labels: {app: sentinel}}
    spec:
      containers: [{name: app, image: tidemark-sample, envFrom: [{configMapRef: {name: sentinel}}]}]
`)
		s.known("deployment/" + name)
	}
	before := s.stamp("deployment/" + name)
	s.set(name, "at", time.Now().String())
	s.stampedAgain("deployment/"+name, before)
}

// events returns the notes of the events about an object with a reason.
func (s *scene) events(object, reason string) []string {
	s.t.Helper()
	list := &corev1.EventList{}
	s.must(s.API.List(s.t.Context(), list, ctrlclient.InNamespace(s.Namespace)))
	kind, name, _ := strings.Cut(object, "/")
	var notes []string
	for _, e := range list.Items {
		if strings.EqualFold(e.InvolvedObject.Kind, kind) && e.InvolvedObject.Name == name && e.Reason == reason {
			notes = append(notes, e.Message)
		}
	}
	return notes
}

// tells waits until an event about the object with the reason contains the text.
func (s *scene) tells(object, reason, text string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("an event %s about %s that says %q", reason, object, text), func() error {
		notes := s.events(object, reason)
		for _, note := range notes {
			if strings.Contains(note, text) {
				return nil
			}
		}
		return fmt.Errorf("events with that reason: %q", notes)
	})
}
