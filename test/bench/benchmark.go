package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

// benchmark is one measurement. It runs on a lab of its own, unless it needs none.
type benchmark struct {
	name, title string
	lab         client.Options
	off         bool
	run         func(ctx context.Context, s *site) (report, error)
}

// User agents by which the lab tells apart who asked what.
const (
	agentSite  = "bench-site"
	agentBare  = "bench-bare"
	agentWatch = "bench-watch"
)

// site is what a benchmark works with: a lab with Tidemark's manifests on it, and clients.
type site struct {
	options
	lab     *client.Lab
	remarks io.Writer

	// api sets things up and makes the edits, bare is the client of the bare loop, witness watches what comes of both.
	api     ctrlclient.WithWatch
	bare    kubernetes.Interface
	witness kubernetes.Interface

	// used is the processor time of the last run of the command line.
	used  time.Duration
	wrong []error
}

// measure runs the benchmark. The error of counts that are wrong comes beside the report.
func (b benchmark) measure(ctx context.Context, o options, remarks io.Writer) (report, error) {
	if b.off {
		return b.run(ctx, &site{options: o, remarks: remarks})
	}
	lab, err := client.Start(ctx, b.lab)
	if err != nil {
		return report{}, err
	}
	s := &site{options: o, lab: lab, remarks: remarks}
	rep, err := b.on(ctx, s)
	if err == nil && len(s.wrong) > 0 {
		err = fmt.Errorf("%d counts are wrong, the first: %w", len(s.wrong), s.wrong[0])
	}
	if stopErr := lab.Stop(); err == nil {
		err = stopErr
	}
	return rep, err
}

func (b benchmark) on(ctx context.Context, s *site) (report, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return report{}, err
	}
	config := s.lab.RESTConfig()
	config.UserAgent = agentSite
	var err error
	if s.api, err = ctrlclient.NewWithWatch(config, ctrlclient.Options{Scheme: scheme}); err != nil {
		return report{}, err
	}
	if s.bare, err = s.clientset(agentBare); err != nil {
		return report{}, err
	}
	if s.witness, err = s.clientset(agentWatch); err != nil {
		return report{}, err
	}
	if err := scenario.Install(ctx, s.lab); err != nil {
		return report{}, err
	}
	return b.run(ctx, s)
}

func (s *site) clientset(agent string) (kubernetes.Interface, error) {
	config := s.lab.RESTConfig()
	config.UserAgent = agent
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

func (s *site) say(format string, args ...any) { fmt.Fprintf(s.remarks, format+"\n", args...) }

// want notes a count that is not as promised.
func (s *site) want(ok bool, format string, args ...any) {
	if !ok {
		err := fmt.Errorf(format, args...)
		s.say("WRONG: %v", err)
		s.wrong = append(s.wrong, err)
	}
}

// controller starts the controller's binary with the rights of its service account, and returns when it leads and has come
// to rest.
func (s *site) controller(ctx context.Context, flags ...string) (*scenario.Controller, error) {
	c, err := scenario.Start(ctx, s.lab, scenario.Program{
		Binary: filepath.Join(s.programs, "tidemark-controller"), Flags: flags,
	})
	if err != nil {
		return nil, err
	}
	return c, s.atRest(ctx)
}

// unbounded are the flags that switch off everything that is there to slow a fan-out down.
var unbounded = []string{"--settle", "0", "--settle-max", "0", "--storm-rolls", "0", "--max-rolling", "0"}

// workers is how many requests the controller has in flight at most, and the concurrent bare loop with it: the default of
// --workers.
const workers = 8

// errOf returns the first error.
func errOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
