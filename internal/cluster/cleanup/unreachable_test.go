package cleanup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestRevisionsWhoseCopiesAreGoneAreCounted(t *testing.T) {
	t.Parallel()
	revision := func(name, pins string) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: appsv1.ReplicaSetSpec{Template: pinned()}}
		rs.Spec.Template.Annotations[v1.AnnotationPins] = pins
		return rs
	}
	plain := pricing()
	plain.Name = "made-since" // it came after the copies were listed
	s := newStore(t, pricing(), plain, pricingSnapshot(1, 0),
		revision("there", "configmap/pricing=pricing-1"), revision("gone", "configmap/pricing=pricing-7"), revision("twice", "configmap/pricing=pricing-7,configmap/other=other-1"),
		revision("since", "configmap/pricing=made-since"), revision("absent", "configmap/pricing="+v1.AbsentName),
		revisionOfSet(metav1.ObjectMeta{Namespace: "shop", Name: "set"}, `{"spec":{"template":{"metadata":{"annotations":{"tidemark.dev/pins":"configmap/pricing=pricing-8"}}}}}`))
	if diff := cmp.Diff(map[string]int{"shop": 3}, clean(t, cleanup(s)).Unreachable); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRevisionsAreCountedAlsoWhereEveryCopyIsGone(t *testing.T) {
	t.Parallel()
	at := metav1.ObjectMeta{Namespace: "shop", Name: "gone"}
	s := newStore(t, pricing(), &appsv1.ReplicaSet{ObjectMeta: at, Spec: appsv1.ReplicaSetSpec{Template: pinned()}},
		revisionOfSet(metav1.ObjectMeta{Namespace: "shop", Name: "set"}, `{"spec":{"template":{"metadata":{"annotations":{"tidemark.dev/pins":"configmap/pricing=pricing-1"}}}}}`))
	cleaned := clean(t, cleanup(s))
	if diff := cmp.Diff(map[string]int{"shop": 2}, cleaned.Unreachable); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.fails["list replicasets"] = forbidden("list replicasets")
	if _, err := cleanup(s).Run(t.Context()); err == nil {
		t.Error("what cannot be counted counts as none")
	}
}
