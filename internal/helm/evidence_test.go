package helm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/release"
)

func jobPod(uid string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "job", UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "guard", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "beside"},
	}
	change(p)
	return p
}

func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}},
	}}
}

func TestTheJobPodProvesLifeOrDeath(t *testing.T) {
	runs := func(*corev1.Pod) {}
	terminated := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range p.Status.ContainerStatuses {
				if s := &p.Status.ContainerStatuses[i]; s.Name == name {
					s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
				}
			}
		}
	}
	job := release.JobPod{Namespace: "ci", Name: "job", UID: "u1", Container: "guard", Node: "n1"}
	for name, tc := range map[string]struct {
		job     release.JobPod
		objects []client.Object
		want    release.Life
	}{
		"it runs on a node that answers":              {job, []client.Object{jobPod("u1", runs), node(corev1.ConditionTrue)}, release.Alive},
		"it runs on a node that does not":             {job, []client.Object{jobPod("u1", runs), node(corev1.ConditionUnknown)}, release.LifeUnknown},
		"it is said to run on a node that is gone":    {job, []client.Object{jobPod("u1", runs)}, release.LifeUnknown},
		"it is gone from a node that answers":         {job, []client.Object{node(corev1.ConditionTrue)}, release.Dead},
		"it is gone with its node":                    {job, nil, release.Dead},
		"it is gone from a node that does not answer": {job, []client.Object{node(corev1.ConditionFalse)}, release.LifeUnknown},
		"another pod has its name":                    {job, []client.Object{jobPod("u2", runs), node(corev1.ConditionTrue)}, release.Dead},
		"the guard's container ended":                 {job, []client.Object{jobPod("u1", terminated("guard")), node(corev1.ConditionTrue)}, release.Dead},
		"the container beside it ended":               {job, []client.Object{jobPod("u1", terminated("beside")), node(corev1.ConditionTrue)}, release.Alive},
		"the guard's container, an init container, ended": {job, []client.Object{jobPod("u1", func(p *corev1.Pod) {
			terminated("guard")(p)
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		}), node(corev1.ConditionTrue)}, release.Dead},
		"its container ended on a node that went": {job, []client.Object{jobPod("u1", terminated("guard")), node(corev1.ConditionUnknown)}, release.LifeUnknown},
		"the pod failed":                                    {job, []client.Object{jobPod("u1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), node(corev1.ConditionTrue)}, release.Dead},
		"no container is recorded and one ended":            {release.JobPod{Namespace: "ci", Name: "job", UID: "u1"}, []client.Object{jobPod("u1", terminated("guard")), node(corev1.ConditionTrue)}, release.Alive},
		"it is gone and no node is recorded":                {release.JobPod{Namespace: "ci", Name: "job", UID: "u1"}, []client.Object{node(corev1.ConditionTrue)}, release.LifeUnknown},
		"no pod is recorded, so that none is there is none": {release.JobPod{}, nil, release.LifeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem := life(t.Context(), fake.NewClientBuilder().WithObjects(tc.objects...).Build(), tc.job)
			if got != tc.want || problem != "" {
				t.Errorf("got %q (%s), want %q", got, problem, tc.want)
			}
		})
	}
}

// refusing is a cluster in memory in which one kind may not be read.
func refusing(kind string, objects ...client.Object) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if gvk, err := c.GroupVersionKindFor(object); err != nil || gvk.Kind == kind {
				return apierrors.NewForbidden(schema.GroupResource{Resource: plural(kind)}, key.Name, err)
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
}

func TestWhatEndedTheJobPodIsTold(t *testing.T) {
	job := release.JobPod{Namespace: "ci", Name: "job", UID: "u1", Container: "guard", Node: "n1"}
	disrupted := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status, Reason: "EvictionByEvictionAPI", Message: "m"})
		}
	}
	terminated := func(name, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: name, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: "what it printed"},
			}}}
		}
	}
	evicted := func(p *corev1.Pod) {
		p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory."
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"an eviction":                   {jobPod("u1", disrupted(corev1.ConditionTrue)), "EvictionByEvictionAPI"},
		"an eviction that did not come": {jobPod("u1", disrupted(corev1.ConditionFalse)), ""},
		"its kubelet, for want of room": {jobPod("u1", evicted), "Evicted"},
		"too much memory":               {jobPod("u1", terminated("guard", "OOMKilled")), "OOMKilled"},
		"too much memory, in a sidecar": {jobPod("u1", terminated("beside", "OOMKilled")), ""},
		"its own end":                   {jobPod("u1", terminated("guard", "Error")), ""},
		"an eviction of its namesake":   {jobPod("u2", disrupted(corev1.ConditionTrue)), ""},
	} {
		if got := podEnd(t.Context(), fake.NewClientBuilder().WithObjects(tc.pod).Build(), job); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestALifeThatMayNotBeReadIsUnknown(t *testing.T) {
	job := release.JobPod{Namespace: "ci", Name: "job", UID: "u1", Node: "n1"}
	for _, kind := range []string{"Pod", "Node"} {
		got, problem := life(t.Context(), refusing(kind, node(corev1.ConditionTrue)), job)
		if got != release.LifeUnknown || !strings.Contains(problem, "missing the right to get "+plural(kind)) {
			t.Errorf("without the right to %s: %q, %q", plural(kind), got, problem)
		}
	}
}

func hookJob(change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "migrate", CreationTimestamp: metav1.NewTime(noon)}}
	change(j)
	return j
}

func document(kind, name, manifest, event string) string {
	return fmt.Sprintf(`{"manifest":"kind: List","hooks":[{"kind":%q,"name":%q,"manifest":%q,"events":[%q]}]}`, kind, name, manifest, event)
}

func TestAHookThatRunsIsLife(t *testing.T) {
	migrate := document("Job", "migrate", "kind: Job", "pre-upgrade")
	running := hookJob(func(*batchv1.Job) {})
	done := func(c batchv1.JobConditionType) *batchv1.Job {
		return hookJob(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue}}
		})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "migrate", CreationTimestamp: metav1.NewTime(noon)}}
	for name, tc := range map[string]struct {
		document string
		object   client.Object
		active   bool
		problem  string
	}{
		"a Job that runs":                  {migrate, running, true, ""},
		"a Job that completed":             {migrate, done(batchv1.JobComplete), false, ""},
		"a Job that failed":                {migrate, done(batchv1.JobFailed), false, ""},
		"a Job that is about to complete":  {migrate, done(batchv1.JobSuccessCriteriaMet), true, ""},
		"a Job that is not there":          {migrate, nil, false, ""},
		"a Job of an earlier revision":     {migrate, hookJob(func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour)) }), false, ""},
		"a Pod that runs":                  {document("Pod", "migrate", "kind: Pod", "post-upgrade"), pod, true, ""},
		"a ConfigMap":                      {document("ConfigMap", "migrate", "kind: ConfigMap", "pre-upgrade"), running, false, ""},
		"a test":                           {document("Job", "migrate", "kind: Job", "test"), running, false, ""},
		"a Job of another namespace":       {document("Job", "migrate", "metadata: {namespace: jobs}", "pre-upgrade"), running, false, ""},
		"a hook without a name":            {document("Job", "", "kind: Job", "pre-upgrade"), running, false, "names no object"},
		"a hook whose manifest is cut off": {document("Job", "migrate", "kind: [", "pre-upgrade"), running, false, "names no object"},
		"a payload that is cut off":        {`{"hooks":[`, running, false, "secret/sh.helm.release.v1.web.v2 cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			record := holding(meta("web", 2, "pending-upgrade"), tc.document)
			objects := []client.Object{record}
			if tc.object != nil {
				objects = append(objects, tc.object)
			}
			got := look(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), "shop",
				release.Revision{Record: record.Name, Kind: "Secret", Created: noon.Add(-time.Hour)})
			if got.hookActive != tc.active || (got.problem == "") != (tc.problem == "") || !strings.Contains(got.problem, tc.problem) {
				t.Errorf("active %t, problem %q", got.hookActive, got.problem)
			}
		})
	}
	for _, kind := range []string{"Secret", "Job"} {
		record := holding(meta("web", 2, "pending-upgrade"), migrate)
		got := look(t.Context(), refusing(kind, record), "shop", release.Revision{Record: record.Name, Kind: "Secret"})
		if !strings.Contains(got.problem, "missing the right to get "+plural(kind)) {
			t.Errorf("without the right to %s: %+v", plural(kind), got)
		}
	}
}

func TestWhatIsPendingIsJudgedWithItsEvidence(t *testing.T) {
	pending := meta("web", 2, "pending-upgrade")
	pending.Labels[v1.LabelDeploy] = "d1"
	lease := guardLease("web", func(l *coordinationv1.Lease) {
		delete(l.Annotations, v1.AnnotationDeployTimeout)
		l.Annotations[v1.AnnotationDeployPod], l.Annotations[v1.AnnotationDeployNode] = "ci/job/u1", "n1"
	})
	flux := `{"manifest":"metadata: {labels: {helm.toolkit.fluxcd.io/name: web}}"}`
	for name, tc := range map[string]struct {
		document string
		beside   []client.Object
		want     release.State
		foreign  string
	}{
		"a job pod that is gone":      {"{}", []client.Object{node(corev1.ConditionTrue)}, release.Abandoned, ""},
		"a job pod that runs":         {"{}", []client.Object{node(corev1.ConditionTrue), jobPod("u1", func(*corev1.Pod) {})}, release.Unknown, ""},
		"a hook that runs":            {document("Job", "migrate", "kind: Job", "pre-upgrade"), []client.Object{node(corev1.ConditionTrue), hookJob(func(*batchv1.Job) {})}, release.Live, ""},
		"a payload that is cut off":   {"{", []client.Object{node(corev1.ConditionTrue)}, release.Unknown, ""},
		"a release that another owns": {flux, []client.Object{node(corev1.ConditionTrue)}, release.Abandoned, "Flux"},
	} {
		t.Run(name, func(t *testing.T) {
			sight, err := find(t, Survey{}, nil, append(tc.beside, holding(pending, tc.document), secret(meta("web", 1, "deployed")), lease)...)
			if err != nil || len(sight.Releases) != 1 {
				t.Fatal(err, sight)
			}
			r := sight.Releases[0]
			if v := release.Judge(r.Input); v.State != tc.want || r.Foreign != tc.foreign {
				t.Errorf("%s of %q: %s", v.State, r.Foreign, v.Reason)
			}
		})
	}
}
