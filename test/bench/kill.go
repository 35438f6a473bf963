package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

var kill = benchmark{
	name: "kill", title: "Killed: 500 edits, SIGKILL with 200 of them in flight, started again",
	lab: client.Options{NoNodes: true},
	run: runKill,
}

const (
	edited, untouched = 500, 100
	inFlight          = 200
)

func runKill(ctx context.Context, s *site) (report, error) {
	const namespace = rolledNamespace
	if err := errOf(
		s.namespace(ctx, namespace, "roll"),
		s.configMaps(ctx, namespace, edited+untouched, 400, numbered),
		s.deployments(ctx, namespace, edited+untouched, 0, numbered),
	); err != nil {
		return report{}, err
	}
	c, err := s.controller(ctx)
	if err != nil {
		return report{}, err
	}
	w, err := s.witnessed(ctx, namespace)
	if err != nil {
		return report{}, err
	}
	defer w.stop()
	err = each(ctx, edited, workers, func(ctx context.Context, i int) error { return s.edit(ctx, namespace, numbered(i), "1") })
	if err != nil {
		return report{}, errOf(err, c.Kill())
	}
	_, err = w.await(ctx, edited-inFlight)
	if err := errOf(err, c.Kill()); err != nil {
		return report{}, err
	}
	if err := wait(ctx, time.Second); err != nil { // what was on its way
		return report{}, err
	}
	left, _, err := w.written()
	if err != nil {
		return report{}, err
	}
	begin := time.Now()
	if c, err = s.controller(ctx); err != nil {
		return report{}, err
	}
	last, err := w.await(ctx, edited)
	if err == nil {
		err = errOf(w.drained(ctx), s.atRest(ctx))
	}
	if err := errOf(err, c.Stop()); err != nil {
		return report{}, err
	}
	return s.reportKill(ctx, w, edited-left, last.Sub(begin))
}

func (s *site) reportKill(ctx context.Context, w *witness, open int, took time.Duration) (report, error) {
	affected, others := map[int64]int{}, map[int64]int{}
	writes := w.writes()
	for i := range edited + untouched {
		of := affected
		if i >= edited {
			of = others
		}
		of[writes[numbered(i)]]++
	}
	behind, err := s.behind(ctx, rolledNamespace)
	if err != nil {
		return report{}, err
	}
	s.want(affected[1] == edited, "new revisions of the %d workloads that were affected: %s", edited, revisions(affected))
	s.want(others[0] == untouched, "new revisions of the %d workloads that were not: %s", untouched, revisions(others))
	s.want(len(behind) == 0, "%d workloads do not carry the applied content: %v", len(behind), behind)
	rep := report{}
	rep.table([]string{"workloads", "", "new revisions of each", "not on the applied content"},
		[]string{grouped(edited), "whose ConfigMap was edited", revisions(affected), grouped(len(behind))},
		[]string{grouped(untouched), "whose ConfigMap was not", revisions(others), "0"},
	)
	rep.text("%d stamps were not written yet when the controller was killed; the last was written %.1f s after it was started again, most of which is the lease of the one that was killed running out. The settings are the defaults.",
		open, took.Seconds())
	return rep, nil
}

func revisions(counts map[int64]int) string {
	text := ""
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d of %d", n, counts[n])
	}
	return text
}
