package revisions

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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
			p, err := h.progress(t.Context(), u, revision.Revision{Name: "web-a"})
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
