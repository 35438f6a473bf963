package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
)

// MarginLabels are the labels of the leader Lease by which a controller states its margins, so that whoever else judges fleets does it by
// the same. Each is rounded up to a millisecond.
func MarginLabels(s fleet.Settings) map[string]string {
	out := map[string]string{}
	for label, margin := range labelled(&s) {
		if *margin > 0 {
			out[label] = (*margin + time.Millisecond - 1).Truncate(time.Millisecond).String()
		}
	}
	return out
}

// labelled are the margins that a controller states, by the labels.
func labelled(s *fleet.Settings) map[string]*time.Duration {
	return map[string]*time.Duration{v1.LabelRefreshLag: &s.RefreshLag, v1.LabelReadLag: &s.ReadLag, v1.LabelClockSkew: &s.Skew}
}

// marginsOf are the margins that the Lease states, and which of them cannot be read.
func marginsOf(lease *coordinationv1.Lease) (stated fleet.Settings, problems []string) {
	margins := labelled(&stated)
	for _, label := range slices.Sorted(maps.Keys(margins)) {
		text, ok := lease.Labels[label]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			problems = append(problems, fmt.Sprintf("lease %s/%s: label %s: %q is no duration above 0 and is disregarded", lease.Namespace, lease.Name, label, text))
			continue
		}
		*margins[label] = d
	}
	return stated, problems
}
