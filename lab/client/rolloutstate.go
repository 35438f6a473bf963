package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RolloutPhase is how a Rollout is, in one word.
type RolloutPhase string

// The phases that Argo Rollouts knows. Degraded is one that was aborted, is late, or is not valid.
const (
	RolloutHealthy     RolloutPhase = "Healthy"
	RolloutProgressing RolloutPhase = "Progressing"
	RolloutPaused      RolloutPhase = "Paused"
	RolloutDegraded    RolloutPhase = "Degraded"
)

// Why a controller has paused a Rollout. A person's pause has none: see RolloutState.PausedBySpec.
const (
	PauseCanaryStep             = "CanaryPauseStep"
	PauseBlueGreen              = "BlueGreenPause"
	PauseInconclusiveAnalysis   = "InconclusiveAnalysisRun"
	PauseInconclusiveExperiment = "InconclusiveExperiment"
)

// RolloutPause is one reason for which a Rollout waits.
type RolloutPause struct {
	Reason    string      `json:"reason"`
	StartTime metav1.Time `json:"startTime"`
}

// RolloutState is what a Rollout says of itself.
type RolloutState struct {
	// Phase and Message are Progressing, with a message that says so, until the controller has seen the last change.
	Phase   RolloutPhase
	Message string
	// Revision is that of the current template.
	Revision int64
	// Step is the index of the step of a canary that it is at: Steps when all are behind it.
	Step, Steps int
	// Weight is the percentage that the canary is meant to have at its step. Without a traffic router it is met as nearly
	// as whole pods can.
	Weight int
	// Pauses are the controller's, PausedBySpec is a person's.
	Pauses       []RolloutPause
	PausedBySpec bool
	Aborted      bool
	// Current and Stable are values of the label with the hash: of the template as it is, and of what was last promoted.
	Current, Stable string
	// Active and Preview are the hashes that the services of a blue-green Rollout select.
	Active, Preview string
	// Replicas of all ReplicaSets together; Updated are those of the current one.
	Replicas, Updated, Available int

	controllerPause, inconclusive bool
	workload                      rolloutWorkload
}

// rolloutWorkload is what a Rollout without a template of its own refers to.
type rolloutWorkload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// rollout is the part of a Rollout that is read here.
type rollout struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Paused      bool            `json:"paused"`
		WorkloadRef rolloutWorkload `json:"workloadRef"`
		Strategy    struct {
			Canary *struct {
				Steps []struct {
					SetWeight *int `json:"setWeight"`
				} `json:"steps"`
			} `json:"canary"`
		} `json:"strategy"`
	} `json:"spec"`
	Status struct {
		Phase             RolloutPhase   `json:"phase"`
		Message           string         `json:"message"`
		Abort             bool           `json:"abort"`
		ControllerPause   bool           `json:"controllerPause"`
		PauseConditions   []RolloutPause `json:"pauseConditions"`
		CurrentStepIndex  *int           `json:"currentStepIndex"`
		CurrentPodHash    string         `json:"currentPodHash"`
		StableRS          string         `json:"stableRS"`
		Replicas          int            `json:"replicas"`
		UpdatedReplicas   int            `json:"updatedReplicas"`
		AvailableReplicas int            `json:"availableReplicas"`

		// Both are numbers in text.
		ObservedGeneration         string `json:"observedGeneration"`
		WorkloadObservedGeneration string `json:"workloadObservedGeneration"`

		Canary struct {
			CurrentStepAnalysisRunStatus struct {
				Status string `json:"status"`
			} `json:"currentStepAnalysisRunStatus"`
		} `json:"canary"`
		BlueGreen struct {
			ActiveSelector  string `json:"activeSelector"`
			PreviewSelector string `json:"previewSelector"`
		} `json:"blueGreen"`
	} `json:"status"`
}

// annotationWorkloadGeneration is where the controller notes which generation of the Deployment it has heard of.
const annotationWorkloadGeneration = "rollout.argoproj.io/workload-generation"

// State returns what a Rollout says of itself.
func (r *Rollouts) State(ctx context.Context, name string) (RolloutState, error) {
	object, err := r.api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return RolloutState{}, err
	}
	var ro rollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &ro); err != nil {
		return RolloutState{}, fmt.Errorf("read rollout %s: %w", name, err)
	}
	return ro.state(), nil
}

func (ro *rollout) state() RolloutState {
	s := RolloutState{
		Revision: RolloutRevision(&ro.Metadata),
		Pauses:   ro.Status.PauseConditions, PausedBySpec: ro.Spec.Paused, Aborted: ro.Status.Abort,
		Current: ro.Status.CurrentPodHash, Stable: ro.Status.StableRS,
		Active: ro.Status.BlueGreen.ActiveSelector, Preview: ro.Status.BlueGreen.PreviewSelector,
		Replicas: ro.Status.Replicas, Updated: ro.Status.UpdatedReplicas, Available: ro.Status.AvailableReplicas,
		controllerPause: ro.Status.ControllerPause,
		inconclusive:    ro.Status.Canary.CurrentStepAnalysisRunStatus.Status == "Inconclusive",
		workload:        ro.Spec.WorkloadRef,
	}
	if canary := ro.Spec.Strategy.Canary; canary != nil {
		s.Steps = len(canary.Steps)
		if ro.Status.CurrentStepIndex != nil {
			s.Step = *ro.Status.CurrentStepIndex
		}
		s.Weight = ro.weight(s.Step)
	}
	s.Phase, s.Message = ro.phase()
	return s
}

// phase is what the plugin shows. The one in the status is not to be trusted while the controller has not seen a change, of which
// an ended pause leaves no trace but the mark that the controller had paused.
func (ro *rollout) phase() (RolloutPhase, string) {
	generation := fmt.Sprint(ro.Metadata.Generation)
	workload, refers := ro.Metadata.Annotations[annotationWorkloadGeneration]
	switch {
	case ro.Status.ObservedGeneration != generation:
		return RolloutProgressing, "the controller has not seen generation " + generation
	case ro.Status.ControllerPause && len(ro.Status.PauseConditions) == 0:
		return RolloutProgressing, "the controller has not seen the end of the pause"
	case refers && ro.Status.WorkloadObservedGeneration != workload:
		return RolloutProgressing, "the controller has not rolled generation " + workload + " of the workload"
	}
	return ro.Status.Phase, ro.Status.Message
}

// weight is that of the last step up to the current one that sets it.
func (ro *rollout) weight(step int) int {
	steps := ro.Spec.Strategy.Canary.Steps
	switch {
	case ro.Status.Abort:
		return 0
	case step >= len(steps):
		return 100
	}
	for i := step; i >= 0; i-- {
		if weight := steps[i].SetWeight; weight != nil {
			return *weight
		}
	}
	return 0
}

// InPhase returns nil when a Rollout is in the phase, else an error that says how it is. It is made to be called until it does.
func (r *Rollouts) InPhase(ctx context.Context, name string, want RolloutPhase) error {
	state, err := r.State(ctx, name)
	if err != nil {
		return err
	}
	if state.Phase != want {
		return fmt.Errorf("rollout %s is %s (%s), want %s", name, state.Phase, state.Message, want)
	}
	return nil
}
