package app

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
)

// Events are sent at a bounded pace, so that those of many rollouts at once do not take the API's time from the stamps that
// they tell of. Each states the time at which it was made, however long it waits.
const (
	eventsPerSecond = 20
	eventBurst      = 50
)

// newBroadcaster makes a broadcaster of Events that sends at that pace.
func newBroadcaster(cfg *rest.Config) (events.EventBroadcaster, error) {
	c, err := eventsclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client of events: %w", err)
	}
	return events.NewBroadcaster(pacedSink{
		EventSink: &events.EventSinkImpl{Interface: c},
		pace:      flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
	}), nil
}

// pacedSink sends each event when its turn comes.
type pacedSink struct {
	events.EventSink
	pace flowcontrol.RateLimiter
}

// Create implements events.EventSink.
func (s pacedSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.pace.Wait(ctx); err != nil {
		return nil, err // the program ends, and with it what it wanted to tell
	}
	return s.EventSink.Create(ctx, e)
}

// Patch implements events.EventSink.
func (s pacedSink) Patch(ctx context.Context, e *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	if err := s.pace.Wait(ctx); err != nil {
		return nil, err
	}
	return s.EventSink.Patch(ctx, e, patch)
}
