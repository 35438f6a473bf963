// Package revisions reads what a cluster has retained of a workload, with the way back to it.
package revisions

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
)

// changeCauseAnnotation has, by the convention of kubectl, why a revision came about.
const changeCauseAnnotation = "kubernetes.io/change-cause"

var (
	deployment             = appsv1.SchemeGroupVersion.WithKind("Deployment")
	replicaSet             = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	statefulSet            = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSet              = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	controllerRevisionKind = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
)

// History is a workload with its retained revisions, as one look at the API showed them.
type History struct {
	cluster.Target
	UID string
	// Now is the time of the look by the API server's clock.
	Now time.Time
	// Mode of the workload, and what Tidemark left on it; nil when it left nothing.
	Mode   stamp.Mode
	Record *stamp.Record
	// Paused says that spec.paused is set, so that the workload does not roll.
	Paused bool
	// Owner is what controls the workload, as "KIND/NAME", and Manager the program that its metadata says writes its template;
	// "" for none.
	Owner, Manager string
	// Revisions by number, lowest first; the present template is among them, as a revision without a name where its
	// controller has not made one of it.
	Revisions []revision.Revision
	// Copies are those that the revisions read.
	Copies revision.Copies
	// Remarks say what could not be read.
	Remarks []string

	client client.Client
	// object is the workload, and holder what has its pod template: the workload, or what its workloadRef names.
	object, holder *unstructured.Unstructured
	path           []string
	// written is what has the pod template as the API server stored it when a revision was put back; nil before.
	written *unstructured.Unstructured
	// raw are the templates of revisions by their names, with fields that this program may not know.
	raw map[string]map[string]any
}

// HistoryOf reads a workload with its retained revisions: the ReplicaSets of a Deployment or of one of Argo's Rollouts, the
// ControllerRevisions of a StatefulSet or DaemonSet. It needs nothing but the right to read. What may not be read becomes a
// remark, and what depends on it unknown. The mode is the default one where neither workload nor namespace chooses.
func HistoryOf(ctx context.Context, c *cluster.Connection, t cluster.Target, defaultMode stamp.Mode) (*History, error) {
	return readHistory(ctx, c, t, defaultMode, func(h *History) error {
		if err := h.readRevisions(ctx); err != nil {
			return fmt.Errorf("read revisions of %s: %w", t, err)
		}
		revision.Sort(h.Revisions)
		return nil
	})
}

// PresentOf reads a workload of a kind that keeps no revisions: its template now stands for the only one. Errors are those of [HistoryOf].
func PresentOf(ctx context.Context, c *cluster.Connection, t cluster.Target, defaultMode stamp.Mode) (*History, error) {
	return readHistory(ctx, c, t, defaultMode, func(h *History) error {
		template, err := h.present()
		if err != nil {
			return err
		}
		h.Revisions = []revision.Revision{h.revision(revision.Revision{
			Template: template, Current: true, Availability: revision.Unknown, Evidence: "its kind keeps no revisions",
		})}
		return nil
	})
}

// readHistory reads a workload, its revisions as given, and the copies that they read.
func readHistory(ctx context.Context, c *cluster.Connection, t cluster.Target, defaultMode stamp.Mode, revisions func(*History) error) (*History, error) {
	h := &History{Target: t, client: c.Client, Copies: revision.Copies{}, raw: map[string]map[string]any{}}
	if err := h.readWorkload(ctx); err != nil {
		return nil, err
	}
	h.Now = c.Now()
	if err := h.readMode(ctx, defaultMode); err != nil {
		return nil, err
	}
	if err := revisions(h); err != nil {
		return nil, err
	}
	if err := h.readCopies(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// AbsentError says that a workload does not exist.
type AbsentError struct{ cluster.Target }

// Error names the workload.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("%s is not found in namespace %s", e.Target, e.Namespace)
}

// NoRevisionsError says that of a kind no revisions are known.
type NoRevisionsError struct{ Kind cluster.Kind }

// Error names the kind, and those of which they are known.
func (e *NoRevisionsError) Error() string {
	return fmt.Sprintf("a %s keeps no revisions that are known: there are those of Deployments, StatefulSets, DaemonSets and Argo's Rollouts",
		e.Kind.GroupVersionKind.Kind)
}

// RightError says which right a read lacks.
type RightError struct{ text string }

// Error names the verb, the resource and the namespace.
func (e *RightError) Error() string { return e.text }

// readWorkload reads the workload itself, and what has its template.
func (h *History) readWorkload(ctx context.Context) error {
	u, err := h.get(ctx, h.Kind.GroupVersionKind, h.Name)
	switch {
	case meta.IsNoMatchError(err):
		return &cluster.NotServedError{GVK: h.Kind.GroupVersionKind}
	case apierrors.IsNotFound(err):
		return &AbsentError{h.Target}
	case apierrors.IsForbidden(err):
		return &RightError{cluster.Right{Verb: "get", Resource: cluster.Plural(h.Kind.GroupVersionKind), Namespace: h.Namespace}.Missing()}
	case err != nil:
		return fmt.Errorf("get %s: %w", h.Target, err)
	}
	h.object, h.holder, h.path, h.UID = u, u, h.Kind.TemplatePath, string(u.GetUID())
	h.Paused, _, _ = unstructured.NestedBool(u.Object, "spec", "paused")
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		h.Owner = strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	if err := h.followWorkloadRef(ctx); err != nil {
		return err
	}
	h.Manager = managerOf(h.holder)
	return nil
}

// followWorkloadRef finds the Deployment that has the template of a Rollout.
func (h *History) followWorkloadRef(ctx context.Context) error {
	ref, found, err := unstructured.NestedStringMap(h.object.Object, "spec", "workloadRef")
	if !h.isRollout() || !found || err != nil {
		return nil //nolint:nilerr // a field of another kind that has this name by chance
	}
	gvk := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	if gvk.GroupKind() != deployment.GroupKind() {
		return fmt.Errorf("the template of %s is in a %s (spec.workloadRef); only that in a Deployment is known", h.Target, ref["kind"])
	}
	if h.holder, err = h.get(ctx, deployment, ref["name"]); err != nil {
		return fmt.Errorf("get deployment/%s, which spec.workloadRef of %s names: %w", ref["name"], h.Target, err)
	}
	return nil
}

func (h *History) isRollout() bool { return h.Kind.GroupKind() == cluster.ArgoRollout.GroupKind() }

func (h *History) get(ctx context.Context, gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, h.client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: name}, u)
}

// readMode tells the workload's mode as the controller would.
func (h *History) readMode(ctx context.Context, fallback stamp.Mode) error {
	ns := cluster.MetadataOf(cluster.NamespaceKind)
	err := h.client.Get(ctx, client.ObjectKey{Name: h.Namespace}, ns)
	if apierrors.IsForbidden(err) {
		needs := cluster.Right{Verb: "get", Resource: "namespace " + h.Namespace, Namespace: cluster.ClusterScope}
		h.Remarks = append(h.Remarks, needs.Missing()+": a mode that it chooses is not known")
	} else if err != nil {
		return fmt.Errorf("get namespace %s: %w", h.Namespace, err)
	}
	own, template := h.holder.GetAnnotations(), h.templateAnnotations() // what has the template carries what Tidemark left
	sum, marked := h.holder.GetLabels()[v1.LabelRecordSum]
	record, intact, err := stamp.Parse(own[v1.AnnotationRecord], sum)
	if err != nil {
		h.Remarks = append(h.Remarks, err.Error())
	}
	mode, problems := cluster.ModeOf(own, template, ns.Labels, "")
	h.Remarks = append(h.Remarks, problems...)
	lost := cluster.LostMode(own, mode, record, marked, intact)
	switch {
	case lost != "":
		mode = lost
	case mode == "" && record != nil:
		mode = record.Mode
	case mode == "":
		mode = fallback
	}
	h.Mode, h.Record = mode, record
	return nil
}

// Annotations of what has the pod template: the workload, or what its workloadRef names.
func (h *History) Annotations() map[string]string { return h.holder.GetAnnotations() }

func (h *History) templateAnnotations() map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(h.holder.Object, append(h.path[:len(h.path):len(h.path)], "metadata", "annotations")...)
	return annotations
}

// present is the workload's template now.
func (h *History) present() (*corev1.PodTemplateSpec, error) {
	return cluster.Kind{GroupVersionKind: h.holder.GroupVersionKind(), TemplatePath: h.path}.Template(h.holder)
}

// readRevisions reads the revisions by the kind of workload.
func (h *History) readRevisions(ctx context.Context) error {
	template, err := h.present()
	if err != nil {
		return err
	}
	switch h.Kind.GroupVersionKind {
	case deployment:
		err = h.readReplicaSets(ctx, replicaSetsOfDeployment, byTemplate(template))
	case statefulSet:
		err = h.readControllerRevisions(ctx, template, statefulSetHash)
	case daemonSet:
		err = h.readControllerRevisions(ctx, template, daemonSetHash)
	default:
		if !h.isRollout() {
			return &NoRevisionsError{h.Kind}
		}
		err = h.readReplicaSets(ctx, replicaSetsOfRollout, h.byStatus(template))
	}
	if err != nil {
		return err
	}
	if _, has := revision.Current(h.Revisions); !has {
		h.Revisions = append(h.Revisions, h.revision(revision.Revision{
			Template: template, Current: true, Availability: revision.Unknown,
			Evidence: "its controller has made no revision of it yet",
		}))
	}
	return nil
}

// revision completes a revision by what its template says.
func (h *History) revision(r revision.Revision) revision.Revision {
	r.Namespace = h.Namespace
	pins, err := snapshot.ParsePins(h.Namespace, r.Template.Annotations[v1.AnnotationPins])
	if err != nil {
		r.PinsProblem = err.Error()
	}
	r.Pins = pins
	return r
}

// seen are the revisions of which Tidemark noted an available pod, on the workload or on what has the annotations of it.
func (h *History) seen(revisions []unstructured.Unstructured) map[string]bool {
	values := []string{h.object.GetAnnotations()[v1.AnnotationSeenAvailable], h.holder.GetAnnotations()[v1.AnnotationSeenAvailable]}
	for i := range revisions {
		values = append(values, revisions[i].GetAnnotations()[v1.AnnotationSeenAvailable])
	}
	return revision.Seen(values...)
}

// owned lists the objects of a kind that the workload controls.
func (h *History) owned(ctx context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	selector, err := h.selector()
	if err != nil {
		return nil, err
	}
	newList := func() client.ObjectList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		return list
	}
	var out []unstructured.Unstructured
	err = cluster.EachItem(ctx, h.client, newList, cluster.PageSize, func(u *unstructured.Unstructured) {
		if metav1.IsControlledBy(u, h.object) {
			out = append(out, *u)
		}
	}, client.InNamespace(h.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		return nil, &RightError{cluster.Right{Verb: "list", Resource: cluster.Plural(gvk), Namespace: h.Namespace}.Missing()}
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", cluster.Plural(gvk), err)
	}
	return out, nil
}

// into converts an object to its type.
func into[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", strings.ToLower(u.GetKind()), u.GetName(), err)
	}
	return out, nil
}

// RevisionResource is the resource that holds the workload's revisions, "replicaset" or "controllerrevision".
func (h *History) RevisionResource() string {
	switch h.Kind.GroupVersionKind {
	case statefulSet, daemonSet:
		return strings.ToLower(controllerRevisionKind.Kind)
	}
	return strings.ToLower(replicaSet.Kind)
}
