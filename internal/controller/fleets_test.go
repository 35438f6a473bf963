package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

var sender = workload.Object{Kind: workload.ConfigMap, Namespace: "mail", Name: "sender-config"}

func senderConfig(lease string) digest.Content {
	return digest.OfConfigMap(sender.Namespace, sender.Name, map[string]string{"LEASE": lease, "QUEUE": "outgoing"}, nil)
}

// drained is the incident `lease`: a change two months ago, of which the pods know that started an hour ago.
func drained(now time.Time, old, young int) cluster.Workload {
	use := workload.Consumption{Object: sender, Env: workload.Keys{All: true}, Required: true}
	before, after := senderConfig("10m"), senderConfig("2m")
	edit := now.Add(-60 * 24 * time.Hour)
	f := fleet.Fleet{
		Now: now, Namespace: "mail", RolloutDone: true, Budget: 7 * time.Minute,
		Objects: []fleet.Object{{Use: use, Applied: &after, LogTo: now, Log: history.Log{Object: sender, Versions: []history.Version{
			{Seen: edit.Add(-90 * 24 * time.Hour), Content: before},
			{NotBefore: edit.Add(-time.Second), Seen: edit, Content: after},
		}}}},
	}
	for i := range old + young {
		created := edit.Add(-24 * time.Hour)
		if i >= old {
			created = now.Add(-time.Hour)
		}
		f.Pods = append(f.Pods, fleet.Pod{
			Name: fmt.Sprintf("sender-%d", i), Created: created, Ready: true, Phase: "Running",
			Containers: []fleet.Container{{Name: "sender", Role: workload.RoleMain, Started: created.Add(time.Second), Uses: []workload.Consumption{use}}},
		})
	}
	return cluster.Workload{Target: cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "mail", Name: "sender"}, Fleet: f}
}

// observatory is a look at fleets with what it reads given by the test.
type observatory struct {
	*fleets
	registry *prometheus.Registry
	logged   *strings.Builder
	sight    *cluster.Sight
	err      error
}

func newObservatory(t *testing.T) *observatory {
	t.Helper()
	o := &observatory{registry: prometheus.NewPedanticRegistry(), logged: &strings.Builder{}}
	metrics, err := NewFleetMetrics(o.registry)
	if err != nil {
		t.Fatal(err)
	}
	o.fleets = &fleets{
		clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), metrics: metrics, interval: time.Minute,
		log:  funcr.New(func(_, args string) { o.logged.WriteString(args + "\n") }, funcr.Options{}),
		read: func(context.Context) (*cluster.Sight, error) { return o.sight, o.err },
	}
	return o
}

// series are those of single fleets, as text.
func (o *observatory) series(t *testing.T) []string {
	t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "tidemark_fleet_") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if !slices.Contains([]string{"kind", "namespace"}, l.GetName()) {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			out = append(out, fmt.Sprintf("%s %s %v", strings.TrimPrefix(f.GetName(), "tidemark_fleet_"), strings.Join(labels, " "), m.GetGauge().GetValue()))
		}
	}
	return out
}

func TestFleetsAreExportedAsStatusShowsThem(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := newObservatory(t)
	if got := o.series(t); got != nil {
		t.Errorf("before the first look: %v", got)
	}
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{drained(now, 18, 6)}}
	o.look(t.Context())
	f := o.sight.Workloads[0].Judge()
	want := []string{
		"differing_keys name=sender 1",
		"dormant_seconds name=sender 5.184e+06",
		"pods name=sender state=applied version=" + f.Versions[0].Version + " 6",
		"pods name=sender state=older version=" + f.Versions[1].Version + " 18",
		"pods_behind name=sender 18",
		"rollout_budget_seconds name=sender 420",
		"verdict name=sender owner= verdict=split 1",
		"verdict_timestamp_seconds name=sender 9.999964e+08",
		"versions name=sender 2",
	}
	if diff := cmp.Diff(want, o.series(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWorkloadsOfOneNameInTwoGroupsHaveSeriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := newObservatory(t)
	added := func(group, kind string, applied int) cluster.Workload {
		w := drained(now, 0, applied)
		w.Kind.Group, w.Kind.GroupVersionKind.Kind = group, kind
		return w
	}
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{
		drained(now, 18, 6), added("apps.example.org", "Deployment", 3), added("a.example.org", "Machine", 3), added("b.example.org", "Machine", 3),
	}}
	o.look(t.Context())
	if got := gauged(t, o.registry, "tidemark_fleet_versions"); !maps.Equal(got, map[string]float64{
		"Deployment,sender,mail": 2, "Deployment.apps.example.org,sender,mail": 1,
		"Machine.a.example.org,sender,mail": 1, "Machine.b.example.org,sender,mail": 1,
	}) {
		t.Errorf("versions are %v", got)
	}
}

func TestAgeOfADormantChangeIsNotClaimedWhereItIsNotKnown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	unwatched := drained(now, 0, 3)
	unwatched.Fleet.Objects[0].Log = history.Log{}
	inPart := drained(now, 0, 3)
	inPart.Fleet.Pods[1].Containers[0].Started = now.Add(-60 * 24 * time.Hour) // while it changed
	inPart.Fleet.Pods[1].Created = inPart.Fleet.Pods[1].Containers[0].Started
	blind := drained(now, 0, 3)
	blind.Blind = "no right to list pods"
	for name, tc := range map[string]struct {
		of   cluster.Workload
		want map[string]float64
	}{
		"all pods run what is applied":  {drained(now, 0, 3), map[string]float64{"Deployment,sender,mail": 0}},
		"nothing is remembered":         {unwatched, map[string]float64{}},
		"of one pod it is not known":    {inPart, map[string]float64{}},
		"the pods may not be looked at": {blind, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newObservatory(t)
			o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{tc.of}}
			o.look(t.Context())
			if got := gauged(t, o.registry, "tidemark_fleet_dormant_seconds"); !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := gauged(t, o.registry, "tidemark_fleet_pods_behind"); len(got) != 1 {
				t.Errorf("the fleet has %d series of pods behind, want one", len(got))
			}
		})
	}
}

func TestFleetsInModePinAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	pinned, rolled := drained(now, 0, 1), drained(now, 0, 1)
	rolled.Name = "other"
	pinned.Fleet.Mode, rolled.Fleet.Mode = stamp.Pin, stamp.Roll
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{pinned, rolled}}
	o.look(t.Context())
	if got := gauged(t, o.registry, "tidemark_fleets_pinned"); !maps.Equal(got, map[string]float64{"": 1}) {
		t.Errorf("it is %v", got)
	}
}

// gauged gives the values of a gauge by the values of its labels.
func gauged(t *testing.T, registry prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, ",")] = m.GetGauge().GetValue()
		}
	}
	return got
}

func TestFleetWithoutConfigurationHasNoSeries(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	w := drained(now, 0, 3)
	w.Fleet.Objects = nil
	for i := range w.Fleet.Pods {
		w.Fleet.Pods[i].Containers[0].Uses = nil
	}
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w}}
	o.look(t.Context())
	if got := o.series(t); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestVersionsOfAFleetAreBounded(t *testing.T) {
	t.Parallel()
	m := measured{result: fleet.Result{Verdict: fleet.Split}}
	for i := range 40 {
		version := fmt.Sprintf("v%d", i)
		m.result.Versions = append(m.result.Versions, fleet.VersionCount{Version: version, Behind: true, Pods: i + 1})
	}
	// The smallest are the applied one, and one of which it is not known whether it is.
	m.result.Versions = append(m.result.Versions, fleet.VersionCount{Pods: 3}, fleet.VersionCount{Pods: 2, Behind: true},
		fleet.VersionCount{Version: "applied", Applied: true}, fleet.VersionCount{Version: "odd"})
	counts, known := m.pods()
	pods := 0
	for _, c := range counts {
		pods += c.pods
	}
	if known != 42 || len(counts) != maxVersions+5 || pods != 40*41/2+5 {
		t.Errorf("%d series for %d pods of %d versions: %v", len(counts), pods, known, counts)
	}
}

// TestPodsOfWhichNothingIsKnownAreNotOlder has pods known to be behind beside pods of which nothing is known; of none is all known.
func TestPodsOfWhichNothingIsKnownAreNotOlder(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	w := drained(now, 2, 3)
	unread := workload.Consumption{Object: workload.Object{Kind: workload.Secret, Namespace: "mail", Name: "relay"}, Env: workload.Keys{All: true}}
	w.Fleet.Objects = append(w.Fleet.Objects, fleet.Object{Use: unread, Problem: "secrets are not readable"})
	for i := range w.Fleet.Pods {
		c := &w.Fleet.Pods[i].Containers[0]
		c.Uses = append(c.Uses, unread)
	}
	result := fleet.Judge(w.Fleet)
	if got, want := versionsOf(result), "3 unknown, 2 older"; got != want {
		t.Errorf("told of %q, want %q", got, want)
	}
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w}}
	o.look(t.Context())
	got := o.series(t)
	for _, want := range []string{"pods name=sender state=older version= 2", "pods name=sender state=unknown version= 3"} {
		if !slices.Contains(got, want) {
			t.Errorf("no series %q in %v", want, got)
		}
	}
}

// TestALostRightEndsNothing loses the right to list one kind for two looks.
func TestALostRightEndsNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in := newObservatory(t), newInbox(t)
	o.tells(t, fake.NewClientBuilder().Build(), in)
	o.sight = &cluster.Sight{Now: now}
	o.settles(t)
	w := drained(now, 24, 0)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w}}
	o.look(t.Context())
	before := o.series(t)
	o.sight = &cluster.Sight{Now: now, LeftOut: []cluster.Kind{w.Kind}}
	o.look(t.Context())
	o.look(t.Context())
	if diff := cmp.Diff(before, o.series(t)); diff != "" || len(before) == 0 {
		t.Errorf("-before +after:\n%s", diff)
	}
	other := w
	other.Name = "other"
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w, other}}
	o.look(t.Context())
	if got := in.all(t, 2); got[0].Status != "firing" || got[1].Status != "firing" {
		t.Errorf("got %+v", got)
	}
	o.sight = &cluster.Sight{Now: now}
	o.look(t.Context())
	if got := o.series(t); got != nil {
		t.Errorf("of fleets that are gone there is %v", got)
	}
}

func TestLookThatFailsLeavesTheSeries(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{drained(now, 18, 6)}, Remarks: []string{"missing the right to list nodes"}}
	o.look(t.Context())
	o.look(t.Context())
	before := o.series(t)
	o.sight, o.err = nil, errors.New("the API does not answer")
	o.look(t.Context())
	o.look(t.Context())
	if diff := cmp.Diff(before, o.series(t)); diff != "" || len(before) == 0 {
		t.Errorf("-before +after:\n%s", diff)
	}
	for _, once := range []string{"missing the right to list nodes", "the API does not answer"} {
		if n := strings.Count(o.logged.String(), once); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", once, n, o.logged)
		}
	}
}

func TestProcessThatNoLongerLeadsHasNoSeries(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{drained(now, 18, 6)}}
	ctx, stop := context.WithCancel(t.Context())
	read := o.read
	looked := make(chan struct{}, 1)
	o.read = func(ctx context.Context) (*cluster.Sight, error) {
		defer func() { looked <- struct{}{} }()
		return read(ctx)
	}
	ended := make(chan error)
	go func() { ended <- o.Start(ctx) }()
	<-looked
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := o.series(t); got != nil {
		t.Errorf("got %v", got)
	}
	if !o.NeedLeaderElection() {
		t.Error("it runs in every replica")
	}
}

func TestReferencesThatDoNotMatchTheirPinsAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	w := drained(now, 0, 3)
	for i := range 2 {
		w.Fleet.Pods[i].Unmatched = []workload.Object{sender, {Kind: workload.ConfigMap, Namespace: "mail", Name: "other"}}
	}
	o := newObservatory(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w}}
	o.look(t.Context())
	if got := o.series(t); !slices.Contains(got, "unmatched_references name=sender 4") {
		t.Errorf("got %v", got)
	}
}
