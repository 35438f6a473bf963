package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

var started = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// valued is a ConfigMap of the shop that holds one value.
func valued(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"KEY": value}}
}

// copied is the snapshot of that, made before.
func copied(name, value string) *corev1.ConfigMap {
	return snapshot.OfConfigMap(valued(name, value), nameOfCopy(name, value), snapshot.Provenance{
		Source: inShop(workload.ConfigMap, name), Revision: 1, Time: started.Add(-time.Hour),
	})
}

func nameOfCopy(name, value string) string {
	o := inShop(workload.ConfigMap, name)
	return snapshot.Name(o, ContentOfConfigMap(valued(name, value)).Whole(o), 0)
}

// watched is the state of a workload in mode pin that reads ConfigMaps, each as "NAME=VALUE" in the order of their names, as
// they were watched.
func watched(state stamp.State, objects ...string) stamp.State {
	state.Namespace, state.Mode, state.Images, state.Objects = "shop", stamp.Pin, []string{"app:1"}, nil
	for _, text := range objects {
		name, value, _ := strings.Cut(text, "=")
		state.Objects = append(state.Objects, stamp.Object{
			Use:       workload.Consumption{Object: inShop(workload.ConfigMap, name), Env: workload.Keys{All: true}, Required: true},
			Applied:   ContentOfConfigMap(valued(name, value)),
			Versioned: true,
		})
	}
	return state
}

// left is the state after what is decided on it was written, its pins named as they would be.
func left(state stamp.State) stamp.State {
	d := Foresee(state, stamp.Decide(state))
	state.Record, state.Intact, state.Marked = &d.Record, true, true
	if d.Action == stamp.WriteStamp {
		state.Stamp, state.Pins = d.Stamp, d.Pins
	}
	return state
}

// heldBack is the state of a workload that went back from a=2 to a=1, beside b=1.
func heldBack() stamp.State {
	first := left(watched(stamp.State{}, "a=1", "b=1"))
	back := left(watched(first, "a=2", "b=1"))
	back.Stamp, back.Pins = first.Stamp, first.Pins
	back.Revisions = []stamp.Revision{{Number: 2}, {Number: 1, Matches: true}}
	return left(back)
}

func TestAStampIsDecidedOnWhatIsCopiedAndNamesOnlyWhatIsThere(t *testing.T) {
	one := func() stamp.State { return left(watched(stamp.State{}, "a=1", "b=1")) }
	for name, tc := range map[string]struct {
		state   stamp.State
		objects []client.Object
		reason  stamp.Reason
		// pins are those that the stamp names, as "a=VALUE"; none when nothing is written.
		pins []string
		err  error
	}{
		"what was watched is there": {
			state: watched(stamp.State{}, "a=1", "b=1"), objects: []client.Object{valued("a", "1"), valued("b", "1")},
			reason: stamp.FirstPin, pins: []string{"a=1", "b=1"},
		},
		"it changed since": {
			state: watched(stamp.State{}, "a=1", "b=1"), objects: []client.Object{valued("a", "2"), valued("b", "1")},
			reason: stamp.FirstPin, pins: []string{"a=2", "b=1"},
		},
		"it changed back since": {
			state: watched(one(), "a=2", "b=1"), objects: []client.Object{valued("a", "1"), valued("b", "1"), copied("a", "1"), copied("b", "1")},
			reason: stamp.Unchanged,
		},
		"it is gone since, under its pin": {
			state: watched(one(), "a=2", "b=1"), objects: []client.Object{valued("b", "1"), copied("a", "1"), copied("b", "1")},
			reason: stamp.Unchanged,
		},
		"a pin that stays is there": {
			state: watched(heldBack(), "a=2", "b=2"), objects: []client.Object{valued("a", "2"), valued("b", "2"), copied("a", "1")},
			reason: stamp.ContentChanged, pins: []string{"a=1", "b=2"},
		},
		"a pin that stays is gone, and its source has what it held": {
			state: watched(one(), "a=1", "b=2"), objects: []client.Object{valued("a", "1"), valued("b", "2")},
			reason: stamp.ContentChanged, pins: []string{"a=1", "b=2"},
		},
		"a pin that stays is gone, and its source changed since": {
			state: watched(one(), "a=1", "b=2"), objects: []client.Object{valued("a", "2"), valued("b", "2")},
			reason: stamp.ContentChanged, pins: []string{"a=2", "b=2"},
		},
		"a pin that is held is gone": {
			state: watched(heldBack(), "a=2", "b=2"), objects: []client.Object{valued("a", "2"), valued("b", "2")}, err: ErrSnapshotGone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			c := &Copier{Client: api}
			d, err := c.Pin(t.Context(), tc.state, stamp.Decide(tc.state), c.NextRevision, started)
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if d.Reason != tc.reason || (d.Action == stamp.WriteStamp) != (len(tc.pins) > 0) {
				t.Errorf("decided to %s, %s; want %s", d.Action, d.Reason, tc.reason)
			}
			want := map[string]string{}
			for _, text := range tc.pins {
				source, value, _ := strings.Cut(text, "=")
				want[nameOfCopy(source, value)] = value
			}
			if diff := cmp.Diff(want, held(t, api, d.Pins)); diff != "" {
				t.Errorf("what the pins hold (-want +got):\n%s", diff)
			}
			wantThere := slices.Collect(maps.Keys(want))
			var applied []string
			for _, o := range tc.objects {
				cm := o.(*corev1.ConfigMap) //nolint:errcheck // all are
				if SnapshotOf(workload.ConfigMap, cm, cm.Immutable) != nil {
					wantThere = append(wantThere, cm.Name)
					continue
				}
				applied = append(applied, cm.Name+"="+cm.Data["KEY"])
			}
			slices.Sort(wantThere)
			if diff := cmp.Diff(slices.Compact(wantThere), copiesIn(t, api)); diff != "" {
				t.Errorf("the copies that are there (-want +got):\n%s", diff)
			}
			if d.Action != stamp.WriteStamp {
				return
			}
			after := watched(tc.state, applied...)
			after.Record, after.Intact, after.Marked, after.Stamp, after.Pins = &d.Record, true, true, d.Stamp, d.Pins
			if again := stamp.Decide(after); again.Action != stamp.Nothing {
				t.Errorf("it accounts for other content than it copied: decided again to %s, %s", again.Action, again.Reason)
			}
		})
	}
}

func TestACopyThatSomebodyDeletedIsMadeAgainUnderItsName(t *testing.T) {
	one := left(watched(stamp.State{}, "a=1", "b=1"))
	roll := one
	roll.Mode = stamp.Roll
	for name, tc := range map[string]struct {
		state    stamp.State
		objects  []client.Object
		restored []workload.Object
	}{
		"both are there":                  {one, []client.Object{valued("a", "1"), valued("b", "1"), copied("a", "1"), copied("b", "1")}, nil},
		"one is gone":                     {one, []client.Object{valued("a", "1"), valued("b", "1"), copied("b", "1")}, []workload.Object{inShop(workload.ConfigMap, "a")}},
		"its source changed since":        {one, []client.Object{valued("a", "2"), valued("b", "1"), copied("b", "1")}, nil},
		"the workload is not in mode pin": {roll, []client.Object{valued("a", "1"), valued("b", "1"), copied("b", "1")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			c := &Copier{Client: api}
			restored, err := c.Restore(t.Context(), tc.state, c.NextRevision, started)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.restored, restored); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if len(restored) > 0 {
				held(t, api, tc.state.Pins)
			} else if got := len(copiesIn(t, api)); got != len(tc.objects)-2 {
				t.Errorf("there are %d copies, want those of before", got)
			}
		})
	}
}

// held reads what the snapshots of pins hold, by their names.
func held(t *testing.T, api client.Client, pins snapshot.Pins) map[string]string {
	t.Helper()
	out := map[string]string{}
	for o, name := range pins {
		cm := &corev1.ConfigMap{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: name}, cm); err != nil {
			t.Errorf("%s is pinned to %s: %v", o, name, err)
		}
		out[name] = cm.Data["KEY"]
	}
	return out
}

// copiesIn are the names of the snapshots that are there.
func copiesIn(t *testing.T, api client.Client) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := api.List(t.Context(), list, client.MatchingLabels{v1.LabelSnapshot: v1.True}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

func TestAConfigurationThatChangesFasterThanItCanBeCopiedIsTriedAgain(t *testing.T) {
	const sources = "abcde"
	var before, now []string
	api := fake.NewClientBuilder()
	for _, name := range strings.Split(sources, "") {
		before, now = append(before, name+"=1"), append(now, name+"=1")
		api = api.WithObjects(valued(name, "2"), copied(name, "1"))
	}
	now[0] = "a=0" // all that has been seen of it
	state := watched(left(watched(stamp.State{}, before...)), now...)
	// Whenever a source is read, the copy of the next one goes, so that this must be copied again and is found to have changed.
	c := &Copier{Client: interceptor.NewClient(api.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if i := strings.Index(sources, key.Name); i >= 0 && i+1 < len(sources) {
				if err := c.Delete(ctx, copied(sources[i+1:i+2], "1")); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})}
	d, err := c.Pin(t.Context(), state, stamp.Decide(state), c.NextRevision, started)
	if !errors.Is(err, ErrUnsettled) {
		t.Errorf("got %v, %v; want %v", d.Pins, err, ErrUnsettled)
	}
}

func TestNothingIsStampedWhenAReadOrACopyFails(t *testing.T) {
	away := fmt.Errorf("the API is away")
	for name, fails := range map[string]interceptor.Funcs{
		"the source cannot be read": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		}},
		"the copy cannot be made": {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return away }},
		"copies cannot be counted": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return away
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Copier{Client: fake.NewClientBuilder().WithObjects(valued("a", "1")).WithInterceptorFuncs(fails).Build()}
			state := watched(stamp.State{}, "a=1")
			if d, err := c.Pin(t.Context(), state, stamp.Decide(state), c.NextRevision, started); !errors.Is(err, away) {
				t.Errorf("decided to %s with %v, %v", d.Action, d.Pins, err)
			}
		})
	}
}

// The API server counts a creation against the quota before it finds out that the object exists.
func TestACopyThatIsThereIsTakenWhereTheQuotaIsUsedUp(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(valued("a", "1"), copied("a", "1")).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("exceeded quota"))
		},
	}).Build()
	c := &Copier{Client: api}
	source, err := c.Read(t.Context(), inShop(workload.ConfigMap, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := c.Copy(t.Context(), source, 2, started); err != nil || name != nameOfCopy("a", "1") {
		t.Errorf("the copy is %q, %v", name, err)
	}
}
