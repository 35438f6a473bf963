package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// fluxLabel is on every object of a release that Flux made.
const fluxLabel = "helm.toolkit.fluxcd.io/name"

// inside is what the payload of a pending record leads to.
type inside struct {
	// hookActive says that a Job or Pod of a hook of the revision is not finished.
	hookActive bool
	// foreign names another tool that owns the release; "" for none.
	foreign string
	// problem says why neither can be told.
	problem string
}

// look reads what the payload of a pending record leads to.
func look(ctx context.Context, c client.Reader, namespace string, r release.Revision) inside {
	packed, err := Payload(ctx, c, namespace, r)
	if err != nil {
		return inside{problem: unread(plural(r.Kind), "in namespace "+namespace, err)}
	}
	payload, err := packed.Unpack()
	if err != nil {
		return inside{problem: fmt.Sprintf("%s/%s cannot be read: %v", strings.ToLower(r.Kind), r.Record, err)}
	}
	var out inside
	if strings.Contains(payload.Manifest, fluxLabel) {
		out.foreign = "Flux"
	}
	for _, h := range payload.Hooks {
		active, problem := hookActive(ctx, c, namespace, h, r)
		if problem != "" {
			out.problem = problem
		}
		out.hookActive = out.hookActive || active
	}
	return out
}

// hookActive reports whether the Job or Pod of a hook is not finished; problem says why that cannot be told. One that is older
// than the record is of another revision, what is neither has no life of its own, and tests do not run in a deploy.
func hookActive(ctx context.Context, c client.Reader, namespace string, h helmrecord.Hook, r release.Revision) (active bool, problem string) {
	var object client.Object
	var finished func() bool
	switch h.Kind {
	case "Job":
		job := &batchv1.Job{}
		object, finished = job, func() bool { return jobFinished(job) }
	case "Pod":
		pod := &corev1.Pod{}
		object, finished = pod, func() bool { return ended(pod, "") }
	default:
		return false, ""
	}
	if !slices.ContainsFunc(h.Events, func(event string) bool { return event != "test" }) {
		return false, ""
	}
	var said metav1.PartialObjectMetadata
	if err := yaml.Unmarshal([]byte(h.Manifest), &said); err != nil || h.Name == "" {
		return false, fmt.Sprintf("the manifest of its hook %s %q names no object", h.Kind, h.Name)
	}
	if said.Namespace != "" {
		namespace = said.Namespace
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: h.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return false, ""
	case err != nil:
		return false, unread(plural(h.Kind), "in namespace "+namespace, err)
	}
	return !finished() && !object.GetCreationTimestamp().Time.Before(r.Created), ""
}

func jobFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}
