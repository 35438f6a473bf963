package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

var guard = benchmark{
	name: "guard", title: "Guard: what `tidemark guard` adds to a command",
	lab: client.Options{NoNodes: true},
	run: runGuard,
}

// guardRuns is how often the command is run in a round.
const guardRuns = 10

// guardTarget is what a guard may add to a command.
const guardTarget = 200 * time.Millisecond

// runGuard times a command that takes no time itself, in the place of helm, with its guard and without, in turns.
func runGuard(ctx context.Context, s *site) (report, error) {
	rep := report{}
	dir, err := os.MkdirTemp("", "bench-guard-")
	if err != nil {
		return rep, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	helm := filepath.Join(dir, "helm")
	if err := os.WriteFile(helm, []byte("#!/bin/sh\n"), 0o700); err != nil {
		return rep, err
	}
	command := []string{helm, "upgrade", "web", "./chart", "--kubeconfig", s.lab.Kubeconfig()}
	guarded := append([]string{filepath.Join(s.programs, "tidemark"), "guard", "--"}, command...)
	var alone, under spread
	var asked tally
	for range s.rounds * guardRuns {
		if err := s.lab.ResetRequests(ctx); err != nil {
			return rep, err
		}
		for _, run := range []struct {
			args []string
			took *spread
		}{{command, &alone}, {guarded, &under}} {
			began := time.Now()
			if out, err := exec.CommandContext(ctx, run.args[0], run.args[1:]...).CombinedOutput(); err != nil {
				return rep, fmt.Errorf("%s: %w: %s", filepath.Base(run.args[0]), err, out)
			}
			run.took.add(time.Since(began))
		}
		if asked, err = s.requests(ctx, byAgent("tidemark/")); err != nil {
			return rep, err
		}
	}
	writes := asked.of("create") + asked.of("update") + asked.of("patch")
	s.want(writes == 3, "the guard wrote %d times, to take its lease, to start and to end: %s", writes, asked)
	added := time.Duration((under.median() - alone.median()) * float64(time.Second))
	rep.table([]string{"the command", "alone", "under guard", "added", "target", "requests"},
		[]string{"one that does nothing", alone.text("%.3f", " s"), under.text("%.3f", " s"), added.Round(time.Millisecond).String(), guardTarget.String(), asked.String()})
	rep.text("Median of %d runs of each, in turns, with the lowest and the highest; the requests are those of one run. The guard then writes once per heartbeat, every 30 s.", len(alone))
	return rep, nil
}
