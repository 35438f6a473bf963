package cluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/fleet"
)

// Why Argo's controller has paused a Rollout, as its status has it. A person's pause is in the spec.
const (
	pauseOfStep      = "CanaryPauseStep"
	pauseOfBlueGreen = "BlueGreenPause"
)

// rolloutWorkloadGeneration is where Argo's controller notes the generation of the Deployment of which it has heard.
const rolloutWorkloadGeneration = "rollout.argoproj.io/workload-generation"

// argo is what is read of one of Argo's Rollouts.
type argo struct {
	generation  int64
	annotations map[string]string
	argoFields
}

type argoFields struct {
	Spec   argoSpec   `json:"spec"`
	Status argoStatus `json:"status"`
}

type argoSpec struct {
	Replicas                *int32                `json:"replicas"`
	Paused                  bool                  `json:"paused"`
	MinReadySeconds         int32                 `json:"minReadySeconds"`
	ProgressDeadlineSeconds *int32                `json:"progressDeadlineSeconds"`
	Selector                *metav1.LabelSelector `json:"selector"`
	WorkloadRef             *argoReference        `json:"workloadRef"`
	Strategy                struct {
		Canary *struct {
			Steps          []argoStep          `json:"steps"`
			MaxSurge       *intstr.IntOrString `json:"maxSurge"`
			MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
			CanaryMetadata *argoMetadata       `json:"canaryMetadata"`
			StableMetadata *argoMetadata       `json:"stableMetadata"`
		} `json:"canary"`
		BlueGreen *struct {
			PreviewMetadata *argoMetadata `json:"previewMetadata"`
			ActiveMetadata  *argoMetadata `json:"activeMetadata"`
		} `json:"blueGreen"`
	} `json:"strategy"`
}

type argoReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

type argoStep struct {
	SetWeight *int32 `json:"setWeight"`
	Pause     *struct {
		Duration *intstr.IntOrString `json:"duration"`
	} `json:"pause"`
}

// argoMetadata is what Argo puts on the pods of a revision for a time.
type argoMetadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type argoStatus struct {
	Phase                      string      `json:"phase"`
	Message                    string      `json:"message"`
	Abort                      bool        `json:"abort"`
	ControllerPause            bool        `json:"controllerPause"`
	PauseConditions            []argoPause `json:"pauseConditions"`
	CurrentStepIndex           *int32      `json:"currentStepIndex"`
	CurrentPodHash             string      `json:"currentPodHash"`
	StableRS                   string      `json:"stableRS"`
	ObservedGeneration         string      `json:"observedGeneration"`
	WorkloadObservedGeneration string      `json:"workloadObservedGeneration"`
	Replicas                   int32       `json:"replicas"`
	UpdatedReplicas            int32       `json:"updatedReplicas"`
	Conditions                 []struct {
		Type               string                 `json:"type"`
		Status             corev1.ConditionStatus `json:"status"`
		LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	} `json:"conditions"`
	Canary struct {
		Weights *struct {
			Canary struct {
				Weight int32 `json:"weight"`
			} `json:"canary"`
		} `json:"weights"`
	} `json:"canary"`
}

type argoPause struct {
	Reason    string      `json:"reason"`
	StartTime metav1.Time `json:"startTime"`
}

// isArgo reports whether the object is one of Argo's Rollouts.
func isArgo(obj client.Object) (*unstructured.Unstructured, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	return u, ok && u.GroupVersionKind().GroupKind() == ArgoRollout.GroupKind()
}

// readArgo reads a Rollout. Fields that are not as they should be are left out with all others: its own controller refuses it.
func readArgo(u *unstructured.Unstructured) argo {
	a := argo{generation: u.GetGeneration(), annotations: u.GetAnnotations()}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a.argoFields); err != nil {
		a.argoFields = argoFields{}
	}
	return a
}

// RevisionOfRollout is the hash of the revision that the controller of one of Argo's Rollouts made of its present template, "" for none.
// It is known when the status tells of the present spec, and of the template in what has it: the Rollout itself, or the Deployment
// that it refers to.
func RevisionOfRollout(rollout, holder *unstructured.Unstructured) (hash string, known bool) {
	a := readArgo(rollout)
	observed := holder == rollout || a.Status.WorkloadObservedGeneration == fmt.Sprint(holder.GetGeneration())
	return a.Status.CurrentPodHash, observed && a.seen()
}

// ElsewhereError says that the pod template of an object is that of another one.
type ElsewhereError struct {
	GVK  schema.GroupVersionKind
	Name string
}

// Error names the other object, and what to do where nothing is known of its kind.
func (e *ElsewhereError) Error() string {
	text := fmt.Sprintf("its pod template is that of %s/%s (spec.workloadRef)", strings.ToLower(e.GVK.Kind), e.Name)
	if e.Known() {
		return text
	}
	return text + ": only Deployments are known there, and nothing is done for it"
}

// Known reports whether the other object is a workload of a built-in kind, which is stamped itself.
func (e *ElsewhereError) Known() bool { return e.GVK.GroupKind() == deployment.GroupKind() }

// elsewhere is the object whose template a Rollout takes; nil where it has its own.
func elsewhere(u *unstructured.Unstructured) *ElsewhereError {
	ref, found, err := unstructured.NestedStringMap(u.Object, "spec", "workloadRef")
	if !found || err != nil || ref["name"] == "" {
		return nil //nolint:nilerr // a reference that is no reference leads nowhere; the API refuses one
	}
	return &ElsewhereError{schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"]), ref["name"]}
}

// seen reports whether the status tells of the present spec, and of the present template where that is elsewhere. An ended pause
// leaves no trace but the mark that the controller had paused.
func (a argo) seen() bool {
	workload, refers := a.annotations[rolloutWorkloadGeneration]
	return a.Status.ObservedGeneration == fmt.Sprint(a.generation) &&
		(!a.Status.ControllerPause || len(a.Status.PauseConditions) > 0) &&
		(!refers || a.Status.WorkloadObservedGeneration == workload)
}

// rollout tells how far a Rollout is.
func (a argo) rollout() Rollout {
	r := Rollout{
		Done: a.seen() && a.Status.CurrentPodHash != "" && a.Status.CurrentPodHash == a.Status.StableRS &&
			a.Status.UpdatedReplicas >= orOne(a.Spec.Replicas) && a.Status.Replicas <= a.Status.UpdatedReplicas,
	}
	if !r.Done {
		_, r.Stuck = a.hindrance()
	}
	return r
}

// RolloutOfTemplate reads the rollout of a workload that takes its template from another one, of which this is the generation.
func RolloutOfTemplate(obj client.Object, generation int64) Rollout {
	r := RolloutOf(obj)
	if u, is := isArgo(obj); is {
		r.Done = r.Done && readArgo(u).Status.WorkloadObservedGeneration == fmt.Sprint(generation)
	}
	return r
}

// hindrance is why a Rollout does not go on by itself, with words for people; "" when nothing is known to stand in the way.
func (a argo) hindrance() (cause fleet.Cause, words string) {
	if a.Spec.Paused {
		return fleet.PausedByPerson, "spec.paused is set, so the Rollout does not roll until it is resumed"
	}
	if !a.seen() {
		return "", ""
	}
	if a.Status.Abort {
		return fleet.Aborted, "the rollout was aborted: pods stay at the stable revision until it is retried or the template changes"
	}
	for _, p := range a.Status.PauseConditions {
		switch p.Reason {
		case pauseOfStep:
			return fleet.CanaryPause, a.pauseText()
		case pauseOfBlueGreen:
			return fleet.BlueGreenPause, "the new revision waits to be promoted (" + p.Reason + ")"
		default:
			return fleet.Inconclusive, "its analysis did not decide, so a person has to (" + p.Reason + ")"
		}
	}
	if a.Status.Phase == "Degraded" {
		return fleet.Degraded, "the rollout does not progress: " + a.Status.Message
	}
	return "", ""
}

func (a argo) pauseText() string {
	step, steps := a.step()
	text := fmt.Sprintf("the canary pauses at step %d of %d", step, steps)
	if d, timed := a.pauseEnds(); timed {
		return text + " for " + d.String()
	}
	return text + " until somebody promotes it (" + pauseOfStep + ")"
}

// step is the number of the step that a canary is at, counted from 1, and how many there are; after the last it stays there.
func (a argo) step() (step, steps int) {
	if a.Spec.Strategy.Canary == nil {
		return 0, 0
	}
	steps = len(a.Spec.Strategy.Canary.Steps)
	if i := a.Status.CurrentStepIndex; i != nil {
		step = int(*i)
	}
	return min(step+1, steps), steps
}

// pauseEnds is after how long the pause of the present step ends by itself; false when it does not.
func (a argo) pauseEnds() (time.Duration, bool) {
	step, steps := a.step()
	if step == 0 || steps == 0 {
		return 0, false
	}
	return a.Spec.Strategy.Canary.Steps[step-1].duration()
}

// duration is that of a pause with one: seconds, or a text.
func (s argoStep) duration() (time.Duration, bool) {
	if s.Pause == nil || s.Pause.Duration == nil {
		return 0, false
	}
	if s.Pause.Duration.Type == intstr.Int {
		return time.Duration(s.Pause.Duration.IntVal) * time.Second, true
	}
	text := s.Pause.Duration.StrVal
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s") // as Argo reads a number without a unit
	}
	return d, err == nil
}

// weight is the percentage that a canary is meant to have; false for a Rollout without one.
func (a argo) weight() (int, bool) {
	c := a.Spec.Strategy.Canary
	step, steps := a.step()
	switch {
	case c == nil || steps == 0:
		return 0, false
	case a.Status.Canary.Weights != nil:
		return int(a.Status.Canary.Weights.Canary.Weight), true
	case a.Status.Abort:
		return 0, true
	case a.Status.CurrentStepIndex != nil && int(*a.Status.CurrentStepIndex) >= steps:
		return 100, true
	}
	for i := step - 1; i >= 0; i-- {
		if w := c.Steps[i].SetWeight; w != nil {
			return int(*w), true
		}
	}
	return 0, true
}

// pace is how a Rollout rolls. The pauses of a canary that end by themselves are part of it.
func (a argo) pace() fleet.Rollout {
	r := fleet.Rollout{Replicas: int(orOne(a.Spec.Replicas)), MinReady: seconds(a.Spec.MinReadySeconds)}
	if a.Spec.ProgressDeadlineSeconds != nil {
		r.ProgressDeadline = seconds(*a.Spec.ProgressDeadlineSeconds)
	}
	c := a.Spec.Strategy.Canary
	if c == nil {
		r.MaxSurge = r.Replicas
		return r
	}
	quarter := intstr.FromString("25%")
	r.MaxSurge = pods(orElse(c.MaxSurge, &quarter), r.Replicas, true)
	r.MaxUnavailable = pods(orElse(c.MaxUnavailable, &quarter), r.Replicas, false)
	for _, s := range c.Steps {
		if d, timed := s.duration(); timed {
			r.Pauses += d
		}
	}
	return r
}

// ephemeral is the metadata that Argo puts on pods for a time.
func (a argo) ephemeral() []*argoMetadata {
	var out []*argoMetadata
	if c := a.Spec.Strategy.Canary; c != nil {
		out = append(out, c.CanaryMetadata, c.StableMetadata)
	}
	if b := a.Spec.Strategy.BlueGreen; b != nil {
		out = append(out, b.PreviewMetadata, b.ActiveMetadata)
	}
	return out
}
