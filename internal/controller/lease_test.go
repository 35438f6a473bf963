package controller

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}}}
	if holder != "" {
		l.Spec.HolderIdentity = &holder
	}
	return l
}

func TestSignsTellTheLastMomentOfTheLeaderBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		seen []*coordinationv1.Lease
		want time.Time
	}{
		"nobody was there before": {seen: []*coordinationv1.Lease{lease("me", noon)}},
		"the leader before renewed until it was killed": {
			seen: []*coordinationv1.Lease{lease("old", noon), lease("old", noon.Add(time.Minute)), lease("me", noon.Add(2*time.Minute))},
			want: noon.Add(time.Minute),
		},
		"it gave the Lease up": {
			seen: []*coordinationv1.Lease{lease("old", noon), lease("", noon.Add(time.Second)), lease("me", noon.Add(2*time.Second))},
			want: noon.Add(time.Second),
		},
		"states may arrive out of order": {
			seen: []*coordinationv1.Lease{lease("me", noon.Add(time.Hour)), lease("old", noon.Add(time.Minute)), lease("old", noon)},
			want: noon.Add(time.Minute),
		},
		"a Lease that nobody renewed says nothing": {seen: []*coordinationv1.Lease{{}, lease("me", noon)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSigns(clocktesting.NewFakePassiveClock(noon))
			for _, l := range tc.seen {
				s.saw(l)
			}
			if got := s.before("me"); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSignsMeasureSilence(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	s := newSigns(clock)
	clock.SetTime(noon.Add(time.Hour))
	if got := s.silence(); got != 0 {
		t.Errorf("before the first sign there is no silence: got %s", got)
	}
	s.saw(lease("me", noon))
	clock.SetTime(noon.Add(time.Hour + 7*time.Second))
	if got := s.silence(); got != 7*time.Second {
		t.Errorf("got %s, want 7s", got)
	}
}
