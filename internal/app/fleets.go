package app

import (
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/controller"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/reported"
	"tidemark.dev/tidemark/internal/stamp"
)

// addFleets adds the look at all fleets to the manager, unless it is switched off.
func addFleets(mgr manager.Manager, o Options, kinds []cluster.Kind, notifier *notify.Notifier) error {
	if o.FleetInterval == 0 {
		return nil
	}
	machine := clock.RealClock{}
	c, err := cluster.Connect(mgr.GetConfig(), mgr.GetRESTMapper(), machine.Now) // it tells the API server's time
	if err != nil {
		return err
	}
	own, err := controller.NewFleetMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of fleets: %w", err)
	}
	return controller.RegisterFleets(mgr, controller.FleetOptions{
		Interval: o.FleetInterval, Clock: machine, Notifier: notifier, DormantAfter: o.NotifyDormantAfter, Survey: o.survey(c, kinds),
	}, own)
}

// survey is a look at all fleets.
func (o Options) survey(c *cluster.Connection, kinds []cluster.Kind) cluster.Survey {
	s := cluster.Survey{
		Client: c.Client, Now: c.Now, Kinds: kinds, System: o.Namespace, DefaultMode: stamp.Mode(o.DefaultMode), Settings: o.Margins,
	}
	if o.ReadReports {
		s.Reports = reported.Direct(o.DialPods, c.Now)
	}
	return s
}

// validateFleets checks the options of the look at all fleets.
func (o Options) validateFleets() error {
	if o.FleetInterval < 0 {
		return errors.New("--fleet-interval: want 0 (never) or more")
	}
	if o.Margins.RefreshLag <= 0 || o.Margins.ReadLag <= 0 || o.Margins.Skew <= 0 {
		return errors.New("--refresh-lag, --read-lag, --clock-skew: want more than 0")
	}
	return nil
}
