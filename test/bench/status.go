package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

var status = benchmark{
	name: "status", title: "Status: `tidemark status -A`",
	// Nobody speaks for the nodes, which are only on paper.
	lab: client.Options{NoNodes: true, NodeMonitorGracePeriod: 6 * time.Hour},
	run: runStatus,
}

const (
	statusReplicas = 5
	// perNamespace is how many workloads share a namespace.
	perNamespace = 100
)

func runStatus(ctx context.Context, s *site) (report, error) {
	sizes := []int{1000}
	if s.large {
		sizes = append(sizes, 4000)
	}
	if err := s.nodes(ctx); err != nil {
		return report{}, err
	}
	rep, have := report{}, 0
	var rows [][]string
	for _, n := range sizes {
		for ; have < n; have += perNamespace {
			if err := s.populate(ctx, fmt.Sprintf("team-%d", have/perNamespace)); err != nil {
				return rep, err
			}
		}
		for _, installed := range []bool{false, true} {
			row, err := s.looks(ctx, n, installed)
			if err != nil {
				return rep, err
			}
			rows = append(rows, row)
		}
	}
	rep.table([]string{"workloads", "pods", "", "time", "peak memory", "requests"}, rows...)
	rep.text("Lists are read in pages of 500. Median of %d runs, with the lowest and the highest; the requests are those of one run.", s.rounds)
	return rep, nil
}

func (s *site) populate(ctx context.Context, namespace string) error {
	s.say("making %s", namespace)
	return errOf(
		s.namespace(ctx, namespace, "observe"),
		s.configMaps(ctx, namespace, perNamespace, 400, numbered),
		s.pods(ctx, namespace, perNamespace, statusReplicas, numbered),
	)
}

// looks runs the command line several times, with what the controller remembers or with nothing installed.
func (s *site) looks(ctx context.Context, n int, installed bool) (row []string, err error) {
	how := "nothing installed"
	if installed {
		how = "with history"
		c, failed := s.controller(ctx)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, c.Stop()) }()
	}
	var times, peaks spread
	var asked tally
	for range s.rounds {
		if err := s.lab.ResetRequests(ctx); err != nil {
			return nil, err
		}
		_, took, peak, err := s.timed(ctx, "status", "-A")
		if err != nil {
			return nil, err
		}
		times.add(took)
		peaks = append(peaks, float64(peak)/1e6)
		if asked, err = s.requests(ctx, byAgent("tidemark/")); err != nil {
			return nil, err
		}
	}
	row = []string{grouped(n), grouped(n * statusReplicas), how, times.seconds(), peaks.text("%.0f", " MB"), asked.String()}
	s.say("%v", row)
	return row, nil
}
