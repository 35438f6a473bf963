package app

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/controller"
)

// addCleanup adds the clean-up of snapshots to the manager, unless it is switched off.
func addCleanup(mgr manager.Manager, o Options, kinds []cluster.Kind, recorder events.EventRecorder) error {
	if o.CleanupInterval == 0 {
		return nil
	}
	machine := clock.RealClock{}
	c, err := cluster.Connect(mgr.GetConfig(), mgr.GetRESTMapper(), machine.Now) // it tells the API server's time
	if err != nil {
		return err
	}
	own, err := controller.NewCleanupMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of clean-up: %w", err)
	}
	return controller.RegisterCleanup(mgr, controller.CleanupOptions{
		Interval: o.CleanupInterval, Recorder: recorder, Clock: machine,
		Round: cleanup.Round{
			Client: c.Client, Now: c.Now, Kinds: kinds, System: o.Namespace, Secrets: o.Secrets, Retention: o.Retention,
		},
	}, own)
}

// validateCleanup checks the options of clean-up.
func (o Options) validateCleanup() error {
	if o.CleanupInterval < 0 {
		return errors.New("--gc-interval: want 0 (never) or more")
	}
	if err := o.Retention.Validate(); err != nil && o.CleanupInterval > 0 {
		return fmt.Errorf("--gc-history, --gc-min-age: %w", err)
	}
	return nil
}
