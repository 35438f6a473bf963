package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// race times the controller and the bare loop in turns, each on a set of Deployments of its own.
type race struct {
	*site
	n         int // Deployments
	edits     int // ConfigMaps to edit; 0: the one that all share
	configMap func(int) string
	sizes     sizes
	round     int
}

// lane is one runner of a race: it makes the edits, and returns when it was seen that the last template was written.
type lane struct {
	name     string
	run      func(ctx context.Context) (lap, error)
	tidemark bool

	times, own, server spread
	asked              tally
}

// lap is what one run of a lane took.
type lap struct {
	time time.Duration
	// own is the processor time of the runner, and server that of the API server with everything else in its process, both
	// until the last template was written.
	own, server time.Duration
	asked       tally
}

const bareNamespace, rolledNamespace = "bare", "rolled"

// mostReads is how often the controller may read its history and the values that it keeps in one round: it reads them for each
// write of the history, a page at a time, and not for each of the workloads.
const mostReads = 100

func (r *race) run(ctx context.Context, lanes []lane) (report, error) {
	if err := r.prepare(ctx); err != nil {
		return report{}, err
	}
	for r.round = 1; r.round <= r.rounds; r.round++ {
		for i := range lanes {
			l := &lanes[i]
			took, err := l.run(ctx)
			if err != nil {
				return report{}, fmt.Errorf("%s: %w", l.name, err)
			}
			l.times.add(took.time)
			l.own.add(took.own)
			l.server.add(took.server)
			l.asked = took.asked
			r.say("round %d: %s: %.2fs, processors %.2fs and %.2fs; %s",
				r.round, l.name, took.time.Seconds(), took.own.Seconds(), took.server.Seconds(), took.asked)
		}
	}
	return r.report(lanes), nil
}

func (r *race) report(lanes []lane) report {
	rep := report{}
	ours := lanes[len(lanes)-1]
	var rows [][]string
	for _, l := range lanes {
		ratio := "1"
		if !l.tidemark {
			ratio = ours.times.over(l.times).ratio()
		}
		rows = append(rows, []string{l.name, ratio, l.times.seconds(), l.own.seconds(), l.server.seconds(), l.asked.String()})
	}
	rep.table([]string{
		"", "the controller takes", "last template write after", "processor time until then", "the control plane's", "requests",
	}, rows...)
	rep.text("Median of %d rounds in turns, with the lowest and the highest. The bare loop's processor time includes the watch that takes the times.", r.rounds)
	return rep
}

// prepare makes both sets, and lets the controller take note of its own.
func (r *race) prepare(ctx context.Context) error {
	for namespace, mode := range map[string]string{bareNamespace: "", rolledNamespace: "roll"} {
		if err := r.namespace(ctx, namespace, mode); err != nil {
			return err
		}
		if err := r.configMaps(ctx, namespace, max(r.edits, 1), 400, r.configMap); err != nil {
			return err
		}
		if err := r.deployments(ctx, namespace, r.n, 0, r.configMap); err != nil {
			return err
		}
	}
	c, err := r.site.controller(ctx, unbounded...)
	if err != nil {
		return err
	}
	return c.Stop()
}

func (r *race) bare(concurrency int) func(context.Context) (lap, error) {
	return func(ctx context.Context) (lap, error) {
		var err error
		if r.sizes, err = r.sizesOf(ctx, rolledNamespace, numbered(0)); err != nil {
			return lap{}, err
		}
		return r.lap(ctx, bareNamespace, os.Getpid(), func(ctx context.Context) error {
			return r.loop(ctx, concurrency, fmt.Sprintf("%d-%d", r.round, concurrency))
		}, func(w *witness) (tally, error) { return r.requests(ctx, byAgent(agentBare)) })
	}
}

// loop is the bare loop: the edits, and a patch for each workload.
func (r *race) loop(ctx context.Context, concurrency int, value string) error {
	if r.edits == 0 {
		if err := r.edit(ctx, bareNamespace, r.configMap(0), value); err != nil {
			return err
		}
	}
	return each(ctx, r.n, concurrency, func(ctx context.Context, i int) error {
		if r.edits > 0 {
			if err := r.edit(ctx, bareNamespace, r.configMap(i), value); err != nil {
				return err
			}
		}
		return r.bareRoll(ctx, bareNamespace, numbered(i), value, r.sizes)
	})
}

func (r *race) controller(concurrency int) func(context.Context) (lap, error) {
	return func(ctx context.Context) (lap, error) {
		c, err := r.site.controller(ctx, unbounded...)
		if err != nil {
			return lap{}, err
		}
		took, err := r.lap(ctx, rolledNamespace, c.PID(), func(ctx context.Context) error {
			return each(ctx, max(r.edits, 1), concurrency, func(ctx context.Context, i int) error {
				return r.edit(ctx, rolledNamespace, r.configMap(i), fmt.Sprint("tidemark-", r.round))
			})
		}, func(w *witness) (tally, error) { return r.judge(ctx, w) })
		return took, errOf(err, c.Stop())
	}
}

// lap begins with no work left over from the lap before, and ends when the last template was written. What was asked is
// counted when all is quiet.
func (r *race) lap(
	ctx context.Context, namespace string, runner int, run func(context.Context) error, count func(*witness) (tally, error),
) (lap, error) {
	w, err := r.witnessed(ctx, namespace)
	if err != nil {
		return lap{}, err
	}
	defer w.stop()
	if err := errOf(w.drained(ctx), r.lab.ResetRequests(ctx)); err != nil {
		return lap{}, err
	}
	own, err := processorTime(runner)
	if err != nil {
		return lap{}, err
	}
	server, err := processorTime(r.lab.Status().PID)
	if err != nil {
		return lap{}, err
	}
	begin := time.Now()
	if err := run(ctx); err != nil {
		return lap{}, err
	}
	last, err := w.await(ctx, r.n)
	if err != nil {
		return lap{}, err
	}
	took := lap{time: last.Sub(begin)}
	if took.own, err = processorTime(runner); err != nil {
		return lap{}, err
	}
	if took.server, err = processorTime(r.lab.Status().PID); err != nil {
		return lap{}, err
	}
	took.own -= own
	took.server -= server
	if err := w.drained(ctx); err != nil {
		return lap{}, err
	}
	took.asked, err = count(w)
	return took, err
}

// judge counts the controller's requests, and holds it to one PATCH for each workload and no question about any.
func (r *race) judge(ctx context.Context, w *witness) (tally, error) {
	if err := r.atRest(ctx); err != nil {
		return nil, err
	}
	asked, err := r.requests(ctx, byController)
	if err != nil {
		return nil, err
	}
	once := 0
	for _, n := range w.writes() {
		if n == 1 {
			once++
		}
	}
	r.want(once == r.n, "%d of %d templates were written exactly once", once, r.n)
	patches := asked["patch deployments"]
	r.want(patches == int64(r.n), "%d patches of %d workloads: %s", patches, r.n, asked)
	history := asked["get configmaps"] + asked["list configmaps"] // of what is referenced the cache knows the digests
	r.want(history <= mostReads, "%d reads of ConfigMaps: %s", history, asked)
	r.want(asked.of("get")+asked.of("list") == history, "it asked about workloads: %s", asked)
	return asked, nil
}
