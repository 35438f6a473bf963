package cluster

import (
	"context"
	"slices"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/stamp"
)

const (
	notInForce = "pins are not in force: neither the admission policy " + v1.PolicyPin + " with its binding nor the webhook " + v1.WebhookPods +
		" is installed and trusted, so new pods of workloads in mode pin read what is applied"
	inBetween = "the webhook " + v1.WebhookWorkloads + " is not installed, or not trusted yet: where a deploy changes configuration and image one after the " +
		"other, kubectl rollout undo may land on a revision in between, with the new image and the old configuration"
)

// readPinning remarks what is not installed that workloads in mode pin need; nothing where there are none, or where it may not
// be looked at.
func (r *reading) readPinning(ctx context.Context) error {
	if !slices.ContainsFunc(r.sight.Workloads, func(w Workload) bool { return w.Fleet.Mode == stamp.Pin }) {
		return nil
	}
	p, err := FindPinning(ctx, r.Client)
	if err != nil {
		return err
	}
	if !p.Workloads && !p.Hidden {
		r.sight.Remarks = append(r.sight.Remarks, inBetween)
	}
	if !p.InForce() && !p.Hidden {
		r.sight.Remarks = append(r.sight.Remarks, notInForce)
	}
	return nil
}
