package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/lab/client"
)

var noOp = benchmark{
	name: "noop", title: "No-op: metadata of 500 referenced ConfigMaps edited",
	lab: client.Options{NoNodes: true},
	run: runNoOp,
}

func runNoOp(ctx context.Context, s *site) (report, error) {
	const n, namespace = 500, "noop"
	if err := errOf(
		s.namespace(ctx, namespace, "roll"),
		s.configMaps(ctx, namespace, n, 400, numbered),
		s.deployments(ctx, namespace, n, 0, numbered),
	); err != nil {
		return report{}, err
	}
	c, err := s.controller(ctx)
	if err != nil {
		return report{}, err
	}
	asked, err := s.editMetadata(ctx, namespace, n)
	if err := errOf(err, c.Stop()); err != nil {
		return report{}, err
	}
	s.want(asked.total() == 0, "%d requests after edits of metadata: %s", asked.total(), asked)
	rep := report{}
	rep.table([]string{"edits", "the controller's requests"}, []string{grouped(2 * n), asked.String()})
	rep.text("A label and then an annotation of each of %d ConfigMaps. The settings are the defaults.", n)
	return rep, nil
}

// editMetadata sets a label, then an annotation, and returns what the controller asked from then until long after.
func (s *site) editMetadata(ctx context.Context, namespace string, n int) (tally, error) {
	if err := s.lab.ResetRequests(ctx); err != nil {
		return nil, err
	}
	for _, what := range []string{"labels", "annotations"} {
		err := each(ctx, n, workers, func(ctx context.Context, i int) error {
			return s.patch(ctx, &corev1.ConfigMap{}, namespace, numbered(i), fmt.Sprintf(`{"metadata":{%q:{"example.org/owner":"shop"}}}`, what))
		})
		if err != nil {
			return nil, err
		}
	}
	if err := wait(ctx, 10*time.Second); err != nil {
		return nil, err
	}
	return s.requests(ctx, byController)
}
