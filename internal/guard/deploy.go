// Package guard keeps the lease of a deploy while its command runs.
package guard

import (
	"crypto/rand"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// Deploy is one guarded run of a command, as its Lease tells it. Nothing of the command's arguments or environment is in it.
type Deploy struct {
	// ID of this one run.
	ID      string
	Release types.NamespacedName
	// Holder is the guard; Starter the person or program that started the deploy; Job a link to where it runs.
	Holder, Starter, Job string
	// Timeout is when after its start the command has ended, because its guard stops it then or has died with it; 0 where that is not
	// certain.
	Timeout time.Duration
	// Duration is how long the lease holds without renewal.
	Duration time.Duration
	// Policy is the strongest that may be applied to what the deploy leaves behind; "" for any.
	Policy release.Policy
	// Pod that the guard runs in; nil where it runs in none that the release's cluster knows.
	Pod *Pod
}

// NewID makes the id of a deploy: good as a label's value, and of no other deploy.
func NewID() string { return strings.ToLower(rand.Text()) }

// lease makes the Lease as it is when it is taken at now, which is server by the API server's clock. What a former deploy noted on
// it is gone but for whom to tell of its end; what others put there stays.
func (d Deploy) lease(former *coordinationv1.Lease, now, server time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: d.Release.Namespace, Name: v1.DeployLeasePrefix + d.Release.Name}}
	if former != nil {
		l = former.DeepCopy()
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Labels[v1.LabelDeploy] = d.ID
	for name := range l.Annotations {
		if strings.HasPrefix(name, v1.LabelDeploy+"-") {
			delete(l.Annotations, name)
		}
	}
	for name, value := range d.annotations(former, server) {
		if value != "" {
			l.Annotations[name] = value
		}
	}
	l.Spec.HolderIdentity = &d.Holder
	l.Spec.LeaseDurationSeconds = ptr.To(int32(d.Duration / time.Second)) //nolint:gosec // a duration of years
	l.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	l.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if former != nil {
		l.Spec.LeaseTransitions = ptr.To(ptr.Deref(former.Spec.LeaseTransitions, 0) + 1)
	}
	return l
}

func (d Deploy) annotations(former *coordinationv1.Lease, server time.Time) map[string]string {
	a := map[string]string{
		v1.AnnotationDeployStartedBy: d.Starter, v1.AnnotationDeployJob: d.Job, v1.AnnotationDeployPolicy: string(d.Policy),
	}
	if former != nil {
		a[v1.AnnotationDeployBefore] = helm.EncodeFormers(former, server)
	}
	if d.Timeout > 0 {
		a[v1.AnnotationDeployTimeout] = d.Timeout.String()
	}
	if d.Pod != nil {
		a[v1.AnnotationDeployPod] = d.Pod.Namespace + "/" + d.Pod.Name + "/" + string(d.Pod.UID)
		a[v1.AnnotationDeployContainer], a[v1.AnnotationDeployNode] = d.Pod.Container, d.Pod.Node
	}
	return a
}

// text is a time as the Lease's annotations have it.
func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
