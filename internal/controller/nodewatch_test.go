package controller

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/history"
)

func newTestNodeWatch(t *testing.T) (*nodeWatch, *historian, *clocktesting.FakeClock) {
	h, clock := newHistorian(t)
	return newNodeWatch(nil, nil, clock, logr.Discard(), h), h, clock
}

// nodeLease is a node's Lease, renewed so many seconds after noon, of 40 seconds.
func nodeLease(renewed float64) *coordinationv1.Lease {
	at := metav1.NewMicroTime(afterNoon(renewed))
	seconds := int32(40)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "node-1"},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &at},
	}
}

func afterNoon(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func TestANodeIsSilentWhenTwoRenewalsAreMissing(t *testing.T) {
	silent := func(from, to float64) history.Silences {
		return history.Silences{"node-1": {{From: afterNoon(from), To: afterNoon(to)}}}
	}
	lasts := history.Silences{"node-1": {{From: afterNoon(0)}}}
	// Each event is the renewal that is seen after so many seconds, 0 for none.
	type event struct{ after, renewed float64 }
	for name, tc := range map[string]struct {
		events []event
		want   history.Silences
	}{
		"it renews":                              {[]event{{10, 10}, {20, 20}}, history.Silences{}},
		"one renewal is missing":                 {[]event{{19, 0}, {20, 20}}, history.Silences{}},
		"two are":                                {[]event{{21, 0}}, lasts},
		"two were, and it is back":               {[]event{{21, 0}, {30, 30}, {40, 40}}, silent(0, 30)},
		"two were before anybody looked":         {[]event{{25, 25}}, silent(0, 25)},
		"it renews, and that is seen late":       {[]event{{25, 10}, {26, 20}}, history.Silences{}},
		"it was taken for silent, and seen late": {[]event{{25, 0}, {26, 10}, {26, 20}}, history.Silences{}},
		"an old state is seen again":             {[]event{{10, 10}, {12, 0.5}, {20, 20}}, history.Silences{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, h, clock := newTestNodeWatch(t)
			w.saw(nodeLease(0))
			for _, e := range tc.events {
				clock.SetTime(afterNoon(e.after))
				if e.renewed != 0 {
					w.saw(nodeLease(e.renewed))
				} else {
					w.overdue()
				}
			}
			if !reflect.DeepEqual(h.silences, tc.want) {
				t.Errorf("got %v, want %v", h.silences, tc.want)
			}
		})
	}
}

func TestANodeThatIsSilentWhenSomebodyBeginsToLeadIsSilentSinceItsLastRenewal(t *testing.T) {
	w, h, clock := newTestNodeWatch(t)
	clock.SetTime(afterNoon(35))
	w.saw(nodeLease(10))

	w.overdue()

	if want := (history.Silences{"node-1": {{From: afterNoon(10)}}}); !reflect.DeepEqual(h.silences, want) {
		t.Errorf("got %v, want %v", h.silences, want)
	}
}

func TestSilencesOfANodeAreForgottenWithIt(t *testing.T) {
	for name, gone := range map[string]func(w *nodeWatch){
		"it goes":                func(w *nodeWatch) { w.gone(nodeLease(0)) },
		"it went in a silence":   func(w *nodeWatch) { w.gone(toolscache.DeletedFinalStateUnknown{Obj: nodeLease(0)}) },
		"it went while none led": func(w *nodeWatch) { w.last = nil; w.historian.nodesLeft(w.nodes()) },
	} {
		t.Run(name, func(t *testing.T) {
			w, h, clock := newTestNodeWatch(t)
			w.saw(nodeLease(0))
			clock.SetTime(afterNoon(30))
			w.overdue()
			gone(w)
			if len(h.silences) != 0 {
				t.Errorf("%v is remembered", h.silences)
			}
		})
	}
}

// A leader writes what it knows, and the next goes on with it: a silence that lasted ends with the first sign of life that it sees.
func TestTheNextLeaderGoesOnWithTheSilencesOfNodes(t *testing.T) {
	w, h, clock := newTestNodeWatch(t)
	led := lease("me", noon)
	led.Namespace, led.Name = h.namespace, v1.LeaseLeader
	api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(led).Build()
	h.client, h.reader = api, api
	h.signs.saw(led)
	w.saw(nodeLease(0))
	clock.SetTime(afterNoon(30))
	w.overdue()
	h.signs.saw(lease("me", clock.Now()))
	if !h.flush(t.Context()) {
		t.Fatal("it was not written")
	}

	next, following, later := newTestNodeWatch(t)
	following.client, following.reader = api, api
	if err := following.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (history.Silences{"node-1": {{From: noon.UTC()}}}); !reflect.DeepEqual(following.silences, want) {
		t.Errorf("the next leader knows %v, want %v", following.silences, want)
	}
	later.SetTime(afterNoon(50))
	next.saw(nodeLease(48))

	if want := (history.Silences{"node-1": {{From: noon.UTC(), To: afterNoon(48)}}}); !reflect.DeepEqual(following.silences, want) {
		t.Errorf("when it is back, the next leader knows %v, want %v", following.silences, want)
	}
	if dirty, since := following.takeDirty(); len(dirty) != 1 || since.IsZero() {
		t.Errorf("to write are %q since %v, want the silences", dirty, since)
	}
}
