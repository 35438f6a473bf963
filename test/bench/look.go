package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

var look = benchmark{
	name: "look", title: "The leader's look at all fleets",
	lab: client.Options{NoNodes: true, NodeMonitorGracePeriod: 6 * time.Hour},
	run: runLook,
}

const (
	lookWorkloads = 1000
	// lookEvery is shorter than the default, which is a minute, so that the measurement does not take long.
	lookEvery = 10 * time.Second
	// lookWithin is how long one look may take: a small part of a minute.
	lookWithin = 10 * time.Second
)

// What the controller tells of its looks, and of itself.
const (
	looksSeries  = "tidemark_fleets_look_seconds_count"
	spentSeries  = "tidemark_fleets_look_seconds_sum"
	cpuSeries    = "process_cpu_seconds_total"
	memorySeries = "process_resident_memory_bytes"
)

func runLook(ctx context.Context, s *site) (rep report, err error) {
	if err := s.nodes(ctx); err != nil {
		return rep, err
	}
	for i := range lookWorkloads / perNamespace {
		if err := s.populate(ctx, fmt.Sprintf("team-%d", i)); err != nil {
			return rep, err
		}
	}
	c, err := s.controller(ctx, "--fleet-interval", lookEvery.String())
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	var took, cpu, memory spread
	var asked tally
	if _, err := s.nextLook(ctx, c); err != nil {
		return rep, err
	}
	for range s.rounds { // each begins when a look has just ended, and takes in one more
		if err := s.lab.ResetRequests(ctx); err != nil {
			return rep, err
		}
		before, err := readings(ctx, c)
		if err != nil {
			return rep, err
		}
		after, err := s.nextLook(ctx, c)
		if err != nil {
			return rep, err
		}
		took = append(took, after[spentSeries]-before[spentSeries])
		cpu = append(cpu, after[cpuSeries]-before[cpuSeries])
		memory = append(memory, after[memorySeries]/1e6)
		if asked, err = s.requests(ctx, byAgent("tidemark-controller")); err != nil {
			return rep, err
		}
	}
	s.want(took.median() < lookWithin.Seconds(), "a look takes %s, want less than %v", took.seconds(), lookWithin)
	rep.table([]string{"workloads", "pods", "a look", "processor time", "memory of the process", "requests"},
		[]string{grouped(lookWorkloads), grouped(lookWorkloads * statusReplicas), took.seconds(), cpu.seconds(), memory.text("%.0f", " MB"), asked.String()})
	rep.text("Median of %d looks, with the lowest and the highest. Processor time and requests are all of the process in %v, its lease included.", s.rounds, lookEvery)
	return rep, nil
}

// readings are what the controller tells of its looks, and of itself.
func readings(ctx context.Context, c *scenario.Controller) (map[string]float64, error) {
	out := map[string]float64{}
	for _, series := range []string{looksSeries, spentSeries, cpuSeries, memorySeries} {
		value, found, err := c.Metric(ctx, series)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", series, err)
		}
		if !found {
			return nil, fmt.Errorf("there is no series %s", series)
		}
		out[series] = value
	}
	return out, nil
}

// nextLook waits until one more look has ended, and reads what the controller tells then.
func (s *site) nextLook(ctx context.Context, c *scenario.Controller) (after map[string]float64, err error) {
	before, err := readings(ctx, c)
	if err != nil {
		return nil, err
	}
	err = scenario.Await(ctx, "the next look at all fleets", func() error {
		if after, err = readings(ctx, c); err == nil && after[looksSeries] <= before[looksSeries] {
			err = errors.New("it has not ended")
		}
		return err
	})
	return after, err
}
