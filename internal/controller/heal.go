package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/stamp"
)

// healEvery is how often a StatefulSet that is being rolled is looked at again for a pod in its way.
const healEvery = 3 * time.Second

// heal deletes the pod that keeps a StatefulSet in mode pin from rolling. With the pod management policy OrderedReady its
// controller waits for a pod that is not ready before it replaces any, also when that pod is of an older revision and can
// never get ready: pinned to a copy that it cannot read, it would stand in the way of the very revision that puts it right.
// One pod is deleted at a time. It returns when to look again, 0 for not before something changes.
func (c *Controller) heal(ctx context.Context, s *subject, v view) (time.Duration, error) {
	set, ok := s.object.(*appsv1.StatefulSet)
	if !ok || v.state.Mode != stamp.Pin || v.paused != "" || !mayBeStuck(set) {
		return 0, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return 0, fmt.Errorf("read selector of %s: %w", s.id, err)
	}
	list := &corev1.PodList{}
	if err := c.reader.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return 0, fmt.Errorf("list pods of %s: %w", s.id, err)
	}
	pod := inTheWay(set, list.Items)
	if pod == nil {
		return healEvery, nil
	}
	err = c.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return healEvery, nil
	case err != nil:
		if c.remember(s.id, "stuck") {
			c.announcer.refused(s, err)
		}
		return 0, fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	c.announcer.healed(s, pod.Name)
	c.log.Info("Deleted a pod that kept its StatefulSet from rolling", "workload", s.id.String(), "pod", pod.Name)
	return healEvery, nil
}

// mayBeStuck reports whether a StatefulSet replaces pods in order, has a newer revision than its pods, and is not getting on.
func mayBeStuck(set *appsv1.StatefulSet) bool {
	ordered := set.Spec.PodManagementPolicy == "" || set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement
	rolls := set.Spec.UpdateStrategy.Type == "" || set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType
	return ordered && rolls && set.Status.ObservedGeneration == set.Generation &&
		set.Status.UpdatedReplicas < set.Status.Replicas && set.Status.ReadyReplicas < set.Status.Replicas
}

// inTheWay is the first pod, by its ordinal, for which the StatefulSet's controller waits although it is of an older revision
// and fails; nil when there is none. As long as a pod is on its way out, or one of the newest revision is not ready yet, the
// rollout may be getting on, and none is in its way.
func inTheWay(set *appsv1.StatefulSet, pods []corev1.Pod) *corev1.Pod {
	partition := 0
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		partition = int(*r.Partition)
	}
	if o := set.Spec.Ordinals; o != nil {
		partition += int(o.Start)
	}
	var own []*corev1.Pod
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], set) {
			own = append(own, &pods[i])
		}
	}
	newest := func(p *corev1.Pod) bool {
		return p.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision
	}
	if slices.ContainsFunc(own, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || newest(p) && !podReady(p) }) {
		return nil
	}
	slices.SortFunc(own, func(a, b *corev1.Pod) int { return ordinal(a) - ordinal(b) })
	for _, p := range own {
		switch {
		case podReady(p):
		case ordinal(p) >= partition && fails(p):
			return p
		default:
			return nil // it may get ready yet: nothing to put right
		}
	}
	return nil
}

func ordinal(p *corev1.Pod) int {
	n, _ := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	return n
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// fails reports whether a container of the pod does not come up: it has ended and is started again and again, or it cannot
// even be made. One that is being pulled or initialised is given its time, and so is one that runs: its restarts are those of its
// whole life, and may be long ago.
func fails(p *corev1.Pod) bool {
	statuses := append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...)
	return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
		if s.Ready {
			return false
		}
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return true
		}
		return s.RestartCount > 1 && s.State.Running == nil
	})
}
