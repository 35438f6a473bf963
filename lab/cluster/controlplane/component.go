package controlplane

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// component is a part of the control plane that runs until it is told to stop.
type component struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{} // closed when it ended
	failed chan struct{} // closed when it ended without being told to
}

// launch runs a component. The context that it gets is its own, so that the order of stopping is ours.
func launch(name string, run func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, ended: make(chan struct{}), failed: make(chan struct{})}
	go func() {
		defer close(c.ended)
		err := run(ctx)
		if ctx.Err() == nil {
			klog.ErrorS(err, "Component ended by itself", "component", name)
			close(c.failed)
		}
	}()
	return c
}

func (c *component) stop() {
	if c == nil {
		return
	}
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		klog.InfoS("Component does not stop, going on without it", "component", c.name)
	}
}
