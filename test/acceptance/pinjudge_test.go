package acceptance

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/wire"
)

// reads is what a container of the random steps read of what is versioned.
type reads struct{ mode, file, sub string }

// pinJudge holds every start in the lab's record against two things: what the copies hold that the pod's pins name, and what
// other containers of the same revision read.
type pinJudge struct {
	w *pinWorld
	// data are the contents of all copies that were ever there, by name.
	data map[string]map[string]string
	// pods are all that were ever seen, by UID.
	pods map[string]seenPod
	// revisions are what the first container of each revision read.
	revisions map[string]reads
	last      uint64
	pending   []wire.Start
	judged    int
	restarts  int
	unpinned  int
	unknown   int
}

type seenPod struct {
	revision string
	pins     snapshot.Pins
}

func newPinJudge(w *pinWorld) *pinJudge {
	return &pinJudge{w: w, data: map[string]map[string]string{}, pods: map[string]seenPod{}, revisions: map[string]reads{}}
}

// look takes in what there is now, and judges what has started since the last look.
func (j *pinJudge) look() {
	j.w.t.Helper()
	j.reachable()
	j.see()
	starts, err := j.w.Starts(j.w.t.Context())
	j.w.must(err)
	fresh := j.pending
	j.pending = nil
	for _, s := range starts {
		if s.Seq > j.last {
			fresh = append(fresh, s)
			j.last = s.Seq
		}
	}
	for _, s := range fresh {
		j.judge(s)
	}
}

// see takes in the copies and the pods.
func (j *pinJudge) see() {
	copies := &corev1.ConfigMapList{}
	j.w.must(j.w.API.List(j.w.t.Context(), copies, ctrlclient.InNamespace(j.w.Namespace), ctrlclient.MatchingLabels{v1.LabelSnapshot: v1.True}))
	for _, c := range copies.Items {
		j.data[c.Name] = c.Data
	}
	pods := &corev1.PodList{}
	j.w.must(j.w.API.List(j.w.t.Context(), pods, ctrlclient.InNamespace(j.w.Namespace)))
	for _, p := range pods.Items {
		pins, err := snapshot.ParsePins(p.Namespace, p.Annotations[v1.AnnotationPins])
		j.w.must(err)
		hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] + p.Labels[appsv1.ControllerRevisionHashLabelKey] + p.Labels["rollouts-pod-template-hash"]
		j.pods[string(p.UID)] = seenPod{revision: p.Labels["app"] + " " + hash, pins: pins}
	}
}

func (j *pinJudge) judge(s wire.Start) {
	j.w.t.Helper()
	pod, known := j.pods[s.PodUID]
	switch {
	case !known:
		j.unknown++ // it came and went between two looks
		return
	case len(pod.pins) == 0:
		j.unpinned++ // of a revision before the first pins
		return
	}
	got := reads{s.Env("MODE"), s.File("/files/conf"), s.File("/sub/conf")}
	web, okWeb := j.data[pod.pins[configMapOf(j.w.Namespace, "web")]]
	files, okFiles := j.data[pod.pins[configMapOf(j.w.Namespace, "files")]]
	if !okWeb || !okFiles {
		j.w.t.Errorf("%s is pinned to copies that were never seen: %v", s.Pod, pod.pins)
		return
	}
	if want := (reads{web["MODE"], files["conf"], files["conf"]}); got != want {
		j.w.t.Errorf("%s attempt %d read %+v, but its pins %s hold %+v", s.Pod, s.Attempt, got, pod.pins, want)
	}
	if before, ok := j.revisions[pod.revision]; !ok {
		j.revisions[pod.revision] = got
	} else if before != got {
		j.w.t.Errorf("%s attempt %d read %+v, another container of revision %s read %+v", s.Pod, s.Attempt, got, pod.revision, before)
	}
	j.judged++
	if s.Attempt > 0 {
		j.restarts++
	}
}

func configMapOf(namespace, name string) workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: name}
}

// reachable fails the test when a copy is not there that a retained revision names.
func (j *pinJudge) reachable() {
	j.w.t.Helper()
	for _, r := range j.retained() {
		for _, name := range r.pins {
			cm := &metav1.PartialObjectMetadata{}
			cm.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
			err := j.w.API.Get(j.w.t.Context(), ctrlclient.ObjectKey{Namespace: j.w.Namespace, Name: name}, cm)
			if ctrlclient.IgnoreNotFound(err) == nil && err != nil && j.still(r.name) {
				j.w.t.Errorf("revision %s needs the copy %s, which is gone", r.name, name)
			}
		}
	}
}

type retainedRevision struct {
	name string
	pins snapshot.Pins
}

// retained lists the ReplicaSets and ControllerRevisions with their pins.
func (j *pinJudge) retained() []retainedRevision {
	var out []retainedRevision
	add := func(name, text string) {
		pins, err := snapshot.ParsePins(j.w.Namespace, text)
		j.w.must(err)
		out = append(out, retainedRevision{name, pins})
	}
	sets := &appsv1.ReplicaSetList{}
	j.w.must(j.w.API.List(j.w.t.Context(), sets, ctrlclient.InNamespace(j.w.Namespace)))
	for _, r := range sets.Items {
		add(r.Name, r.Spec.Template.Annotations[v1.AnnotationPins])
	}
	revisions := &appsv1.ControllerRevisionList{}
	j.w.must(j.w.API.List(j.w.t.Context(), revisions, ctrlclient.InNamespace(j.w.Namespace)))
	for _, r := range revisions.Items {
		_, rest, _ := strings.Cut(string(r.Data.Raw), `"`+v1.AnnotationPins+`":"`)
		text, _, _ := strings.Cut(rest, `"`)
		add(r.Name, text)
	}
	return out
}

// still reports whether a revision is retained now.
func (j *pinJudge) still(name string) bool {
	for _, r := range j.retained() {
		if r.name == name {
			return true
		}
	}
	return false
}

// report says how much was judged, and fails the test when that is too little to prove anything.
func (j *pinJudge) report(steps int) {
	j.w.t.Helper()
	what := fmt.Sprintf("%d starts judged, %d of them restarts, of %d revisions with %d copies; %d of revisions without pins, %d of pods that were never seen",
		j.judged, j.restarts, len(j.revisions), len(j.data), j.unpinned, j.unknown)
	j.w.t.Log(what)
	if j.judged < steps || j.restarts < steps/20 || j.unknown > j.judged/3 {
		j.w.t.Errorf("%s: the test proves little", what)
	}
}
