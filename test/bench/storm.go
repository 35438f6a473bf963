package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/pace"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

var storm = benchmark{
	name: "storm", title: "Storm: a Secret that changes every second, over 20 workloads",
	lab: client.Options{NoNodes: true},
	run: runStorm,
}

const (
	flapped = 20 // workloads
	calm    = "calm"
	// allowed is how many rollouts each workload may have in the short form.
	allowed = 5
)

// stormLength is a minute, or ten.
func stormLength() time.Duration {
	if os.Getenv("TIDEMARK_SOAK") == "1" {
		return 10 * time.Minute
	}
	return time.Minute
}

func runStorm(ctx context.Context, s *site) (report, error) {
	const namespace = rolledNamespace
	const elsewhere = 5 // workloads, each changed once
	secret := func(int) corev1.EnvFromSource {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "flapping"}}}
	}
	if err := errOf(
		s.namespace(ctx, namespace, "roll"),
		s.namespace(ctx, calm, "roll"),
		s.api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flapping"}, StringData: map[string]string{"value": "0"}}),
		s.workloads(ctx, namespace, flapped, 0, secret, corev1.PodSpec{}),
		s.configMaps(ctx, calm, elsewhere, 400, numbered),
		s.deployments(ctx, calm, elsewhere, 0, numbered),
	); err != nil {
		return report{}, err
	}
	c, err := s.controller(ctx)
	if err != nil {
		return report{}, err
	}
	rep, err := s.weather(ctx, c, elsewhere)
	return rep, errOf(err, c.Stop())
}

// weather makes the storm, with changes elsewhere meanwhile, and watches until it is over.
func (s *site) weather(ctx context.Context, c *scenario.Controller, elsewhere int) (report, error) {
	stormy, err := s.witnessed(ctx, rolledNamespace)
	if err != nil {
		return report{}, err
	}
	defer stormy.stop()
	if err := s.lab.ResetRequests(ctx); err != nil {
		return report{}, err
	}
	var flapErr error
	var wg sync.WaitGroup
	begin := time.Now()
	wg.Go(func() { flapErr = s.flap(ctx, begin.Add(stormLength())) })
	latencies, err := s.changeElsewhere(ctx, elsewhere)
	wg.Wait()
	if err := errors.Join(err, flapErr); err != nil {
		return report{}, err
	}
	during := stormy.writes()
	held, err := s.holds(ctx, c)
	if err != nil {
		return report{}, err
	}
	calmedAt := time.Now()
	last, err := s.afterStorm(ctx, stormy)
	if err != nil {
		return report{}, err
	}
	asked, err := s.requests(ctx, byController)
	if err != nil {
		return report{}, err
	}
	return s.reportStorm(during, stormy.writes(), latencies, held, last.Sub(calmedAt), asked), nil
}

func (s *site) flap(ctx context.Context, until time.Time) error {
	for i := 1; time.Now().Before(until); i++ {
		next := time.Now().Add(time.Second)
		body := fmt.Sprintf(`{"stringData":{"value":"%d"}}`, i)
		if err := s.patch(ctx, &corev1.Secret{}, rolledNamespace, "flapping", body); err != nil {
			return err
		}
		if err := wait(ctx, time.Until(next)); err != nil {
			return err
		}
	}
	return nil
}

// changeElsewhere changes other ConfigMaps during the storm, and takes the time until each one's workload is stamped.
func (s *site) changeElsewhere(ctx context.Context, n int) (spread, error) {
	w, err := s.witnessed(ctx, calm)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	var latencies spread
	for i := range n {
		if err := wait(ctx, stormLength()/time.Duration(n+2)); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := s.edit(ctx, calm, numbered(i), "1"); err != nil {
			return nil, err
		}
		last, err := w.await(ctx, i+1)
		if err != nil {
			return nil, err
		}
		latencies.add(last.Sub(begin))
	}
	return latencies, nil
}

// holds counts the workloads that the metric calls held for a storm.
func (s *site) holds(ctx context.Context, c *scenario.Controller) (int, error) {
	held := 0
	for i := range flapped {
		series := fmt.Sprintf(`tidemark_held{kind="Deployment",name=%q,namespace=%q,reason="storm"}`, numbered(i), rolledNamespace)
		if value, _, err := c.Metric(ctx, series); err != nil {
			return 0, err
		} else if value == 1 {
			held++
		}
	}
	return held, nil
}

// afterStorm waits until every workload carries the final content, and then as long again as a rollout would take to begin.
func (s *site) afterStorm(ctx context.Context, w *witness) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, pace.Defaults().StormWindow+time.Minute)
	defer cancel()
	for {
		behind, err := s.behind(ctx, rolledNamespace)
		if err != nil {
			return time.Time{}, err
		}
		if len(behind) == 0 {
			break
		}
		if err := wait(ctx, time.Second); err != nil {
			return time.Time{}, fmt.Errorf("%d workloads are behind: %w", len(behind), err)
		}
	}
	if err := errOf(wait(ctx, 5*time.Second), s.atRest(ctx)); err != nil {
		return time.Time{}, err
	}
	_, last, err := w.written()
	return last, err
}

// elsewhereWithin is within which time a change elsewhere is to roll, beyond settling.
const elsewhereWithin = 2 * time.Second

func (s *site) reportStorm(during, total map[string]int64, latencies spread, held int, after time.Duration, asked tally) report {
	rolls, final := map[int64]int{}, map[int64]int{}
	most := int64(0)
	for name, n := range total {
		rolls[n]++
		final[n-during[name]]++
		most = max(most, n)
	}
	settle := pace.Defaults().Settle
	slowest := latencies.sorted()[len(latencies)-1]
	if stormLength() == time.Minute {
		s.want(most <= allowed, "rollouts of the workloads: %s", revisions(rolls))
	}
	s.want(slowest-settle.Seconds() < elsewhereWithin.Seconds(), "a change elsewhere took %.2f s, want less than settling and %v", slowest, elsewhereWithin)
	s.want(held == flapped, "%d of %d workloads are shown as held at the end of the storm", held, flapped)
	s.want(final[1] == flapped, "rollouts after the storm: %s", revisions(final))
	rep := report{}
	rep.table([]string{"storm", "rollouts of each workload", "of them after it was quiet", "held: storm at its end", "a change elsewhere, beyond settling", "requests"},
		[]string{
			stormLength().String(), revisions(rolls), revisions(final), fmt.Sprintf("%d of %d", held, flapped),
			fmt.Sprintf("%+.2f s (at most %+.2f s)", latencies.median()-settle.Seconds(), slowest-settle.Seconds()), asked.String(),
		})
	rep.text("The last rollout came %.0f s after the last change. Settling takes %v. The settings are the defaults.", after.Seconds(), settle)
	return rep
}
