package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// write does what the verdicts ask for: pardons first, deletions last. What somebody else wrote meanwhile, and what is in a
// namespace that is paused or ends, is left for another time.
func (c Round) write(ctx context.Context, out *Outcome) { c.writeWhile(ctx, out, nil) }

// writeWhile is write for as long as a gate is open: what it says otherwise is why the rest is left. Nil is always open.
func (c Round) writeWhile(ctx context.Context, out *Outcome, gate func(context.Context) (string, error)) {
	w := &retirer{Round: c, gate: gate, looks: map[string]gateLook{}, denied: map[denial]error{}}
	for _, action := range []snapshot.Action{snapshot.Pardon, snapshot.Condemn, snapshot.Delete} {
		for i := range out.Items {
			if out.Items[i].Action == action {
				w.do(ctx, &out.Items[i])
			}
		}
	}
	out.Remarks = append(out.Remarks, w.remarks...)
}

// retirer carries verdicts out.
type retirer struct {
	Round
	gate    func(context.Context) (string, error)
	looks   map[string]gateLook
	denied  map[denial]error
	remarks []string
}

// gateLook is what a look at a namespace told: why nothing may be written in it, "" when something may.
type gateLook struct {
	at  time.Time
	why string
	err error
}

// denial is a kind of write for which the right is missing, which is not tried for every object of the namespace.
type denial struct {
	namespace string
	kind      workload.ObjectKind
	action    snapshot.Action
}

func (w *retirer) do(ctx context.Context, item *Item) {
	look := w.look(ctx, item.Object.Namespace)
	if item.Left, item.Err = look.why, look.err; item.Left != "" || item.Err != nil || w.DryRun {
		return
	}
	kind := denial{item.Object.Namespace, item.Object.Kind, item.Action}
	if item.Err = w.denied[kind]; item.Err != nil {
		return
	}
	err := w.one(ctx, item.Verdict)
	switch {
	case err == nil, apierrors.IsNotFound(err) && item.Action == snapshot.Delete:
		item.Done = true
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		item.Left = "somebody else wrote it meanwhile"
	case isDenied(err):
		w.denied[kind] = denied(item.Verdict, err)
		item.Err = w.denied[kind]
	default:
		item.Err = fmt.Errorf("%s %s: %w", item.Action, item.Object, err)
	}
}

// one makes one write, on the state of the object that was judged.
func (w *retirer) one(ctx context.Context, v snapshot.Verdict) error {
	obj := cluster.MetadataOf(cluster.GVKOf(v.Object.Kind))
	obj.Namespace, obj.Name = v.Object.Namespace, v.Object.Name
	if v.Action == snapshot.Delete {
		uid, version := types.UID(v.UID), v.ResourceVersion
		return w.Client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	var mark any // null, which takes it away
	if v.Action == snapshot.Condemn {
		mark = snapshot.Mark(w.Now()).UTC().Format(time.RFC3339)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": v.UID, "resourceVersion": v.ResourceVersion, "annotations": map[string]any{v1.AnnotationCondemned: mark},
	}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return w.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1.FieldManager))
}

// gateFor is how long a look at a namespace is good for: a pause counts within a second.
const gateFor = 500 * time.Millisecond

// look says whether something may be written in the namespace.
func (w *retirer) look(ctx context.Context, namespace string) gateLook {
	now := w.Now()
	if l, ok := w.looks[namespace]; ok && now.Sub(l.at) < gateFor {
		return l
	}
	l := gateLook{at: now}
	l.why, l.err = w.closed(ctx, namespace)
	w.looks[namespace] = l
	return l
}

func (w *retirer) closed(ctx context.Context, namespace string) (string, error) {
	own, system := cluster.MetadataOf(cluster.NamespaceKind), cluster.MetadataOf(cluster.NamespaceKind)
	err := w.Client.Get(ctx, client.ObjectKey{Name: namespace}, own)
	switch {
	case apierrors.IsNotFound(err):
		return "the namespace is gone", nil
	case err != nil:
		return "", blind(err, right("get", "namespaces/"+namespace, cluster.ClusterScope, "whether it is paused is not known, so nothing is written in it"))
	case own.DeletionTimestamp != nil:
		return "the namespace is being deleted", nil
	}
	needs := right("get", "namespaces/"+w.System, cluster.ClusterScope, "whether everything is paused is not known")
	err = w.Client.Get(ctx, client.ObjectKey{Name: w.System}, system)
	switch {
	case apierrors.IsNotFound(err): // Tidemark is not installed
	case apierrors.IsForbidden(err):
		if w.remarks == nil {
			w.remarks = []string{needs.Missing() + ": " + needs.Unknown}
		}
	case err != nil:
		return "", blind(err, needs)
	}
	if where := cluster.PausedBy(nil, nil, own.Annotations, system.Annotations); where != "" {
		return "Tidemark is paused " + where, nil
	}
	if w.gate != nil {
		return w.gate(ctx)
	}
	return "", nil
}

// protection is the policy of deploy/policy by which snapshots are deleted only by who has the right.
const protection = "ValidatingAdmissionPolicy 'tidemark-snapshots'"

// isDenied reports whether a right is missing, by RBAC or for our own policy, as it would be for every object of the kind in the
// namespace. What somebody else's webhook or policy refuses it may refuse for this one object.
func isDenied(err error) bool {
	text := err.Error()
	if strings.Contains(text, protection) {
		return true
	}
	return apierrors.IsForbidden(err) && !strings.Contains(text, "admission webhook") && !strings.Contains(text, "AdmissionPolicy")
}

// denied words a write that was refused, with the remedy.
func denied(v snapshot.Verdict, err error) error {
	if strings.Contains(err.Error(), protection) {
		return fmt.Errorf("%s %s: refused: to mark and to delete snapshots takes the verb \"retire\" on snapshots of API group %s in namespace %s, "+
			"by a Role with apiGroups [%s], resources [snapshots], verbs [retire]: %w",
			v.Action, v.Object, v1.Domain, v.Object.Namespace, v1.Domain, err)
	}
	verb := "patch"
	if v.Action == snapshot.Delete {
		verb = "delete"
	}
	needs := cluster.Right{Verb: verb, Resource: cluster.Plural(cluster.GVKOf(v.Object.Kind)), Namespace: v.Object.Namespace}
	return fmt.Errorf("%s %s: %s: %w", v.Action, v.Object, needs.Missing(), err)
}
