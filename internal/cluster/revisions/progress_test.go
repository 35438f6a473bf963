package revisions

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/revision"
)

func TestProgressOfARollout(t *testing.T) {
	const (
		deploymentHead  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 3}\nspec: {replicas: 4}\n"
		statefulSetHead = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 3}\n"
		daemonSetHead   = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 3}\n"
		rolloutHead     = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {generation: 3}\n"
		unseen          = "waiting for its controller to see it"
	)
	for name, tc := range map[string]struct {
		object string
		want   string // the text; "done: " or "failed: " before it
	}{
		"a Deployment whose controller has not seen the write": {deploymentHead + "status: {observedGeneration: 2, replicas: 4, updatedReplicas: 4, availableReplicas: 4}", unseen},
		"a Deployment that rolls": {deploymentHead + "status: {observedGeneration: 3, replicas: 5, updatedReplicas: 3, availableReplicas: 2}",
			"3 of 4 pods are updated, 2 available, 2 of another revision are left"},
		"a Deployment whose old pods are left": {deploymentHead + "status: {observedGeneration: 3, replicas: 5, updatedReplicas: 4, availableReplicas: 5}",
			"4 of 4 pods are updated, 4 available, 1 of another revision are left"},
		"a Deployment that is done": {deploymentHead + "status: {observedGeneration: 3, replicas: 4, updatedReplicas: 4, availableReplicas: 4}",
			"done: 4 of 4 pods are updated, 4 available"},
		"a Deployment whose rollout failed": {deploymentHead + `status: {observedGeneration: 3, replicas: 4, updatedReplicas: 1, availableReplicas: 3,
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: 'ReplicaSet "web-a" has timed out progressing.'}]}`,
			`failed: 1 of 4 pods are updated, 3 available, 3 of another revision are left`},
		"a Deployment on which the rollout before failed": {deploymentHead + `status: {observedGeneration: 3, replicas: 4, updatedReplicas: 3, availableReplicas: 3,
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: 'ReplicaSet "web-ab" has timed out progressing.'}]}`,
			"3 of 4 pods are updated, 3 available, 1 of another revision are left"},
		"a StatefulSet that rolls": {statefulSetHead + "spec: {replicas: 3}\nstatus: {observedGeneration: 3, replicas: 3, updatedReplicas: 1, availableReplicas: 2, currentRevision: a, updateRevision: b}",
			"1 of 3 pods are updated, 2 available"},
		"a StatefulSet that went back before its first pod was replaced": {statefulSetHead +
			"spec: {replicas: 3}\nstatus: {observedGeneration: 3, replicas: 3, updatedReplicas: 3, availableReplicas: 3, currentRevision: a, updateRevision: a}",
			"done: 3 of 3 pods are updated, 3 available"},
		"a StatefulSet that went back and has a pod of the other revision": {statefulSetHead +
			"spec: {replicas: 3}\nstatus: {observedGeneration: 3, replicas: 3, updatedReplicas: 2, availableReplicas: 2, currentRevision: a, updateRevision: a}",
			"2 of 3 pods are updated, 2 available"},
		"a StatefulSet with a partition": {statefulSetHead +
			"spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}\nstatus: {observedGeneration: 3, replicas: 3, updatedReplicas: 1, availableReplicas: 3, currentRevision: a, updateRevision: b}",
			"done: 1 of 1 pods are updated, 3 available (partition 2: pods below this ordinal keep their revision)"},
		"a DaemonSet that rolls": {daemonSetHead + "status: {observedGeneration: 3, desiredNumberScheduled: 4, updatedNumberScheduled: 1, numberAvailable: 3}",
			"1 of 4 pods are updated, 3 available"},
		"a DaemonSet that is done": {daemonSetHead + "status: {observedGeneration: 3, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 4}",
			"done: 4 of 4 pods are updated, 4 available"},
		"a Rollout whose controller has not seen the write": {rolloutHead + "status: {observedGeneration: '2', phase: Healthy}", unseen},
		"a Rollout that is paused":                          {rolloutHead + "status: {observedGeneration: '3', phase: Paused, message: CanaryPauseStep}", "Paused: CanaryPauseStep"},
		"a Rollout that is degraded":                        {rolloutHead + "status: {observedGeneration: '3', phase: Degraded, message: aborted}", "failed: Degraded: aborted"},
		"a Rollout that is healthy":                         {rolloutHead + "status: {observedGeneration: '3', phase: Healthy}", "done: Healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			for field, value := range u.Object {
				u.Object[field] = integers(value)
			}
			h := &History{Target: target(strings.ToLower(u.GetKind()), "web"), object: u, holder: u}
			p, err := h.progress(u, u, revision.Revision{Name: "web-a"})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Text
			switch {
			case p.Done:
				got = "done: " + got
			case p.Failed != "":
				got = "failed: " + got
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// integers makes the numbers of YAML those that the API's objects have.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = integers(field)
		}
	case float64:
		return int64(v)
	}
	return value
}

func TestARolloutToATemplateThatIsNotThereAnyMoreHasFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, workload, holder string
		number                 int64
		meanwhile              func(*testing.T, client.Client, *appsv1.Deployment)
		want                   string // "" while it has not failed
	}{
		"nobody did anything": {
			"deployment", "web", "web", 3, func(*testing.T, client.Client, *appsv1.Deployment) {}, "",
		},
		"somebody scaled it": {"deployment", "web", "web", 3, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To(int32(9))
			update(t, c, d)
		}, ""},
		"Tidemark stamped it": {"deployment", "web", "web", 3, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, v1.AnnotationConfigHash, "v1-stamp")
			update(t, c, d)
		}, ""},
		"somebody restarted it": {"deployment", "web", "web", 3, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", "2026-12-01T06:00:00Z")
			update(t, c, d)
		}, "somebody put another template there"},
		"somebody put another template there": {"deployment", "web", "web", 3, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "web:5"
			d.Generation, d.Status.ObservedGeneration = 9, 9
			d.Spec.Replicas = ptr.To(int32(4))
			d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 4, 4, 4
			update(t, c, d)
		}, "somebody put another template there"},
		"somebody put another template where a Rollout has its own": {
			"rollout", "referring", "referred", 1, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "referred:5"
				update(t, c, d)
			}, "somebody put another template there",
		},
		"somebody deleted it": {"deployment", "web", "web", 3, func(t *testing.T, c client.Client, d *appsv1.Deployment) {
			remove(t, c, d)
		}, "somebody deleted it"},
		"somebody deleted what has its template": {
			"rollout", "referring", "referred", 1, func(t *testing.T, c client.Client, d *appsv1.Deployment) { remove(t, c, d) },
			"somebody deleted deployment/referred, which has its template",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			h := historyOf(t, a, tc.kind, tc.workload)
			to, err := revision.Find(h.Revisions, tc.number)
			if err != nil {
				t.Fatal(err)
			}
			goBack(t, h, tc.number)
			d := &appsv1.Deployment{}
			fetch(t, a, d, tc.holder)
			tc.meanwhile(t, a, d)
			p, err := h.Progress(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if p.Failed != tc.want || p.Done {
				t.Errorf("it is %+v, want it failed by %q", p, tc.want)
			}
		})
	}
}

func update(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}
