package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const patience = 30 * time.Second

// stage is a cluster in memory whose API can be cut off, and whose clock the test moves.
type stage struct {
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakeClock
	cut    atomic.Bool
	writes atomic.Int32
	// written is when any Lease was last written, by the API server's clock.
	written atomic.Pointer[time.Time]
	said    chan string
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, clock: clocktesting.NewFakeClock(noon), said: make(chan string, 100)}
	note := func(err error) error {
		if err == nil {
			s.writes.Add(1)
			now := s.clock.Now()
			s.written.Store(&now)
		}
		return err
	}
	refuse := errors.New("no route to host")
	s.client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if s.cut.Load() {
				return refuse
			}
			err := c.Get(ctx, key, obj, opts...)
			if l, is := obj.(*coordinationv1.Lease); is && err == nil && s.written.Load() != nil {
				l.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: *s.written.Load()}}}
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if s.cut.Load() {
				return refuse
			}
			return note(c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if s.cut.Load() {
				return refuse
			}
			return note(c.Update(ctx, obj, opts...))
		},
	})
	return s
}

func (s *stage) keeper() Keeper {
	return Keeper{Client: s.client, Clock: s.clock, Server: s.clock.Now, Say: func(text string) { s.said <- text }}
}

func deploy(id string) Deploy {
	return Deploy{
		ID: id, Release: types.NamespacedName{Namespace: "prod", Name: "web"}, Holder: "host-" + id, Starter: "ann", Job: "https://ci/" + id,
		Timeout: 10 * time.Minute, Duration: 3 * time.Minute, Policy: release.PolicyForward,
		Pod: &Pod{types.NamespacedName{Namespace: "ci", Name: "job"}, "u1", "build", "node-1"},
	}
}

// take takes the lease while the clock runs, a second at a time.
func (s *stage) take(d Deploy, wait time.Duration) (*Hold, helm.Before, error) {
	s.t.Helper()
	type result struct {
		h   *Hold
		b   helm.Before
		err error
	}
	done := make(chan result, 1)
	go func() {
		h, b, err := s.keeper().Take(s.t.Context(), d, wait)
		done <- result{h, b, err}
	}()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		select {
		case r := <-done:
			return r.h, r.b, r.err
		default:
			s.run(time.Second)
		}
	}
	s.t.Fatal("the lease is neither taken nor refused")
	return nil, helm.Before{}, nil
}

// run lets time pass for who waits.
func (s *stage) run(d time.Duration) {
	if s.clock.HasWaiters() {
		s.clock.Step(d)
	}
	time.Sleep(time.Millisecond)
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) read() *coordinationv1.Lease {
	s.t.Helper()
	l := &coordinationv1.Lease{}
	s.must(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "prod", Name: "tidemark-deploy-web"}, l))
	return l
}

func (s *stage) decoded() release.Lease {
	s.t.Helper()
	l, err := helm.DecodeLease(s.read(), s.clock.Now())
	s.must(err)
	return *l
}

func TestALeaseTellsOfItsDeploy(t *testing.T) {
	s := newStage(t)
	h, before, err := s.take(deploy("a"), 0)
	s.must(err)
	if before.Lease != nil || before.Problem != "" {
		t.Errorf("before: %+v", before)
	}
	s.clock.Step(time.Second)
	s.must(h.Started(t.Context(), 7))
	want := release.Lease{
		Deploy: "a", Revision: 7, Holder: "host-a", Starter: "ann", Job: "https://ci/a", Began: noon.Add(time.Second), Timeout: 10 * time.Minute,
		Duration: 3 * time.Minute, Renewed: noon.Add(time.Second), Policy: release.PolicyForward, ResourceVersion: "2", Written: noon.Add(time.Second),
		Pod: release.JobPod{Namespace: "ci", Name: "job", UID: "u1", Container: "build", Node: "node-1"},
	}
	got := s.decoded()
	got.Renewed = got.Renewed.UTC()
	if got != want {
		t.Errorf("lease %+v, want %+v", got, want)
	}
	s.must(h.Signalled(t.Context(), "SIGTERM"))
	s.must(h.Signalled(t.Context(), "SIGINT"))
	if got := s.read().Annotations[v1.AnnotationDeploySignal]; got != "SIGTERM 2026-11-30T12:00:01Z" {
		t.Errorf("signal %q", got)
	}
	s.must(h.Finish(t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: 1, Stopped: release.StoppedInSilence}))
	got = s.decoded()
	if f := got.Finished; f == nil || *f != (release.Outcome{Time: noon.Add(time.Second), ExitStatus: 1, Stopped: release.StoppedInSilence}) {
		t.Errorf("outcome %+v", f)
	}
	if got.Signal != "SIGTERM" || !got.Signalled.Equal(noon.Add(time.Second)) || !got.Cancelled() {
		t.Errorf("signal %q at %s, cancelled: %t", got.Signal, got.Signalled, got.Cancelled())
	}

	// The next one finds it, and nothing of it is left in the lease but whom to tell of its end.
	d := deploy("b")
	d.Starter, d.Policy, d.Pod = "", "", nil
	_, before, err = s.take(d, 0)
	s.must(err)
	if before.Lease == nil || before.Lease.Deploy != "a" || before.Lease.Revision != 7 || before.Lease.Finished == nil {
		t.Errorf("before: %+v", before.Lease)
	}
	l := s.read()
	if len(l.Annotations) != 3 || *l.Spec.LeaseTransitions != 1 || *l.Spec.HolderIdentity != "host-b" || l.Labels[v1.LabelDeploy] != "b" {
		t.Errorf("lease %+v", l)
	}
}

func TestWhomToTellOutlivesTheLeaseOfTheirDeploy(t *testing.T) {
	ended := func(status int, signal string) func(*stage, *Hold) {
		return func(s *stage, h *Hold) {
			if signal != "" {
				s.must(h.Signalled(s.t.Context(), signal))
			}
			s.must(h.Finish(s.t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: status}))
		}
	}
	s := newStage(t)
	for i, end := range []func(*stage, *Hold){
		ended(1, "SIGTERM"),    // a: cancelled
		ended(0, ""),           // b: succeeded
		ended(1, ""),           // c: failed, which its job says
		func(*stage, *Hold) {}, // d: killed
		ended(137, ""),         // e: its command was killed
		ended(0, "SIGHUP"),     // f: succeeded in spite of a signal
		ended(0, ""),           // g: finds them
	} {
		d := deploy(string(rune('a' + i)))
		d.Starter = "starter of " + d.ID
		s.clock.Step(time.Hour) // a guard that was killed is silent by then
		h, _, err := s.take(d, 0)
		s.must(err)
		s.must(h.Started(t.Context(), int64(7+i)))
		end(s, h)
	}
	var got []string
	for _, f := range helm.Formers(s.read(), s.clock.Now()) {
		l := f.Lease
		got = append(got, fmt.Sprintf("%s %d %s %s %s cancelled: %t", l.Deploy, l.Revision, l.Starter, l.Job, l.Signal, l.Cancelled()))
	}
	want := []string{
		"a 7 starter of a https://ci/a SIGTERM cancelled: true", "d 10 starter of d https://ci/d  cancelled: false",
		"e 11 starter of e https://ci/e  cancelled: true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lease has\n%q, want\n%q", got, want)
	}
	if old := helm.Formers(s.read(), s.clock.Now().Add(24*time.Hour)); len(old) > 0 {
		t.Errorf("after a day there are %+v", old)
	}
	for i := range 7 { // each killed
		s.clock.Step(time.Hour)
		_, _, err := s.take(deploy(fmt.Sprint("k", i)), 0)
		s.must(err)
	}
	if kept := helm.Formers(s.read(), s.clock.Now()); len(kept) != 5 || kept[4].Lease.Deploy != "k5" {
		t.Errorf("of many are kept %+v", kept)
	}
	s.clock.Step(25 * time.Hour) // the last was killed so long ago that its starter was told
	_, _, err := s.take(deploy("late"), 0)
	s.must(err)
	if kept := helm.Formers(s.read(), s.clock.Now()); len(kept) > 0 {
		t.Errorf("of long ago are kept %+v", kept)
	}
}

func TestALeaseThatIsHeldIsRefusedWithItsHolder(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.must(h.Started(t.Context(), 7))
	s.clock.Step(70 * time.Second)
	_, _, err = s.take(deploy("b"), 0)
	var held *HeldError
	want := "release prod/web is being deployed by ann (host-a, https://ci/a) since 2026-11-30T12:00:00Z, with a sign of life 1m10s ago: wait for its end with --wait-for-lock"
	if !errors.As(err, &held) || err.Error() != want || IsOut(err) {
		t.Errorf("error %v, want %s", err, want)
	}
	if s.decoded().Deploy != "a" {
		t.Error("the lease was taken")
	}
}

func TestALeaseIsWaitedForUntilItsGuardEnds(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	go func() {
		<-s.said
		_ = h.Finish(context.Background(), release.Outcome{})
	}()
	_, before, err := s.take(deploy("b"), time.Hour)
	s.must(err)
	if before.Lease.Finished == nil || s.decoded().Deploy != "b" {
		t.Errorf("before: %+v", before.Lease)
	}
}

func TestAReadThatFailsInAWaitEndsItNot(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	go func() {
		<-s.said
		s.cut.Store(true)
		time.Sleep(20 * time.Millisecond)
		s.cut.Store(false)
		_ = h.Finish(context.Background(), release.Outcome{})
	}()
	_, before, err := s.take(deploy("b"), time.Hour)
	s.must(err)
	if before.Lease.Finished == nil || s.decoded().Deploy != "b" {
		t.Errorf("before: %+v", before.Lease)
	}

	// Where it stays so, the command is not run either.
	_, _, err = s.take(deploy("c"), 0)
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	go func() {
		<-s.said
		s.cut.Store(true)
	}()
	if _, _, err = s.take(deploy("c"), 10*time.Minute); !errors.As(err, &held) || IsOut(err) {
		t.Errorf("error %v", err)
	}
}

func TestAWaitEnds(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = h.Keep(ctx) }()
	began := s.clock.Now()
	_, _, err = s.take(deploy("b"), 10*time.Minute)
	var held *HeldError
	if waited := s.clock.Since(began); !errors.As(err, &held) || waited < 10*time.Minute {
		t.Errorf("%v after %s", err, waited)
	}
}

func TestASilentLeaseIsTakenAfterItsWholeDuration(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.must(h.Started(t.Context(), 7))
	s.clock.Step(6 * time.Hour) // what the API server's clock tells is not enough
	began := s.clock.Now()
	_, before, err := s.take(deploy("b"), 0)
	s.must(err)
	if waited := s.clock.Since(began); waited < 3*time.Minute {
		t.Errorf("taken after %s", waited)
	}
	if l := before.Lease; l.Deploy != "a" || l.Unchanged < 3*time.Minute || l.Unchanged > time.Hour {
		t.Errorf("before: %+v", l)
	}
	if said := <-s.said; !strings.Contains(said, "gives no sign of life: watching its lease for 3m0s") {
		t.Errorf("said %q", said)
	}
}

func TestASilentLeaseThatMovesAgainIsNotTaken(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.clock.Step(6 * time.Hour)
	go func() {
		<-s.said
		_ = h.renew(context.Background(), patience)
	}()
	_, _, err = s.take(deploy("b"), 0)
	var held *HeldError
	if !errors.As(err, &held) {
		t.Errorf("error %v", err)
	}
}

func TestOfTwoThatSeeALeaseFreeOneHasIt(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.must(h.Finish(t.Context(), release.Outcome{}))
	former := s.read()
	k := s.keeper()
	_, first := k.write(t.Context(), deploy("b"), former)
	_, second := k.write(t.Context(), deploy("c"), former)
	if first != nil || second == nil || s.decoded().Deploy != "b" {
		t.Errorf("%v, %v", first, second)
	}
}

func TestALeaseThatCannotBeReadIsWatched(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.must(h.write(t.Context(), func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationDeployRevision] = "seven" }))
	began := s.clock.Now()
	_, before, err := s.take(deploy("b"), 0)
	s.must(err)
	if s.clock.Since(began) < defaultDuration || !strings.Contains(before.Problem, v1.AnnotationDeployRevision) {
		t.Errorf("after %s: %+v", s.clock.Since(began), before)
	}
}

// keep keeps a lease in the background.
func (s *stage) keep(h *Hold) <-chan error {
	ctx, stop := context.WithCancel(s.t.Context())
	s.t.Cleanup(stop)
	kept := make(chan error, 1)
	go func() { kept <- h.Keep(ctx) }()
	return kept
}

func TestALeaseIsRenewedWithOneWriteForAHeartbeat(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	kept := s.keep(h)
	before := s.writes.Load()
	for range 600 { // ten minutes
		s.run(time.Second)
	}
	select {
	case err := <-kept:
		t.Fatalf("it was given up: %v", err)
	default:
	}
	if n := s.writes.Load() - before; n < 15 || n > 20 {
		t.Errorf("%d writes in ten minutes, of a heartbeat every 30 seconds", n)
	}
	if left := h.Left(); left < time.Minute {
		t.Errorf("%s left", left)
	}
}

func TestALeaseThatCannotBeRenewedIsGivenUpBeforeItExpires(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	kept := s.keep(h)
	s.cut.Store(true)
	for range 400 {
		s.run(time.Second)
		select {
		case err := <-kept:
			if age, _ := h.age(); !errors.Is(err, ErrSilent) || age < 2*time.Minute || age >= 3*time.Minute || h.Left() <= 0 {
				t.Errorf("%v after %s, with %s left", err, age, h.Left())
			}
			return
		default:
		}
	}
	t.Error("it is not given up")
}

func TestAnOutageOfAMinuteIsHarmless(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	kept := s.keep(h)
	for i := range 300 {
		s.cut.Store(i > 40 && i < 100)
		s.run(time.Second)
	}
	select {
	case err := <-kept:
		t.Errorf("given up: %v", err)
	default:
	}
}

func TestWhatCouldNotBeNotedComesWithTheNextWrite(t *testing.T) {
	for name, next := range map[string]func(*stage, *Hold) error{
		"a heartbeat": func(s *stage, h *Hold) error { return h.renew(s.t.Context(), patience) },
		"the end": func(s *stage, h *Hold) error {
			return h.Finish(s.t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: 1})
		},
	} {
		s := newStage(t)
		h, _, err := s.take(deploy("a"), 0)
		s.must(err)
		s.cut.Store(true)
		if started, signalled := h.Started(t.Context(), 7), h.Signalled(t.Context(), "SIGTERM"); started == nil || signalled == nil {
			t.Fatalf("it was noted: %v, %v", started, signalled)
		}
		s.clock.Step(time.Minute)
		s.cut.Store(false)
		s.must(next(s, h))
		if got := s.decoded(); got.Revision != 7 || !got.Began.Equal(noon) || got.Signal != "SIGTERM" || !got.Signalled.Equal(noon) {
			t.Errorf("%s: lease %+v", name, got)
		}
		s.must(h.renew(t.Context(), patience))
		if len(h.owed) > 0 {
			t.Errorf("%s: %d notes are owed still", name, len(h.owed))
		}
	}
}

func TestALeaseThatAnotherTookIsLost(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	if _, err := s.keeper().write(t.Context(), deploy("b"), s.read()); err != nil {
		t.Fatal(err)
	}
	if err := h.Finish(t.Context(), release.Outcome{}); !errors.Is(err, ErrLost) {
		t.Errorf("the end was noted on another's lease: %v", err)
	}
	kept := s.keep(h)
	for range 100 {
		s.run(time.Second)
		select {
		case err := <-kept:
			if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			return
		default:
		}
	}
	t.Error("it is not given up")
}

func TestALeaseThatAPersonTouchedOrDeletedIsKept(t *testing.T) {
	s := newStage(t)
	h, _, err := s.take(deploy("a"), 0)
	s.must(err)
	l := s.read()
	l.Annotations["note"] = "mine"
	s.must(s.client.Update(t.Context(), l))
	s.must(h.Started(t.Context(), 7))
	if l := s.read(); l.Annotations["note"] != "mine" || l.Annotations[v1.AnnotationDeployRevision] != "7" {
		t.Errorf("annotations %v", l.Annotations)
	}
	s.must(s.client.Delete(t.Context(), s.read()))
	s.must(h.renew(t.Context(), patience))
	if got := s.decoded(); got.Deploy != "a" || got.Revision != 7 {
		t.Errorf("lease %+v", got)
	}
}

func TestWhatALeaseToldOfAnUnfinishedDeployIsGivenBack(t *testing.T) {
	s := newStage(t)
	first, _, err := s.take(deploy("a"), 0)
	s.must(err)
	s.must(first.Started(t.Context(), 7))
	want := s.decoded()
	for range 2 { // given back again it is no fresher
		s.clock.Step(time.Hour)
		second, _, err := s.take(deploy("b"), 0)
		s.must(err)
		if s.read().Annotations[v1.AnnotationDeployWritten] != "" {
			t.Error("the deploy that has the lease is told to have written it before")
		}
		s.must(second.GiveBack(t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: 125}))
		got := s.decoded()
		want.ResourceVersion, want.Unchanged = got.ResourceVersion, s.clock.Since(noon)
		if got.Written = got.Written.UTC(); got != want {
			t.Errorf("lease %+v, want %+v", got, want)
		}
	}
	s.must(first.renew(t.Context(), patience)) // it was stopped, and goes on
	if got := s.decoded(); got.Unchanged != 0 || !got.Written.Equal(s.clock.Now()) {
		t.Errorf("a lease that its guard renewed was written at %s, %s ago", got.Written, got.Unchanged)
	}
	// Of a deploy that ended as well: it proves that what it left pending is dead.
	s.must(first.Finish(t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: 137}))
	second, _, err := s.take(deploy("b"), 0)
	s.must(err)
	s.must(second.GiveBack(t.Context(), release.Outcome{Time: s.clock.Now(), ExitStatus: 125}))
	if got := s.decoded(); got.Deploy != "a" || got.Finished == nil || got.Finished.ExitStatus != 137 {
		t.Errorf("lease %+v", got)
	}
}

func TestWhoIsAtWork(t *testing.T) {
	for want, l := range map[string]release.Lease{
		"ann (h, https://ci)": {Starter: "ann", Holder: "h", Job: "https://ci"}, "ann": {Starter: "ann"}, "h": {Holder: "h"}, "somebody": {},
	} {
		if got := Who(&l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNothingIsLeftOfALeaseThatRanOutWhileTheMachineSlept(t *testing.T) {
	if got := left(3*time.Minute, 10*time.Second, 10*time.Minute); got != 0 {
		t.Errorf("%s is left", got)
	}
	if got := left(3*time.Minute, 10*time.Second, 10*time.Second); got != 140*time.Second {
		t.Errorf("%s is left of a lease that was renewed 10s ago", got)
	}
}
