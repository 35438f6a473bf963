package controller

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidemark.dev/tidemark/internal/cluster"
)

func TestSightingsTellWhichRevisionsHaveAnAvailablePod(t *testing.T) {
	start := time.Unix(1000, 0)
	web := ID{appsv1.SchemeGroupVersion.WithKind("Deployment"), types.NamespacedName{Namespace: "shop", Name: "web"}}
	x := newSightings()
	pod := func(uid, hash string, since time.Time) *cluster.PinnedPod {
		return &cluster.PinnedPod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid)}, ReadySince: since,
			Revision: &cluster.PodRevision{Owner: web.GVK, Name: "web", Hash: hash},
		}
	}
	saw := func(p *cluster.PinnedPod, want bool) {
		t.Helper()
		if id, news := x.saw(p); news != want || news && id != web {
			t.Errorf("pod %s is news: %v of %v, want %v", p.Name, news, id, want)
		}
	}
	available := func(at int, more time.Duration, want ...string) {
		t.Helper()
		got, left := x.available(web, 10*time.Second, start.Add(time.Duration(at)*time.Second))
		if !slices.Equal(got, want) || left != more {
			t.Errorf("after %d s: %q, more in %v; want %q, in %v", at, got, left, want, more)
		}
	}
	saw(pod("a", "one", time.Time{}), false)
	available(0, 0)
	saw(pod("a", "one", start), true)
	saw(pod("a", "one", start), false)
	saw(pod("b", "one", start.Add(5*time.Second)), true)
	saw(pod("c", "two", start.Add(8*time.Second)), true)
	available(9, time.Second)
	available(10, 5*time.Second, "one")
	available(20, 0, "one", "two")
	saw(pod("c", "two", time.Time{}), false) // as a pod that ends, or is not ready any more
	available(20, 0, "one")
	x.gone("a")
	x.gone("b")
	x.gone("never seen")
	available(20, 0)
	if len(x.of)+len(x.at) != 0 {
		t.Errorf("something is kept: %v, %v", x.of, x.at)
	}
}
