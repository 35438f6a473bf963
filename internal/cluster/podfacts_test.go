package cluster

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

func readPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestPodOf(t *testing.T) {
	at := func(minute, second int) time.Time { return time.Date(2026, 6, 1, 12, minute, second, 0, time.UTC) }
	use := func(kind workload.ObjectKind, name string) workload.Consumption {
		return workload.Consumption{Object: workload.Object{Kind: kind, Namespace: "shop", Name: name}, Required: true}
	}
	schema, settings, password := use(workload.ConfigMap, "schema"), use(workload.ConfigMap, "settings"), use(workload.Secret, "db")
	schema.Env, settings.Files = workload.Keys{All: true}, workload.Keys{All: true}
	settings.Refreshed = true
	password.Env, password.RequiredKeys = workload.Keys{Names: []string{"password"}}, []string{"password"}
	password.RequiredEnv = []string{"password"}
	want := fleet.Pod{
		Name: "web-6b7-x2", UID: "pod-1", Node: "node-a", Revision: "6b7", Created: at(0, 0), Stamp: "v1-abc",
		InitEnded: at(0, 9), Ready: true, Phase: "Running", Waiting: "CrashLoopBackOff",
		Containers: []fleet.Container{
			{Name: "migrate", Role: workload.RoleInit, Started: at(0, 5), Uses: []workload.Consumption{schema}},
			{Name: "proxy", Role: workload.RoleSidecar, Started: at(0, 10)},
			{Name: "main", Role: workload.RoleMain, Started: at(7, 0), Restarts: 2, PreviousEnded: at(6, 58),
				Uses: []workload.Consumption{settings, password}},
			{Name: "side", Role: workload.RoleMain, Restarts: 4, PreviousEnded: at(8, 0)},
		},
	}
	if diff := cmp.Diff(want, utc(PodOf(readPod(t, "testdata/pod.yaml")))); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

// utc gives every time of the pod in UTC, as the fixtures have them.
func utc(p fleet.Pod) fleet.Pod {
	p.Created, p.InitEnded = p.Created.UTC(), p.InitEnded.UTC()
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Started, c.PreviousEnded = c.Started.UTC(), c.PreviousEnded.UTC()
	}
	return p
}

func TestInitEndedIsUnknownWhileOneRuns(t *testing.T) {
	pod := readPod(t, "testdata/pod.yaml")
	pod.Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if got := PodOf(pod).InitEnded; !got.IsZero() {
		t.Errorf("init ended at %s, want none", got)
	}
}

func TestReadySince(t *testing.T) {
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(noon)},
		}}}
	}
	if got := ReadySince(node(corev1.ConditionTrue)); !got.Equal(noon) {
		t.Errorf("a Ready node: %s, want %s", got, noon)
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		if got := ReadySince(node(status)); !got.IsZero() {
			t.Errorf("Ready=%s: %s, want none", status, got)
		}
	}
}
