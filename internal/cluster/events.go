package cluster

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// reporter is the reporting controller of Tidemark's Events.
const reporter = v1.FieldManager

// Event is an Event of Tidemark's.
type Event struct {
	Time                  time.Time
	Type, Reason, Message string
	Count                 int32
}

// EventsOf lists Tidemark's Events of a workload, oldest first. Where they may not be read it gives a remark instead.
func EventsOf(ctx context.Context, c client.Reader, w Workload) (events []Event, remark string, err error) {
	err = EachItem(ctx, c, func() client.ObjectList { return &corev1.EventList{} }, PageSize, func(e *corev1.Event) {
		if e.ReportingController == reporter || e.Source.Component == reporter {
			events = append(events, eventOf(e))
		}
	}, client.InNamespace(w.Namespace), client.MatchingFields{"involvedObject.uid": w.UID})
	if apierrors.IsForbidden(err) {
		needs := Right{Verb: "list", Resource: "events", Namespace: w.Namespace}
		return nil, needs.Missing() + ": what Tidemark said of it is not shown", nil
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return events, "", err
}

func eventOf(e *corev1.Event) Event {
	out := Event{Time: e.LastTimestamp.Time, Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1)}
	if out.Time.IsZero() {
		out.Time = e.EventTime.Time
	}
	if e.Series != nil {
		out.Time, out.Count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return out
}
