package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
)

var cleanUp = benchmark{
	name: "gc", title: "Clean-up: 10,000 snapshots, 2,000 ReplicaSets that may use them",
	lab: client.Options{NoNodes: true},
	run: runCleanUp,
}

const (
	copiedNamespace = "copies"
	copiedSources   = 500
	copiesOfEach    = 20
	replicaSets     = 2000
	pinsOfEach      = 8
	keptOfEach      = 5
)

// copyName names the n-th snapshot of a source, from 1 on.
func copyName(source, n int) string { return fmt.Sprintf("%s-%07d", numbered(source), n) }

// pinnedCopy is which snapshot a ReplicaSet is pinned to for the j-th of its sources: the older half is used, one snapshot by
// several.
func pinnedCopy(replicaSet, j int) (source, n int) {
	return (replicaSet*pinsOfEach + j) % copiedSources, 1 + (replicaSet+j)%(copiesOfEach/2)
}

func runCleanUp(ctx context.Context, s *site) (report, error) {
	s.say("making %d snapshots and %d ReplicaSets", copiedSources*copiesOfEach, replicaSets)
	used, err := s.copies(ctx)
	if err != nil {
		return report{}, err
	}
	var rows [][]string
	for _, dryRun := range []bool{true, false} {
		row, err := s.cleansUp(ctx, used, dryRun)
		if err != nil {
			return report{}, err
		}
		rows = append(rows, row)
	}
	rep := report{}
	rep.table([]string{"", "time", "peak memory", "requests"}, rows...)
	rep.text("Median of %d runs of the first, with the lowest and the highest; the requests are those of one run.", s.rounds)
	return rep, nil
}

// copies makes the snapshots and what uses them, and counts those that are neither used nor among the last of their source.
func (s *site) copies(ctx context.Context) (unneeded int, err error) {
	used := map[string]bool{}
	for i := range replicaSets {
		for j := range pinsOfEach {
			used[copyName(pinnedCopy(i, j))] = true
		}
	}
	for source := range copiedSources {
		for n := 1; n <= copiesOfEach-keptOfEach; n++ {
			if !used[copyName(source, n)] {
				unneeded++
			}
		}
	}
	return unneeded, errOf(
		s.namespace(ctx, copiedNamespace, "observe"),
		s.configMaps(ctx, copiedNamespace, copiedSources, 400, numbered),
		each(ctx, copiedSources*copiesOfEach, workers, s.makeCopy),
		each(ctx, replicaSets, workers, s.makeReplicaSet),
	)
}

func (s *site) makeCopy(ctx context.Context, i int) error {
	source, n := i%copiedSources, 1+i/copiedSources
	cm := &corev1.ConfigMap{Data: map[string]string{"generation": fmt.Sprint(n), "filling": strings.Repeat("filling ", 50)}}
	return s.api.Create(ctx, snapshot.OfConfigMap(cm, copyName(source, n), snapshot.Provenance{
		Source: workload.Object{Kind: workload.ConfigMap, Namespace: copiedNamespace, Name: numbered(source)}, Revision: int64(n), Time: time.Now(),
	}))
}

func (s *site) makeReplicaSet(ctx context.Context, i int) error {
	pins := snapshot.Pins{}
	var env []corev1.EnvFromSource
	for j := range pinsOfEach {
		source, n := pinnedCopy(i, j)
		pins[workload.Object{Kind: workload.ConfigMap, Namespace: copiedNamespace, Name: numbered(source)}] = copyName(source, n)
		env = append(env, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: numbered(source)}}})
	}
	none, labels := int32(0), map[string]string{"app": numbered(i)}
	return s.api.Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: copiedNamespace, Name: numbered(i), Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{v1.AnnotationPins: pins.String()}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/sample:1", EnvFrom: env}}},
			},
		},
	})
}

// What clean-up may take: in time, and in MB at its highest.
const (
	judgedWithin = 30 * time.Second
	judgedIn     = 150
)

// cleansUp runs clean-up: as a dry run, which judges, several times; once as one that condemns.
func (s *site) cleansUp(ctx context.Context, unneeded int, dryRun bool) ([]string, error) {
	args := []string{"gc", "-A", "--history", fmt.Sprint(keptOfEach), "--min-age", "1s", "-o", "json"}
	what, rounds := "judged and condemned", 1
	if dryRun {
		args = append(args, "--dry-run")
		what, rounds = "judged", s.rounds
	}
	var times, peaks spread
	var asked tally
	for range rounds {
		if err := s.lab.ResetRequests(ctx); err != nil {
			return nil, err
		}
		out, took, peak, err := s.timed(ctx, args...)
		if err != nil {
			return nil, err
		}
		times.add(took)
		peaks = append(peaks, float64(peak)/1e6)
		if asked, err = s.requests(ctx, byAgent("tidemark/")); err != nil {
			return nil, err
		}
		condemned, all, err := countCondemned(out)
		if err != nil {
			return nil, err
		}
		s.want(all == copiedSources*copiesOfEach && condemned == unneeded, "%d of %d snapshots are to be condemned, want %d of %d",
			condemned, all, unneeded, copiedSources*copiesOfEach)
	}
	s.want(times.median() < judgedWithin.Seconds(), "%s takes %s, want less than %v", what, times.seconds(), judgedWithin)
	s.want(peaks.median() < judgedIn, "%s takes %s of memory, want less than %d MB", what, peaks.text("%.0f", " MB"), judgedIn)
	row := []string{what, times.seconds(), peaks.text("%.0f", " MB"), asked.String()}
	s.say("%v", row)
	return row, nil
}

func countCondemned(document []byte) (condemned, all int, err error) {
	c := v1.Cleanup{}
	if err := json.Unmarshal(document, &c); err != nil {
		return 0, 0, fmt.Errorf("read what gc printed: %w", err)
	}
	for _, item := range c.Items {
		if item.Action == "condemn" {
			condemned++
		}
	}
	return condemned, len(c.Items), nil
}

// timed runs the command line once, and returns what it printed, how long it took, and its memory at the highest.
func (s *site) timed(ctx context.Context, args ...string) ([]byte, time.Duration, int64, error) {
	if s.lab != nil {
		args = append([]string{"--kubeconfig", s.lab.Kubeconfig(), "--cache-dir", s.lab.Status().Directory}, args...)
	}
	c := exec.CommandContext(ctx, filepath.Join(s.programs, "tidemark"), args...)
	var out, remarks bytes.Buffer
	c.Stdout, c.Stderr = &out, &remarks
	begin := time.Now()
	if err := c.Run(); err != nil {
		return nil, 0, 0, fmt.Errorf("tidemark: %w\n%s", err, remarks.String())
	}
	took := time.Since(begin)
	s.used = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, 0, 0, errors.New("tidemark: no usage of resources")
	}
	lines := bytes.Count(out.Bytes(), []byte("\n"))
	s.say("%d lines, %.1fs; %s", lines, took.Seconds(), bytes.TrimSpace(remarks.Bytes()))
	return out.Bytes(), took, usage.Maxrss * 1024, nil
}
