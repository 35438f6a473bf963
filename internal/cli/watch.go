package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// What is shown in a watch for a fleet whose workload is no more.
const (
	verdictGone = "gone"
	reasonGone  = "the workload is gone"
)

// restFactor is how many times as long as a look took a watch rests after it, at least: a large cluster is not looked at
// all the time.
const restFactor = 4

// watching is a watch under way.
type watching struct {
	*statusOptions
	table *fleetTable
	// last is what was shown last of each fleet, by the UID of its workload.
	last      map[string]lastShown
	allInStep bool
	// failed is why the last look failed; nil when it did not.
	failed   error
	remarked map[string]bool
}

// lastShown is what a watch keeps of a fleet.
type lastShown struct {
	cluster.Target
	// text is what a change of is worth another line.
	text string
}

// runWatch shows the fleets, and then each again when it changes, until the context ends. A look that fails after the first
// is said and tried again.
func (o *statusOptions) runWatch(ctx context.Context) error {
	w := &watching{statusOptions: o, table: o.newTable(), remarked: map[string]bool{}}
	for first := true; ; first = false {
		began := o.clock.Now()
		sight, err := o.views[0].look(ctx)
		switch {
		case ctx.Err() != nil && first:
			return ctx.Err()
		case ctx.Err() != nil:
			return w.outcome()
		case err == nil && first:
			err = notFound(sight.NotFound)
		}
		switch {
		case err != nil && first:
			return err
		case err != nil:
			w.fail(err)
		default:
			w.recovered()
			if err := w.show(sight, first); err != nil {
				return err
			}
		}
		if !o.rest(ctx, o.clock.Since(began)) {
			return w.outcome()
		}
	}
}

// fail says why a look failed, where the one before did not fail alike.
func (w *watching) fail(err error) {
	if w.failed == nil || w.failed.Error() != err.Error() {
		w.remark([]string{err.Error() + ": trying again"})
	}
	w.failed = err
}

// recovered says that looks succeed again.
func (w *watching) recovered() {
	if w.failed != nil {
		w.remark([]string{"reachable again"})
	}
	w.failed = nil
}

// outcome is that of the last look: what it showed, or why it failed.
func (w *watching) outcome() error {
	if w.failed != nil {
		return fmt.Errorf("when the watch ended the cluster could not be read: %w", w.failed)
	}
	return w.status(w.allInStep)
}

// rest waits for the next look, and reports whether there is one.
func (o *statusOptions) rest(ctx context.Context, took time.Duration) bool {
	timer := o.clock.NewTimer(max(o.interval, restFactor*took))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// show prints the fleets that are not as they were shown last.
func (w *watching) show(sight *cluster.Sight, first bool) error {
	for _, r := range sight.Remarks {
		w.remarkOnce(r)
	}
	if first && !w.noHeaders && (w.output == "" || w.output == "wide") {
		w.table.header()
	}
	fleets := judge(sight.Workloads)
	now := make(map[string]lastShown, len(fleets))
	for _, j := range fleets {
		now[j.UID] = lastShown{j.Target, j.text()}
		if w.last[j.UID].text == now[j.UID].text {
			continue
		}
		if err := w.showOne(j, sight.Now); err != nil {
			return err
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.last)) {
		if _, there := now[uid]; there {
			continue
		}
		if err := w.showGone(w.last[uid].Target); err != nil {
			return err
		}
	}
	w.last, w.allInStep = now, allInStep(fleets)
	return w.table.flush()
}

func (w *watching) showOne(j judged, now time.Time) error {
	switch w.output {
	case "json", "yaml":
		return w.document(j.document())
	case "name":
		return printNames(w.Out, []judged{j})
	case formatFleet:
		return w.screen.draw(w.Out, j, now)
	}
	w.table.row(j, now)
	return nil
}

func (w *watching) showGone(t cluster.Target) error {
	switch w.output {
	case "json", "yaml":
		f := judged{Workload: cluster.Workload{Target: t}}.document()
		f.Verdict, f.Reason, f.InStep = verdictGone, reasonGone, true
		return w.document(f)
	case "name", formatFleet:
		return nil
	}
	w.table.gone(t)
	return nil
}

// document prints one fleet by itself.
func (w *watching) document(f v1.Fleet) error {
	f.APIVersion, f.Kind = v1.APIVersion, v1.KindFleet
	if w.output == "yaml" {
		if _, err := fmt.Fprintln(w.Out, "---"); err != nil {
			return err
		}
	}
	return printDocument(w.Out, w.output, f)
}

func (w *watching) remarkOnce(remark string) {
	if !w.remarked[remark] {
		w.remarked[remark] = true
		w.remark([]string{remark})
	}
}

// text is what a change of is worth another line in a watch.
func (j judged) text() string {
	return fmt.Sprintf("%s|%s|%s|%s|%s", j.modeText(), j.verdictText(), podsText(j.Result, true), j.Since, j.reasonText())
}
