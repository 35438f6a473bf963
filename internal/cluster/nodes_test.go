package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

func TestNodesAreReadWhereSomethingIsReadLaterInAPodsLife(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
	}}}
	config := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		restarts    int32
		live        bool
		want        time.Time
	}{
		"a container that started once":      {},
		"a container that started again":     {restarts: 1, want: noon},
		"a program that reloads its files":   {annotations: map[string]string{v1.AnnotationReloads: "true"}, want: noon},
		"a program that reloads one object":  {live: true, want: noon},
		"a program that says it does not":    {annotations: map[string]string{v1.AnnotationReloads: "false"}},
		"a program whose word is not a word": {annotations: map[string]string{v1.AnnotationReloads: "maybe"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reading{
				Survey:  survey(fake.NewClientBuilder().WithObjects(node.DeepCopy()).Build()),
				memory:  memory{logs: map[workload.Object]history.Log{config: {Object: config}}},
				objects: map[workload.Object]*object{config: {live: tc.live}},
				seen: []*seen{{
					annotations: tc.annotations,
					uses:        []workload.Consumption{{Object: config, Files: workload.Keys{All: true}}},
					pods:        []fleet.Pod{{Node: "node-1", Containers: []fleet.Container{{Restarts: tc.restarts}}}},
				}},
			}
			if err := r.readNodes(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := r.nodes["node-1"]; !got.Equal(tc.want) {
				t.Errorf("ready since %v, want %v", got, tc.want)
			}
		})
	}
}
