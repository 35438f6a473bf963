package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"a workload of the release waits since the older record": {ownedBy("app", "shop"), noon},
		"without a namespace the workload's own counts":          {ownedBy("app", ""), noon},
		"a release whose name begins alike is another":           {ownedBy("app-two", "shop"), time.Time{}},
		"a release of another namespace is another":              {ownedBy("app", "bakery"), time.Time{}},
		"a workload of no release waits for none":                {&appsv1.Deployment{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.pendingSince(tc.workload); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	r.drop(helmRecord("app", "2", noon))
	r.drop(helmRecord("app", "3", noon))
	if got := r.pendingSince(ownedBy("app", "shop")); !got.IsZero() {
		t.Errorf("after its end it is still pending since %s", got)
	}
}

func TestAnUninstallDoesNotPutRolloutsOff(t *testing.T) {
	r := newReleases()
	for _, status := range []string{"uninstalling", "deployed", "unknown", ""} {
		record := helmRecord("app", "2", noon)
		record.Labels["status"] = status
		r.put(record)
	}
	if got := r.pendingSince(ownedBy("app", "shop")); !got.IsZero() {
		t.Errorf("it is pending since %s", got)
	}
}
