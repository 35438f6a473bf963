package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// workloadFrom reads a workload, typed where its kind is built in.
func workloadFrom(t *testing.T, manifest string) client.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return u
	}
	obj, ok := typed.(client.Object)
	if !ok {
		t.Fatalf("%T is no object", typed)
	}
	if err := yaml.UnmarshalStrict([]byte(manifest), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestRolloutOf(t *testing.T) {
	const (
		deployment  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 3}\n"
		statefulSet = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 3}\n"
		daemonSet   = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 3}\n"
		machines    = "apiVersion: example.org/v1\nkind: Machines\nmetadata: {generation: 3}\n"
	)
	for name, tc := range map[string]struct {
		manifest string
		done     bool
		stuck    string
	}{
		"a Deployment that is done": {
			deployment + "spec: {replicas: 2}\nstatus: {observedGeneration: 3, replicas: 2, updatedReplicas: 2}", true, ""},
		"a Deployment without replicas": {
			deployment + "spec: {replicas: 0}\nstatus: {observedGeneration: 3}", true, ""},
		"a Deployment that its controller has not seen": {
			deployment + "spec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2}", false, ""},
		"a Deployment with an old pod": {
			deployment + "spec: {replicas: 2}\nstatus: {observedGeneration: 3, replicas: 3, updatedReplicas: 2}", false, ""},
		"a Deployment that its owner paused": {
			deployment + "spec: {replicas: 2, paused: true}\nstatus: {observedGeneration: 3, replicas: 2}", false, "spec.paused"},
		"a Deployment past its deadline": {
			deployment + "status: {observedGeneration: 3, replicas: 2, updatedReplicas: 1, conditions: " +
				"[{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: timed out}]}",
			false, "ProgressDeadlineExceeded"},
		"a StatefulSet that is done": {
			statefulSet + "status: {observedGeneration: 3, replicas: 1, currentRevision: a, updateRevision: a}", true, ""},
		"a StatefulSet with a partition that has passed": {
			statefulSet + "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}\n" +
				"status: {observedGeneration: 3, replicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}", false, "partition 2"},
		"a StatefulSet OnDelete": {
			statefulSet + "spec: {replicas: 3, updateStrategy: {type: OnDelete}}\n" +
				"status: {observedGeneration: 3, replicas: 3, currentRevision: a, updateRevision: b}", false, "OnDelete"},
		"a StatefulSet OnDelete of which every pod was deleted": {
			statefulSet + "spec: {replicas: 3, updateStrategy: {type: OnDelete}}\n" +
				"status: {observedGeneration: 3, replicas: 3, updatedReplicas: 3, currentRevision: a, updateRevision: b}", true, ""},
		"a DaemonSet that is done": {
			daemonSet + "status: {observedGeneration: 3, desiredNumberScheduled: 4, updatedNumberScheduled: 4}", true, ""},
		"a DaemonSet OnDelete": {
			daemonSet + "spec: {updateStrategy: {type: OnDelete}}\n" +
				"status: {observedGeneration: 3, desiredNumberScheduled: 4, updatedNumberScheduled: 1}", false, "OnDelete"},
		"a CronJob rolls nothing": {"apiVersion: batch/v1\nkind: CronJob", true, ""},
		"another kind that is done": {
			machines + "spec: {replicas: 2}\nstatus: {observedGeneration: 3, replicas: 2, updatedReplicas: 2}", true, ""},
		"another kind that is paused": {
			machines + "spec: {replicas: 2, paused: true}\nstatus: {observedGeneration: 3, replicas: 2}", false, "the Machines does not roll"},
		"another kind without a status": {machines + "spec: {}", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := RolloutOf(workloadFrom(t, tc.manifest))
			if got.Done != tc.done {
				t.Errorf("done %v, want %v", got.Done, tc.done)
			}
			if (got.Stuck == "") != (tc.stuck == "") || !strings.Contains(got.Stuck, tc.stuck) {
				t.Errorf("stuck %q, want %q", got.Stuck, tc.stuck)
			}
		})
	}
}
