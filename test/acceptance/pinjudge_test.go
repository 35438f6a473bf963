package acceptance

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/wire"
)

// pinJudge holds every start in the lab's record against two things: what the copies hold that the pod's pins name, and what
// other containers of the same revision read.
type pinJudge struct {
	w       *pinWorld
	watched *pinWatch
	// revisions are what the first start of each container of each revision read.
	revisions map[string]string
	last      uint64
	// pending are starts of pods that were not seen so far, or whose copies were not.
	pending  []wire.Start
	judged   int
	inits    int
	ofJobs   int
	restarts int
	unpinned int
}

func newPinJudge(w *pinWorld) *pinJudge {
	w.t.Helper()
	return &pinJudge{w: w, watched: watchPins(w.scene), revisions: map[string]string{}}
}

// look takes in what there is now, and judges what has started since the last look.
func (j *pinJudge) look() {
	j.w.t.Helper()
	j.reachable()
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
		if !j.judge(s) {
			j.pending = append(j.pending, s)
		}
	}
	for _, fault := range j.watched.faults() {
		j.w.t.Error(fault)
	}
}

// judge judges a start; false when its pod was not seen so far, or one of its copies.
func (j *pinJudge) judge(s wire.Start) bool {
	j.w.t.Helper()
	pod, seen := j.watched.pod(s.PodUID)
	switch {
	case !seen:
		return false
	case len(pod.pins) == 0:
		j.unpinned++ // of a revision before the first pins
		of, _, _ := strings.Cut(s.Pod, "-")
		if j.w.hooked && !strings.Contains(j.w.passed, fmt.Sprintf(`"name":%q`, of)) {
			j.w.t.Errorf("%s has no pins, although its workload got them when it was created", s.Pod)
		}
		return true
	}
	got, want := map[string]string{}, map[string]string{}
	readings := pinReadings
	if ofJob(s) {
		readings = slices.Concat(readings, pinReadingsOfJobs)
	}
	for _, r := range readings {
		if r.container != s.Container {
			continue
		}
		o := workload.Object{Kind: r.kind, Namespace: j.w.Namespace, Name: r.object}
		if pod.pins[o] == "" {
			j.w.t.Errorf("%s reads %s, which its pins %s leave out", s.Pod, o, pod.pins)
			return true
		}
		data, seen := j.watched.copied(o, pod.pins[o])
		if !seen {
			return false
		}
		way := r.env + r.file
		got[way], want[way] = s.Env(r.env)+s.File(r.file), data[r.key]
	}
	read := fmt.Sprint(got)
	if expected := fmt.Sprint(want); len(want) == 0 || read != expected {
		j.w.t.Errorf("%s of %s attempt %d read %s, but its pins %s hold %s", s.Container, s.Pod, s.Attempt, read, pod.pins, expected)
	}
	of := pod.revision + " " + s.Container
	if before, ok := j.revisions[of]; !ok {
		j.revisions[of] = read
	} else if before != read {
		j.w.t.Errorf("%s of %s attempt %d read %s, another one of revision %s read %s", s.Container, s.Pod, s.Attempt, read, pod.revision, before)
	}
	j.count(s)
	return true
}

func (j *pinJudge) count(s wire.Start) {
	j.judged++
	if s.Attempt > 0 {
		j.restarts++
	}
	if s.Kind == wire.Init {
		j.inits++
	}
	if ofJob(s) {
		j.ofJobs++
	}
}

func ofJob(s wire.Start) bool { return strings.HasPrefix(s.Pod, "nightly-") }

func configMapOf(namespace, name string) workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: name}
}

// reachable fails the test when a copy is not there that something names which is there.
func (j *pinJudge) reachable() {
	j.w.t.Helper()
	users := j.users()
	there := map[workload.Object]bool{}
	for _, c := range j.present() {
		there[c.Object] = true
	}
	for _, u := range users {
		for o, name := range u.pins {
			if name != v1.AbsentName && !there[workload.Object{Kind: o.Kind, Namespace: o.Namespace, Name: name}] && j.still(u.name) {
				j.w.t.Errorf("%s needs the copy %s of %s, which is gone", u.name, name, o)
			}
		}
	}
}

// present are the copies that are there.
func (j *pinJudge) present() []snapshot.Snapshot {
	j.w.t.Helper()
	var out []snapshot.Snapshot
	for _, kind := range []workload.ObjectKind{workload.ConfigMap, workload.Secret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		j.w.must(j.w.API.List(j.w.t.Context(), list, ctrlclient.InNamespace(j.w.Namespace), ctrlclient.MatchingLabels{v1.LabelSnapshot: v1.True}))
		for i := range list.Items {
			if c, ok := snapshot.Read(kind, &list.Items[i]); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// pinUser is something that names copies.
type pinUser struct {
	name string
	pins snapshot.Pins
}

// users lists what names copies: ReplicaSets, ControllerRevisions, Jobs, the CronJob, and pods that have not ended.
func (j *pinJudge) users() []pinUser {
	j.w.t.Helper()
	var out []pinUser
	add := func(object ctrlclient.Object, text string) {
		pins, err := snapshot.ParsePins(j.w.Namespace, text)
		j.w.must(err)
		out = append(out, pinUser{fmt.Sprintf("%T %s", object, object.GetUID()), pins})
	}
	list := func(l ctrlclient.ObjectList) {
		j.w.must(j.w.API.List(j.w.t.Context(), l, ctrlclient.InNamespace(j.w.Namespace)))
	}
	sets, revisions, jobs, crons, pods := &appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{}, &batchv1.JobList{}, &batchv1.CronJobList{}, &corev1.PodList{}
	list(sets)
	for i := range sets.Items {
		add(&sets.Items[i], sets.Items[i].Spec.Template.Annotations[v1.AnnotationPins])
	}
	list(revisions)
	for i := range revisions.Items {
		_, rest, _ := strings.Cut(string(revisions.Items[i].Data.Raw), `"`+v1.AnnotationPins+`":"`)
		text, _, _ := strings.Cut(rest, `"`)
		add(&revisions.Items[i], text)
	}
	list(jobs)
	for i := range jobs.Items {
		add(&jobs.Items[i], jobs.Items[i].Spec.Template.Annotations[v1.AnnotationPins])
	}
	list(crons)
	for i := range crons.Items {
		add(&crons.Items[i], crons.Items[i].Spec.JobTemplate.Spec.Template.Annotations[v1.AnnotationPins])
	}
	list(pods)
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			add(p, p.Annotations[v1.AnnotationPins])
		}
	}
	return out
}

// still reports whether something that names copies is there now.
func (j *pinJudge) still(name string) bool {
	for _, u := range j.users() {
		if u.name == name {
			return true
		}
	}
	return false
}

// superfluous waits until at most one copy of each source is left that nothing names, as clean-up has been told.
func (j *pinJudge) superfluous() {
	j.w.t.Helper()
	j.w.eventually("the copies to go that nothing names", func() error {
		named := map[workload.Object]bool{}
		for _, u := range j.users() {
			for o, name := range u.pins {
				named[workload.Object{Kind: o.Kind, Namespace: o.Namespace, Name: name}] = true
			}
		}
		unnamed := map[workload.Object][]string{}
		for _, c := range j.present() {
			if !named[c.Object] {
				unnamed[c.Source] = append(unnamed[c.Source], c.Object.Name)
			}
		}
		for source, names := range unnamed {
			if len(names) > 1 {
				return fmt.Errorf("of %s nothing names %v", source, names)
			}
		}
		return nil
	})
}

// report says how much was judged, and fails the test when that is too little to prove anything.
func (j *pinJudge) report(steps int) {
	j.w.t.Helper()
	what := fmt.Sprintf("%d starts judged, %d of them restarts, %d of init containers, %d of Jobs, of %d containers of revisions with %d copies; "+
		"%d of revisions without pins, %d of pods or copies that were never seen",
		j.judged, j.restarts, j.inits, j.ofJobs, len(j.revisions), j.watched.counted(), j.unpinned, len(j.pending))
	j.w.t.Log(what)
	if j.judged < 2*steps || j.restarts < steps/20 || j.ofJobs < steps/40 || len(j.pending) > j.judged/200 {
		j.w.t.Errorf("%s: the test proves little", what)
	}
}
