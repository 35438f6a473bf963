package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// lines are what was logged.
type lines []string

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) { *l = append(*l, args) }, funcr.Options{})
}

func (l *lines) about(word string) int {
	n := 0
	for _, line := range *l {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}

func TestWatchesTellEachTroubleOnceAndItsEnd(t *testing.T) {
	w, log := newWorld(t, Options{}), &lines{}
	watches := NewWatches(log.logger(), w.metrics)
	ours := schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Machine"}
	theirs := schema.GroupVersionKind{Group: "b.example.com", Version: "v1", Kind: "Machine"}
	for _, gvk := range []schema.GroupVersionKind{ours, theirs} {
		watches.Fared(gvk, nil)
		watches.Fared(gvk, nil)
	}
	if len(*log) > 0 {
		t.Errorf("without trouble it logs %q", *log)
	}
	for range 3 {
		watches.Fared(ours, errors.New("no right"))
	}
	w.metric("tidemark_watch_problem", 1, "Machine.a.example.com")
	w.metric("tidemark_watch_problem", 0, "Machine.b.example.com")
	if log.about("no right") != 1 || log.about("any more") != 1 || log.about("Machine.a.example.com") != 1 {
		t.Errorf("it logs %q, want one line that says that it was watched before", *log)
	}
	watches.Fared(ours, errors.New("not served"))
	watches.Fared(ours, nil)
	watches.Fared(ours, nil)
	w.metric("tidemark_watch_problem", 0, "Machine.a.example.com")
	if log.about("not served") != 1 || log.about("Watching now") != 1 {
		t.Errorf("it logs %q, want the other trouble once, and the end once", *log)
	}
}

// rights answers reviews of access: of the verbs on Deployments all but those refused are allowed.
type rights struct {
	client.Client
	refused map[string]bool
	// reviews counts those asked for, and asked is called before each is answered.
	reviews int
	asked   func()
}

func (*rights) RESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return m
}

func (r *rights) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return errors.New("it is no review")
	}
	r.reviews++
	r.asked()
	review.Status.Allowed = !r.refused[review.Spec.ResourceAttributes.Verb]
	return nil
}

// hasty is a clock on which every wait is over at once.
type hasty struct{ clock.Clock }

func (hasty) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

func TestAMissingRightIsSaidOnceAndAskedForUntilItIsThere(t *testing.T) {
	world, log := newWorld(t, Options{}), &lines{}
	api := &rights{refused: map[string]bool{"patch": true}}
	api.asked = func() {
		if api.reviews < 4 {
			return
		}
		world.metric("tidemark_missing_right", 1, "Deployment.apps", "patch")
		api.refused = nil
	}
	w := &watcher{client: api, clock: hasty{}, log: log.logger(), metrics: world.metrics}

	w.require(t.Context(), deployment.GroupVersionKind, "patch", withoutPatch)

	world.metric("tidemark_missing_right", 0, "Deployment.apps", "patch")
	if log.about("missing the right to patch deployments.apps") != 1 || log.about("ClusterRole") != 1 || log.about("do not roll") != 1 {
		t.Errorf("it logs %q, want one line with the right, what does not work and the remedy", *log)
	}
	if log.about("there now") != 1 || api.reviews != 4 {
		t.Errorf("after %d reviews it logs %q, want one line that the right is there", api.reviews, *log)
	}
}
