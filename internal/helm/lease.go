package helm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// DecodeLease reads a guard's Lease, at now by the API server's clock. One that cannot be read is an error: it is not the same as
// none.
func DecodeLease(l *coordinationv1.Lease, now time.Time) (*release.Lease, error) {
	a := l.Annotations
	out := &release.Lease{
		ResourceVersion: l.ResourceVersion, Deploy: l.Labels[v1.LabelDeploy], Starter: a[v1.AnnotationDeployStartedBy], Job: a[v1.AnnotationDeployJob],
		Policy: release.Policy(a[v1.AnnotationDeployPolicy]), Written: helmrecord.Written(l),
	}
	if l.Spec.HolderIdentity != nil {
		out.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		out.Renewed = l.Spec.RenewTime.Time
	}
	if l.Spec.LeaseDurationSeconds == nil || *l.Spec.LeaseDurationSeconds < 1 {
		return nil, fmt.Errorf("lease %s: spec.leaseDurationSeconds is missing", l.Name)
	}
	out.Duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	out.Pod.Container, out.Pod.Node = a[v1.AnnotationDeployContainer], a[v1.AnnotationDeployNode]
	ended := &release.Outcome{Stopped: release.Stop(a[v1.AnnotationDeployStopped])}
	signal, when, _ := strings.Cut(a[v1.AnnotationDeploySignal], " ")
	out.Signal = signal
	out.Signalled, _ = time.Parse(time.RFC3339, when) // for people alone: what somebody broke is no reason to know nothing
	for _, field := range []struct {
		annotation string
		read       func(string) error
	}{
		{v1.AnnotationDeployRevision, func(s string) (err error) { out.Revision, err = strconv.ParseInt(s, 10, 64); return }},
		{v1.AnnotationDeployBegan, func(s string) (err error) { out.Began, err = time.Parse(time.RFC3339, s); return }},
		{v1.AnnotationDeployWritten, func(s string) (err error) { out.Written, err = time.Parse(time.RFC3339, s); return }},
		{v1.AnnotationDeployTimeout, func(s string) (err error) { out.Timeout, err = time.ParseDuration(s); return }},
		{v1.AnnotationDeployPod, func(s string) error { return decodePod(s, &out.Pod) }},
		{v1.AnnotationDeployExitStatus, func(s string) (err error) { ended.ExitStatus, err = strconv.Atoi(s); return }},
		{v1.AnnotationDeployEnded, func(s string) (err error) {
			out.Finished = ended
			ended.Time, err = time.Parse(time.RFC3339, s)
			return
		}},
	} {
		if text, has := a[field.annotation]; has {
			if err := field.read(text); err != nil {
				return nil, fmt.Errorf("lease %s: annotation %s: %q cannot be read", l.Name, field.annotation, text)
			}
		}
	}
	if !out.Written.IsZero() {
		// By the API server's clock alone, which is good for showing. Who acts must have observed the Lease for its duration.
		out.Unchanged = max(0, now.Sub(out.Written))
	}
	return out, nil
}

// decodePod reads NAMESPACE/NAME/UID.
func decodePod(text string, into *release.JobPod) error {
	part := strings.Split(text, "/")
	if len(part) != 3 || slices.Contains(part, "") {
		return fmt.Errorf("want NAMESPACE/NAME/UID")
	}
	into.Namespace, into.Name, into.UID = part[0], part[1], part[2]
	return nil
}
