package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidemark.dev/tidemark/internal/helmrecord"
)

func helmRecord(name string, revision string, created time.Time) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "sh.helm.release.v1." + name + ".v" + revision, CreationTimestamp: metav1.NewTime(created),
		Labels: map[string]string{"name": name, "owner": "helm", "status": "pending-upgrade", "version": revision},
	}}
}

func ownedBy(release, namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pricing", Annotations: map[string]string{
		helmrecord.AnnotationReleaseName: release, helmrecord.AnnotationReleaseNamespace: namespace,
	}}}
}

func TestReleasesKnowWhoIsPending(t *testing.T) {
	r := newReleases()
	r.put(helmRecord("app", "2", noon))
	r.put(helmRecord("app", "3", noon.Add(time.Minute)))
	for name, tc := range map[string]struct {
		workload *appsv1.Deployment
		want     time.Time
	}{
		"a workload of the release waits since the newest record": {ownedBy("app", "shop"), noon.Add(time.Minute)},
		"without a namespace the workload's own counts":           {ownedBy("app", ""), noon.Add(time.Minute)},
		"a release whose name begins alike is another":            {ownedBy("app-two", "shop"), time.Time{}},
		"a release of another namespace is another":               {ownedBy("app", "bakery"), time.Time{}},
		"a workload of no release waits for none":                 {&appsv1.Deployment{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := r.pendingOf(tc.workload); !got.Created.Equal(tc.want) {
				t.Errorf("got %s, want %s", got.Created, tc.want)
			}
		})
	}
	r.drop(helmRecord("app", "2", noon))
	r.drop(helmRecord("app", "3", noon))
	if _, got := r.pendingOf(ownedBy("app", "shop")); got.Record != "" {
		t.Errorf("after its end %s is still pending", got.Record)
	}
}

func TestAnUninstallDoesNotPutRolloutsOff(t *testing.T) {
	r := newReleases()
	for _, status := range []string{"uninstalling", "deployed", "unknown", ""} {
		record := helmRecord("app", "2", noon)
		record.Labels["status"] = status
		r.put(record)
	}
	if _, got := r.pendingOf(ownedBy("app", "shop")); got.Record != "" {
		t.Errorf("%s is pending", got.Record)
	}
}

// A rollback over a dead upgrade leaves its record pending below the one that is deployed, for good.
func TestAResidueOfAReleasePutsNoRolloutOff(t *testing.T) {
	record := func(name, revision, status string) *corev1.Secret {
		meta := helmRecord(name, revision, noon).ObjectMeta
		meta.Labels["status"] = status
		return &corev1.Secret{ObjectMeta: meta, Type: helmrecord.SecretType}
	}
	below := []client.Object{record("app", "4", "superseded"), record("app", "5", "pending-upgrade"), record("other", "9", "deployed")}
	for name, tc := range map[string]struct {
		records []client.Object
		refused bool
		want    time.Time
	}{
		"it is the newest":             {below, false, noon},
		"a newer one is deployed":      {append(slices.Clone(below), record("app", "6", "deployed")), false, time.Time{}},
		"the records cannot be listed": {append(slices.Clone(below), record("app", "6", "deployed")), true, noon},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(tc.records...).
				WithIndex(&corev1.Secret{}, "type", func(client.Object) []string { return []string{string(helmrecord.SecretType)} }).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.refused {
						return errors.New("no answer")
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			c := &Controller{releases: newReleases(), reader: api, log: logr.Discard()}
			c.releases.put(helmRecord("app", "5", noon))
			if got := c.pendingSince(t.Context(), ownedBy("app", "shop")); !got.Equal(tc.want) {
				t.Errorf("pending since %s, want %s", got, tc.want)
			}
		})
	}
}
