package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/podtemplate"
)

// CanaryOf reads what a Rollout says of its pause, without its pods; false for what is no Rollout, or waits for nothing. Who
// stopped Tidemark's writes is the caller's to know.
func CanaryOf(obj client.Object) (fleet.Canary, bool) {
	u, is := isArgo(obj)
	if !is {
		return fleet.Canary{}, false
	}
	a := readArgo(u)
	if !a.seen() {
		return fleet.Canary{}, false
	}
	c := fleet.Canary{}
	c.After, _ = PromoteAfter(u.GetAnnotations()) // a problem of it is told elsewhere
	if a.Spec.Paused {
		c.Causes = append(c.Causes, fleet.PausedByPerson)
	}
	if a.Status.Abort {
		c.Causes = append(c.Causes, fleet.Aborted)
	}
	for _, p := range a.Status.PauseConditions {
		c.Causes = append(c.Causes, causeOf(p.Reason))
		c.Since = latest(c.Since, p.StartTime.Time)
	}
	_, c.Timed = a.pauseEnds()
	return c, len(c.Causes) > 0 && a.Status.Phase == "Paused"
}

// causeOf is the cause that a reason of Argo's controller stands for.
func causeOf(reason string) fleet.Cause {
	switch reason {
	case pauseOfStep:
		return fleet.CanaryPause
	case pauseOfBlueGreen:
		return fleet.BlueGreenPause
	}
	return fleet.Inconclusive
}

// AddCanaryPods adds how many pods the newer revision of a Rollout is to have, and those that it has: two lists.
func AddCanaryPods(ctx context.Context, reader client.Reader, obj client.Object, c *fleet.Canary) error {
	u, is := isArgo(obj)
	if !is {
		return nil
	}
	labelled := client.MatchingLabels{podtemplate.LabelRolloutHash: readArgo(u).Status.CurrentPodHash}
	sets := &appsv1.ReplicaSetList{}
	if err := reader.List(ctx, sets, client.InNamespace(u.GetNamespace()), labelled); err != nil {
		return fmt.Errorf("list replicasets: %w", err)
	}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(u.GetNamespace()), labelled); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range sets.Items {
		rs := &sets.Items[i]
		if !controlledBy(rs, u.GetUID()) {
			continue
		}
		c.Wanted += int(orOne(rs.Spec.Replicas))
		for j := range pods.Items {
			if pod := &pods.Items[j]; controlledBy(pod, rs.GetUID()) && !Finished(pod) {
				c.Pods = append(c.Pods, PodOf(pod))
			}
		}
	}
	return nil
}

// Promote ends the pause of a canary, as `kubectl argo rollouts promote` does: it takes the condition away, which Argo's
// controller takes for somebody's word to go on. The write carries the resourceVersion of the Rollout that was decided on.
func Promote(ctx context.Context, c client.Client, obj client.Object) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()},
		"status":   map[string]any{"pauseConditions": nil},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	answer := MetadataOf(ArgoRollout)
	answer.SetNamespace(obj.GetNamespace())
	answer.SetName(obj.GetName())
	return c.SubResource("status").Patch(ctx, answer, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1.FieldManager))
}
