package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Names that Argo Rollouts gives.
const (
	// LabelRolloutHash is on the ReplicaSets of a Rollout and on their pods: it tells revisions apart.
	LabelRolloutHash = "rollouts-pod-template-hash"
	// AnnotationRolloutRevision is on a Rollout and on its ReplicaSets: a number that counts up.
	AnnotationRolloutRevision = "rollout.argoproj.io/revision"
)

// Rollouts drives the Argo Rollouts of one namespace with the same requests as `kubectl argo rollouts`.
type Rollouts struct {
	api  dynamic.ResourceInterface
	kube kubernetes.Interface
	name string // of the namespace
}

// Rollouts returns access to the Argo Rollouts of a namespace.
func (l *Lab) Rollouts(namespace string) (*Rollouts, error) {
	api, err := dynamic.NewForConfig(l.RESTConfig())
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(l.RESTConfig())
	if err != nil {
		return nil, err
	}
	return &Rollouts{api: api.Resource(rolloutResource).Namespace(namespace), kube: kube, name: namespace}, nil
}

// Abort turns back to the stable ReplicaSet. The template of the Rollout stays the new one, and status.abort stays until the
// template changes, or Retry.
func (r *Rollouts) Abort(ctx context.Context, rollout string) error {
	return r.patchStatus(ctx, rollout, fields{"abort": true})
}

// Retry ends an abort: the steps begin anew.
func (r *Rollouts) Retry(ctx context.Context, rollout string) error {
	return r.patchStatus(ctx, rollout, fields{"abort": false})
}

// Pause is what a person does who wants a Rollout to stay where it is. Promote ends it.
func (r *Rollouts) Pause(ctx context.Context, rollout string) error {
	return r.patchSpec(ctx, rollout, fields{"paused": true})
}

// Promote takes a Rollout out of its pause: a pause step of a canary, an inconclusive analysis, a blue-green Rollout before its
// services switch, or a person's pause. A canary that is not paused skips its current step.
func (r *Rollouts) Promote(ctx context.Context, rollout string) error {
	state, err := r.State(ctx, rollout)
	if err != nil {
		return err
	}
	if patch := promotion(state); patch != nil {
		if err := r.patchStatus(ctx, rollout, patch); err != nil {
			return err
		}
	}
	return r.unpause(ctx, rollout, state)
}

// promotion returns the change of the status that takes a Rollout one pause or step on, or nil. A pause is ended by taking its
// condition away; that status.controllerPause stays tells the controller that somebody did.
func promotion(s RolloutState) fields {
	next := min(s.Step+1, s.Steps)
	switch {
	case s.inconclusive && len(s.Pauses) > 0 && s.controllerPause:
		return fields{"pauseConditions": nil, "controllerPause": false, "currentStepIndex": next}
	case len(s.Pauses) > 0:
		return fields{"pauseConditions": nil}
	case s.Steps > 0:
		return fields{"pauseConditions": nil, "currentStepIndex": next}
	}
	return nil
}

// PromoteFull makes the new ReplicaSet the stable one without further steps, pauses or analyses.
func (r *Rollouts) PromoteFull(ctx context.Context, rollout string) error {
	state, err := r.State(ctx, rollout)
	if err != nil {
		return err
	}
	if state.Current != state.Stable {
		if err := r.patchStatus(ctx, rollout, fields{"promoteFull": true}); err != nil {
			return err
		}
	}
	return r.unpause(ctx, rollout, state)
}

func (r *Rollouts) unpause(ctx context.Context, rollout string, state RolloutState) error {
	if !state.PausedBySpec {
		return nil
	}
	return r.patchSpec(ctx, rollout, fields{"paused": false})
}

// Undo writes the pod template of an earlier revision's ReplicaSet back, into the Deployment if the Rollout refers to
// one. Revision 0 is the one before the newest. What the ReplicaSet's template has from the API server's defaults, and
// what the controller injected into it (metadata of canary or stable, anti-affinity), comes along, as with the plugin.
func (r *Rollouts) Undo(ctx context.Context, rollout string, revision int64) error {
	sets, err := r.ReplicaSets(ctx, rollout)
	if err != nil {
		return err
	}
	set, err := ofRevision(sets, revision)
	if err != nil {
		return fmt.Errorf("undo rollout %s: %w", rollout, err)
	}
	state, err := r.State(ctx, rollout)
	if err != nil {
		return err
	}
	template := set.Spec.Template.DeepCopy()
	delete(template.Labels, LabelRolloutHash)
	patch, err := json.Marshal([]fields{{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		return err
	}
	switch state.workload.Kind {
	case "":
		_, err = r.api.Patch(ctx, rollout, types.JSONPatchType, patch, metav1.PatchOptions{})
	case "Deployment":
		_, err = r.kube.AppsV1().Deployments(r.name).Patch(ctx, state.workload.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	default:
		err = fmt.Errorf("undo rollout %s: it refers to a %s", rollout, state.workload.Kind)
	}
	return err
}

// ofRevision takes a list in the order of revisions.
func ofRevision(sets []appsv1.ReplicaSet, revision int64) (*appsv1.ReplicaSet, error) {
	if revision == 0 {
		if len(sets) < 2 {
			return nil, errors.New("there is no revision before")
		}
		return &sets[len(sets)-2], nil
	}
	for i := range sets {
		if RolloutRevision(&sets[i]) == revision {
			return &sets[i], nil
		}
	}
	return nil, fmt.Errorf("there is no revision %d", revision)
}

// ReplicaSets returns the ReplicaSets of a Rollout, the newest revision last.
func (r *Rollouts) ReplicaSets(ctx context.Context, rollout string) ([]appsv1.ReplicaSet, error) {
	owner, err := r.api.Get(ctx, rollout, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := r.kube.AppsV1().ReplicaSets(r.name).List(ctx, metav1.ListOptions{LabelSelector: LabelRolloutHash})
	if err != nil {
		return nil, err
	}
	sets := slices.DeleteFunc(list.Items, func(set appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&set, owner) })
	slices.SortFunc(sets, func(a, b appsv1.ReplicaSet) int { return int(RolloutRevision(&a) - RolloutRevision(&b)) })
	return sets, nil
}

// RolloutRevision returns the revision that a Rollout or a ReplicaSet of one carries, 0 for none.
func RolloutRevision(object metav1.Object) int64 {
	revision, _ := strconv.ParseInt(object.GetAnnotations()[AnnotationRolloutRevision], 10, 64)
	return revision
}

// fields are some of an object's, to be changed.
type fields map[string]any

func (r *Rollouts) patchSpec(ctx context.Context, rollout string, spec fields) error {
	return r.merge(ctx, rollout, fields{"spec": spec})
}

// patchStatus goes to the subresource: a status in any other patch is dropped.
func (r *Rollouts) patchStatus(ctx context.Context, rollout string, status fields) error {
	return r.merge(ctx, rollout, fields{"status": status}, "status")
}

func (r *Rollouts) merge(ctx context.Context, rollout string, change fields, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.api.Patch(ctx, rollout, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}
