package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

var ballast = benchmark{
	name: "ballast", title: "Memory: 2,000 ConfigMaps of 50 KB and 500 Helm release Secrets of 200 KB that nothing references",
	lab: client.Options{NoNodes: true},
	run: runBallast,
}

// mostResident is what the controller may take with all of it there, in bytes.
const mostResident = 70_000_000

// settled is how long the controller is left alone before its memory is read.
const settled = 30 * time.Second

func runBallast(ctx context.Context, s *site) (report, error) {
	const configMaps, releases, used, namespace = 2000, 500, 20, "ballast"
	rep := report{}
	var rows [][]string
	take := func(what string) error {
		row, err := s.weigh(ctx, what)
		rows = append(rows, row)
		return err
	}
	if err := errOf(
		s.namespace(ctx, namespace, ""),
		s.namespace(ctx, rolledNamespace, "roll"),
		s.configMaps(ctx, rolledNamespace, used, 400, numbered),
		s.deployments(ctx, rolledNamespace, used, 0, numbered),
	); err != nil {
		return rep, err
	}
	if err := take("without the ballast"); err != nil {
		return rep, err
	}
	s.say("making the ballast")
	if err := errOf(
		s.configMaps(ctx, namespace, configMaps, 50_000, numbered),
		s.helmReleases(ctx, namespace, releases, 200_000),
	); err != nil {
		return rep, err
	}
	if err := take("with the ballast"); err != nil {
		return rep, err
	}
	rep.table([]string{"", "resident", "of it the program's file", "peak", "live heap", "requests"}, rows...)
	rep.text("The controller is started fresh, beside %d Deployments that it looks after, and left alone for %v. The settings are the defaults.", used, settled)
	return rep, nil
}

// weigh starts a controller and reads its memory after a while.
func (s *site) weigh(ctx context.Context, what string) ([]string, error) {
	if err := s.lab.ResetRequests(ctx); err != nil {
		return nil, err
	}
	c, err := s.controller(ctx)
	if err != nil {
		return nil, err
	}
	row, err := s.weighed(ctx, c, what)
	return row, errOf(err, c.Stop())
}

func (s *site) weighed(ctx context.Context, c *scenario.Controller, what string) ([]string, error) {
	if err := wait(ctx, settled); err != nil {
		return nil, err
	}
	asked, err := s.requests(ctx, byController)
	if err != nil {
		return nil, err
	}
	m, err := memoryOf(c.PID())
	if err != nil {
		return nil, err
	}
	heap, _, err := c.Metric(ctx, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return nil, err
	}
	s.want(m.resident < mostResident, "%s, the controller takes %s, want less than %s", what, megabytes(m.resident), megabytes(mostResident))
	row := []string{what, megabytes(m.resident), megabytes(m.file), megabytes(m.peak), megabytes(int64(heap)), asked.String()}
	s.say("%v", row)
	return row, nil
}

// helmReleases makes records of releases as Helm keeps them: a payload that does not compress any more.
func (s *site) helmReleases(ctx context.Context, namespace string, n, size int) error {
	payload := make([]byte, size)
	if _, err := rand.Read(payload); err != nil {
		return err
	}
	return each(ctx, n, workers, func(ctx context.Context, i int) error {
		return s.api.Create(ctx, helmRecord(namespace, fmt.Sprintf("release-%d", i), 1, "deployed", payload))
	})
}

// helmRecord is the record of a revision as Helm keeps it.
func helmRecord(namespace, release string, revision int, status string, payload []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision),
			Labels: map[string]string{"owner": "helm", "name": release, "status": status, "version": strconv.Itoa(revision)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": payload},
	}
}
