package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
)

func TestMarginsAreReadBackFromTheLease(t *testing.T) {
	want := fleet.Settings{RefreshLag: 7 * time.Minute, ReadLag: 1500 * time.Millisecond, Skew: 90 * time.Microsecond}
	labels := MarginLabels(want)
	for label, value := range labels {
		if problems := slices.Concat(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)); len(problems) > 0 {
			t.Errorf("%s=%s: %q", label, value, problems)
		}
	}
	l := lease("a", noon)
	l.Labels = labels
	want.Skew = time.Millisecond // never shorter
	got, problems := marginsOf(l)
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%q (-want +got):\n%s", problems, diff)
	}
}

func TestASurveyTakesTheMarginsThatTheControllerStates(t *testing.T) {
	l := lease("a", noon)
	l.Namespace, l.Name = "tidemark-system", v1.LeaseLeader
	l.Labels = MarginLabels(fleet.Settings{RefreshLag: 7 * time.Minute, Skew: 3 * time.Second})
	for name, tc := range map[string]struct {
		change func(*coordinationv1.Lease)
		given  fleet.Settings
		want   fleet.Settings
		remark string
	}{
		"none given": {want: fleet.Settings{RefreshLag: 7 * time.Minute, Skew: 3 * time.Second}},
		"one given":  {given: fleet.Settings{Skew: time.Minute}, want: fleet.Settings{RefreshLag: 7 * time.Minute, Skew: time.Minute}},
		"one that cannot be read": {
			change: func(l *coordinationv1.Lease) { l.Labels[v1.LabelRefreshLag] = "soon" },
			want:   fleet.Settings{Skew: 3 * time.Second},
			remark: `lease tidemark-system/tidemark-controller: label tidemark.dev/refresh-lag: "soon" is no duration above 0 and is disregarded`,
		},
		"a controller that states none": {change: func(l *coordinationv1.Lease) { l.Labels = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			stated := l.DeepCopy()
			stated.Labels = maps.Clone(l.Labels)
			if tc.change != nil {
				tc.change(stated)
			}
			a := newAPI(t, "testdata/shop.yaml")
			if err := a.Create(t.Context(), stated); err != nil {
				t.Fatal(err)
			}
			s := survey(a)
			s.Settings = tc.given
			sight := read(t, s)
			if diff := cmp.Diff(tc.want, sight.Workloads[0].Fleet.Settings); diff != "" {
				t.Errorf("margins (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(sight.Remarks, "\n"), tc.remark) {
				t.Errorf("remarks %q, want %q", sight.Remarks, tc.remark)
			}
		})
	}
}
