package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/podtemplate"
)

func TestAPodTellsItsRevision(t *testing.T) {
	since := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		owner  metav1.OwnerReference
		labels map[string]string
		change func(*corev1.Pod)
		want   *PodRevision
		ready  time.Time
	}{
		"of a Deployment": {
			owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-api-5d6"}, labels: map[string]string{"pod-template-hash": "5d6"},
			want: &PodRevision{Owner: deployment, Name: "web-api", Hash: "5d6"}, ready: since,
		},
		"of a Rollout": {
			owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d6"}, labels: map[string]string{podtemplate.LabelRolloutHash: "5d6"},
			want: &PodRevision{Owner: ArgoRollout, Name: "web", Hash: "5d6"}, ready: since,
		},
		"of a StatefulSet": {
			owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}, labels: map[string]string{"controller-revision-hash": "db-77"},
			want: &PodRevision{Owner: statefulSet, Name: "db", Hash: "db-77"}, ready: since,
		},
		"of a ReplicaSet of nobody": {
			owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "lone"}, labels: map[string]string{"pod-template-hash": "5d6"}, ready: since,
		},
		"of a Job": {owner: metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "once"}, ready: since},
		"that is going": {
			owner:  metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"},
			labels: map[string]string{"controller-revision-hash": "db-77"}, change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: since} },
		},
		"that has ended": {
			owner:  metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"},
			labels: map[string]string{"controller-revision-hash": "db-77"}, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		},
		"that is not ready": {
			owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}, labels: map[string]string{"controller-revision-hash": "db-77"},
			change: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
			want:   &PodRevision{Owner: statefulSet, Name: "db", Hash: "db-77"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			controls := true
			tc.owner.Controller = &controls
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: tc.labels, OwnerReferences: []metav1.OwnerReference{tc.owner}}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: since}}}
			if tc.change != nil {
				tc.change(pod)
			}
			out, err := MatchPins(pod)
			if err != nil {
				t.Fatal(err)
			}
			p, ok := out.(*PinnedPod)
			if !ok {
				t.Fatalf("it gives a %T", out)
			}
			if diff := cmp.Diff(tc.want, p.Revision); diff != "" || !p.ReadySince.Equal(tc.ready) {
				t.Errorf("ready since %v, want %v\n%s", p.ReadySince, tc.ready, diff)
			}
		})
	}
}
