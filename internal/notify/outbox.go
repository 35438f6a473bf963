package notify

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// outbox delivers to one destination, one message after the other, so that one receiver that hangs keeps no other waiting. Its
// queue has keys only; what to say is decided when their turn comes.
type outbox struct {
	destination *Destination
	queue       workqueue.TypedRateLimitingInterface[string]
	limiter     workqueue.TypedRateLimiter[string]
}

func newOutbox(d *Destination, o Options) *outbox {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](o.RetryFirst, o.RetryMost)
	return &outbox{
		destination: d, limiter: limiter,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Clock: o.Clock}),
	}
}

// run delivers until the queue is shut down and empty.
func (o *outbox) run(ctx context.Context, n *Notifier) {
	for {
		key, down := o.queue.Get()
		if down {
			return
		}
		o.deliver(ctx, n, key)
		o.queue.Done(key)
	}
}

// deliver says of one key what is to be said, and comes back to it after a failure.
func (o *outbox) deliver(ctx context.Context, n *Notifier, key string) {
	what, ok := n.next(key, o.destination)
	if !ok {
		o.queue.Forget(key)
		return
	}
	failure := n.sender.send(ctx, o.destination, what)
	n.settle(key, o.destination, what, failure)
	if failure == nil {
		o.queue.Forget(key)
		o.queue.Add(key) // what is to be said may have changed meanwhile
		return
	}
	o.queue.AddAfter(key, max(o.limiter.When(key), failure.After))
}

// repeats reports whether the destination forgets what is not repeated.
func (d *Destination) repeats() bool { return d.Alertmanager != nil }

// flushTimeout bounds how long messages that wait are still delivered when the program ends.
const flushTimeout = 4 * time.Second
