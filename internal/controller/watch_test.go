package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

func TestReadyIsWhoKnowsAllThatCanBeKnown(t *testing.T) {
	w := &watcher{secrets: true}
	w.kinds = cluster.BuiltinKinds()[:1]
	machine, err := cluster.ParseKind("example.com/v1/Machine")
	if err != nil {
		t.Fatal(err)
	}
	w.kinds = append(w.kinds, machine)
	if w.ready(nil) == nil {
		t.Error("it is ready before it has begun")
	}
	w.begin()
	w.answered(namespaceKind)
	w.answered(kindOf(workload.ConfigMap))
	if err := w.ready(nil); err == nil || err.Error() != "not completely known yet: Deployment, Secret" {
		t.Errorf("got %v, want the kinds that are missing", err)
	}
	w.answered(kindOf(workload.Secret))
	w.answered(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := w.ready(nil); err != nil {
		t.Errorf("a kind that was added keeps it from being ready: %v", err)
	}
}
