package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
)

// pod makes a new pod read what its pins say, as the policy does where the API server has such policies. It reads nothing but
// the pod.
func pod(_ context.Context, req admission.Request) (answer, error) {
	if req.Operation != admissionv1.Create || req.Kind.Kind != "Pod" || req.SubResource != "" {
		return answer{outcome: unchanged}, nil
	}
	p := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, p); err != nil {
		return answer{}, fmt.Errorf("read pod: %w", err)
	}
	p.Namespace = req.Namespace // it may not have been filled in yet
	pins, err := snapshot.ParsePins(p.Namespace, p.Annotations[v1.AnnotationPins])
	if err != nil {
		return answer{}, fmt.Errorf("the pod reads what is applied: %w", err)
	}
	a := answer{outcome: unchanged}
	for _, m := range rewrite.Mismatches(p, pins) {
		if m.Path != "" { // else nothing reads it
			a.outcome = rewritten
			a.patch = append(a.patch, operation{Op: "replace", Path: pointerTo(m.Path), Value: m.Snapshot})
		}
	}
	return a, nil
}

var steps = strings.NewReplacer(".", "/", "[", "/", "]", "")

// pointerTo writes the path of a field, "spec.containers[0].env[1].valueFrom", as a JSON pointer.
func pointerTo(path string) string { return "/" + steps.Replace(path) }
