package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

// apart is how far apart edits and starts of pods are, so that they can be told apart by their times. Files are read for some
// time after a start, so it takes longer with them.
const (
	apart      = 5 * time.Second
	filesApart = 10 * time.Second
)

// patience bounds how long one scene may take.
const patience = 3 * time.Minute

// stage is where incidents are played.
type stage struct {
	teller
	lab        *client.Lab
	binary     string
	controller *scenario.Controller
	argo       *client.ArgoRollouts
}

// incident is one of those that Tidemark exists for.
type incident struct {
	id     string
	scenes []scene
	// deploys says that the scenes deploy by themselves, without a manifest that is applied first.
	deploys bool
	// needs prepares what the incident needs beside the cluster; nil for nothing.
	needs func(*stage, context.Context) error
}

// scene is one run of an incident.
type scene struct {
	title string
	// namespace that it plays in; "" for one that needs no cluster.
	namespace string
	// mode is that of the namespace; "" when Tidemark does not run.
	mode string
	play func(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error
}

// judgement is how an incident came out.
type judgement struct {
	id     string
	parts  []string
	wrongs []string
}

// add notes a figure of the outcome, with whether it is the one that the incident stands for.
func (j *judgement) add(right bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if right {
		j.parts = append(j.parts, text)
	} else {
		j.wrongs = append(j.wrongs, text)
	}
}

func (j *judgement) ok() bool { return len(j.wrongs) == 0 && len(j.parts) > 0 }

// String is one line that begins with the incident's id.
func (j *judgement) String() string {
	if j.ok() {
		return fmt.Sprintf("%s: ok: %s", j.id, strings.Join(j.parts, "; "))
	}
	return fmt.Sprintf("%s: FAILED: %s", j.id, strings.Join(j.wrongs, "; "))
}

func (s *stage) playAll(ctx context.Context, incidents []incident) []*judgement {
	var judged []*judgement
	for _, i := range incidents {
		j := &judgement{id: i.id}
		judged = append(judged, j)
		if i.needs != nil {
			if err := i.needs(s, ctx); err != nil {
				j.add(false, "%v", err)
				continue
			}
		}
		for _, sc := range i.scenes {
			if err := s.play(ctx, i, sc, j); err != nil {
				j.add(false, "%s: %v", sc.title, err)
				break
			}
		}
	}
	return judged
}

func (s *stage) play(ctx context.Context, i incident, sc scene, j *judgement) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.heading(i.id + ", " + sc.title)
	if sc.mode == "" {
		if err := s.stopController(); err != nil {
			return err
		}
	} else if err := s.startController(ctx); err != nil {
		return err
	}
	if sc.namespace == "" {
		return sc.play(ctx, s, nil, j)
	}
	set, err := scenario.Open(ctx, s.lab, sc.namespace, sc.mode)
	if err != nil {
		return err
	}
	if !i.deploys {
		manifest, err := scenario.Manifest(i.id)
		if err != nil {
			return err
		}
		if err := set.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	if err := sc.play(ctx, s, set, j); err != nil {
		return err
	}
	if sc.mode == "" {
		return set.Close(ctx)
	}
	return nil // stays, for whoever wants to look around
}

// startController starts the controller, with further flags, unless it runs.
func (s *stage) startController(ctx context.Context, flags ...string) error {
	if s.controller != nil {
		return nil
	}
	var err error
	if s.controller, err = scenario.StartPinned(ctx, s.lab, scenario.Program{Binary: s.binary, Flags: append(flags, "--rollout-interval=1s")}); err != nil {
		return err
	}
	return s.controller.HasWatched(ctx)
}

func (s *stage) stopController() error {
	if s.controller == nil {
		return nil
	}
	c := s.controller
	s.controller = nil
	return c.Stop()
}

// letAge waits until the pods have run for so long that Tidemark, where it runs, can tell what comes after from their start.
func (s *stage) letAge(ctx context.Context, sc *scenario.Scene, age time.Duration) error {
	if s.controller == nil {
		return nil
	}
	return sc.Aged(ctx, age)
}

// status shows what the command line says of the scene, and returns the verdict on the workload.
func (s *stage) status(ctx context.Context, sc *scenario.Scene, workload string) (verdict, reason string, err error) {
	text, err := sc.Tidemark(ctx, "status")
	if err != nil {
		return "", "", err
	}
	s.command("tidemark status -n "+sc.Namespace, text)
	fleet, err := sc.Status(ctx, workload)
	return fleet.Verdict, fleet.Reason, err
}

// awaitVerdict waits until status gives the verdict.
func awaitVerdict(ctx context.Context, sc *scenario.Scene, workload, want string) error {
	return scenario.Await(ctx, "status "+want, func() error {
		fleet, err := sc.Status(ctx, workload)
		if err == nil && fleet.Verdict != want {
			err = errors.New(fleet.Verdict + ": " + fleet.Reason)
		}
		return err
	})
}
