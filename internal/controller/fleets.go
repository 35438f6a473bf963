package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/notify"
)

// FleetOptions configure the look at all fleets.
type FleetOptions struct {
	// Survey is the look, of all namespaces, with a client of its own and no cache.
	Survey cluster.Survey
	// Interval is the time between two looks.
	Interval time.Duration
	// Clock is the real one where nil.
	Clock clock.Clock
	// Notifier tells people; nil for nobody.
	Notifier *notify.Notifier
	// DormantAfter is after how long a change that no pod has read is told of.
	DormantAfter time.Duration
}

// RegisterFleets adds the look at all fleets to the manager. It runs where this process leads.
func RegisterFleets(mgr manager.Manager, o FleetOptions, metrics *FleetMetrics) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	err := mgr.Add(&fleets{
		clock: o.Clock, log: mgr.GetLogger().WithName("fleets"), metrics: metrics, interval: o.Interval, read: o.Survey.Read,
		concerns: concerns{notifier: o.Notifier, dormantAfter: o.DormantAfter, values: shownValues(o.Survey, mgr.GetLogger().WithName("fleets"))},
	})
	if err != nil {
		return fmt.Errorf("add fleets: %w", err)
	}
	return nil
}

// fleets judges every fleet again and again, as `tidemark status` does, and exports what it finds.
type fleets struct {
	clock    clock.Clock
	log      logr.Logger
	metrics  *FleetMetrics
	interval time.Duration
	read     func(ctx context.Context) (*cluster.Sight, error)
	// said is what was logged last, so that what stays is logged once.
	said string
	// concerns are what people are told of.
	concerns concerns
}

// judged is a workload with the verdict on its fleet.
type judged struct {
	cluster.Workload
	result fleet.Result
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*fleets) NeedLeaderElection() bool { return true }

// Start looks until the context ends. Then nobody is left who could tell that the series are still true, so they end too.
func (f *fleets) Start(ctx context.Context) error {
	defer f.metrics.show(nil)
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-f.clock.After(f.interval):
		}
	}
}

// look looks at every fleet once. After a look that failed the series stay, and their time shows how old they are.
func (f *fleets) look(ctx context.Context) {
	begun := f.clock.Now()
	sight, err := f.read(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		f.metrics.errors.Inc()
		f.say(err.Error(), func() { f.log.Error(err, "Cannot look at the fleets; trying again", "retryIn", f.interval) })
		return
	}
	l := &lookedAt{at: sight.Now}
	all, remarks := make([]judged, 0, len(sight.Workloads)), sight.Remarks
	for _, w := range sight.Workloads {
		j := judged{w, w.Judge()}
		all = append(all, j)
		l.fleets = append(l.fleets, measured{Target: w.Target, owner: w.Owner, mode: w.Fleet.Mode, result: j.result, budget: w.Fleet.Budget})
		for _, said := range j.result.Said {
			remarks = append(remarks, w.Kind.Lower()+"/"+w.Namespace+"/"+w.Name+": "+said)
		}
	}
	l.fleets = append(l.fleets, f.metrics.of(sight.LeftOut)...)
	f.metrics.show(l)
	f.metrics.seconds.Observe(f.clock.Since(begun).Seconds())
	f.metrics.remarks.Set(float64(len(sight.Remarks)))
	f.concerns.tell(ctx, sight.Now, all, sight.LeftOut)
	f.say(fmt.Sprint(remarks), func() {
		for _, r := range remarks {
			f.log.Info("Looking at the fleets", "remark", r)
		}
	})
}

func (f *fleets) say(what string, log func()) {
	if what != f.said {
		f.said = what
		log()
	}
}
