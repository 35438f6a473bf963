package controller

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

type blind = map[workload.ObjectKind]time.Time

// What happened meanwhile takes a moment to be in the history, so a kind that is watched again is stated for a while.
func TestTheLeaseSaysSinceWhenAKindIsNotWatched(t *testing.T) {
	h, clock := newHistorian(t)
	led := lease("me", noon)
	led.Namespace, led.Name = h.namespace, v1.LeaseLeader
	refused := false
	api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(led).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if refused {
				return errors.New("a webhook does not answer")
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	h.client, h.reader = api, api
	metrics := h.metrics
	watches := NewWatches(h.log, metrics)
	watches.tell(h.watches)
	says := func(written bool, want blind) {
		t.Helper()
		h.signs.saw(lease("me", clock.Now()))
		if got := h.flush(t.Context()); got != written {
			t.Errorf("there is nothing left to write: %t, want %t", got, written)
		}
		now := &coordinationv1.Lease{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(led), now); err != nil {
			t.Fatal(err)
		}
		if got := cluster.BlindSince(now); !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("the Lease says %v, want %v", got, want)
		}
	}
	secrets := kindOf(workload.Secret)
	no := &cluster.ForbiddenError{}
	says(true, nil)

	watches.Fared(secrets, no)
	watches.Fared(corev1.SchemeGroupVersion.WithKind("Pod"), no) // which is no configuration
	refused = true
	says(false, nil)
	refused = false
	clock.Step(time.Minute)
	watches.Fared(secrets, no)
	says(true, blind{workload.Secret: noon})

	watches.Fared(secrets, nil)
	says(false, blind{workload.Secret: noon})
	clock.Step(cluster.HistoryLag)
	says(true, nil)
}

func TestTheNextLeaderKnowsSinceWhenAKindWasNotWatched(t *testing.T) {
	since := noon.Add(-time.Hour)
	for name, tc := range map[string]struct {
		synced bool
		want   blind
	}{
		"it may watch it":     {true, blind{}},
		"it may not watch it": {false, blind{workload.Secret: since}},
	} {
		t.Run(name, func(t *testing.T) {
			h, clock := newHistorian(t)
			h.synced = func(workload.ObjectKind) bool { return tc.synced }
			led := lease("me", noon)
			led.Namespace, led.Name = h.namespace, v1.LeaseLeader
			led.Annotations = map[string]string{v1.AnnotationHistoryBlind: cluster.BlindText(blind{workload.Secret: since})}
			api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(led).Build()
			h.client, h.reader = api, api
			h.signs.saw(lease("before", noon.Add(-time.Second)))
			h.signs.saw(led)
			if !tc.synced {
				h.watches(workload.Secret, false)
			}
			if err := h.load(t.Context()); err != nil {
				t.Fatal(err)
			}

			if got := h.blindness.before(workload.Secret, h.unwatched); !got.Equal(since) {
				t.Errorf("it takes Secrets for watched until %v, want %v", got, since)
			}
			if got := h.blindness.before(workload.ConfigMap, h.unwatched); !got.Equal(h.unwatched) {
				t.Errorf("it takes ConfigMaps for watched until %v, want %v", got, h.unwatched)
			}
			clock.Step(cluster.HistoryLag)
			h.signs.saw(lease("me", clock.Now()))
			h.flush(t.Context())
			if got, _ := h.blindness.statement(clock.Now()); !maps.EqualFunc(got, tc.want, time.Time.Equal) {
				t.Errorf("it says %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhereNobodyIsKnownToHaveWatchedNoKindIs(t *testing.T) {
	b := newBlindness()
	b.begin(workload.Secret, noon)
	if got := b.before(workload.Secret, time.Time{}); !got.IsZero() {
		t.Errorf("it takes Secrets for watched until %v", got)
	}
}
