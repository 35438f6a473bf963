package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
)

// ErrChanged says that what was decided on is not what is there any more.
var ErrChanged = errors.New("somebody changed it meanwhile, so nothing is written: look again")

// sumOfARollback is put in place of the checksum of Tidemark's record where nothing else would tell that somebody went back.
const sumOfARollback = "rolled-back"

// attempts bounds how often a write is tried anew that other writes came before.
const attempts = 4

// GoBack writes the template of a revision to the workload, as it is in the revision, with the cause of that revision. The
// workload's other annotations stay as they are, and so does everything else of it. The write carries the
// resourceVersion of a read that still showed the template which the history was read with; else it is [ErrChanged].
func (h *History) GoBack(ctx context.Context, to revision.Revision, dryRun bool) error {
	template, has := h.raw[to.Name]
	if !has {
		return fmt.Errorf("revision %s has no template of its own", to.Text())
	}
	// Once more, and with their contents: a template must not name what is not there, or what may still change.
	for _, r := range to.Readings() {
		if held, err := h.ReadCopy(ctx, r); err != nil {
			return err
		} else if held.Problem != "" {
			return fmt.Errorf("revision %s: %s", to.Text(), held.Problem)
		}
	}
	var err error
	// The status of a workload that is rolling changes all the time, and the resourceVersion with it.
	for range attempts {
		var now *unstructured.Unstructured
		now, err = h.get(ctx, h.holder.GroupVersionKind(), h.holder.GetName())
		if err != nil {
			return fmt.Errorf("get %s: %w", h.holderName(), err)
		}
		if !h.sameAsRead(now) {
			return fmt.Errorf("%s: %w", h.holderName(), ErrChanged)
		}
		err = patchJSON(ctx, h.client, now, h.operations(now, template, to), dryRun)
		if err == nil && !dryRun {
			h.written = now // which the client filled with what is stored
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("patch %s: %w", h.holderName(), err)
	}
	return nil
}

// holderName names what has the template, "deployment/web".
func (h *History) holderName() string {
	return strings.ToLower(h.holder.GetKind()) + "/" + h.holder.GetName()
}

func (h *History) sameAsRead(now *unstructured.Unstructured) bool {
	return h.sameTemplate(h.holder, now)
}

// sameTemplate reports whether it is the same object still, with the same template.
func (h *History) sameTemplate(then, now *unstructured.Unstructured) bool {
	before, _, _ := unstructured.NestedMap(then.Object, h.path...)
	after, _, _ := unstructured.NestedMap(now.Object, h.path...)
	return now.GetUID() == then.GetUID() && equality.Semantic.DeepEqual(before, after)
}

// operations of the write: JSON Patch, the one form that replaces a template as a whole for every kind.
func (h *History) operations(now *unstructured.Unstructured, template map[string]any, to revision.Revision) []operation {
	ops := []operation{
		{"replace", "/metadata/resourceVersion", now.GetResourceVersion()},
		{"replace", pointer(h.path...), template},
	}
	if h.holder == h.object { // the cause of a Rollout's revision is not that of the Deployment which has the template
		ops = append(ops, annotate(now.GetAnnotations(), changeCauseAnnotation, to.Cause)...)
	}
	if _, marked := now.GetLabels()[v1.LabelRecordSum]; marked && h.looksLikeRelease(to) {
		ops = append(ops, operation{"replace", pointer("metadata", "labels", v1.LabelRecordSum), sumOfARollback})
	}
	return ops
}

// looksLikeRelease reports whether going back to a revision cannot be told from a new release: it has the stamp and the pins
// of the present template, and other images. While something is held back that would release it, so the record is marked
// as put back, which is what a rollback of a Deployment by kubectl does.
func (h *History) looksLikeRelease(to revision.Revision) bool {
	current, has := revision.Current(h.Revisions)
	if h.Record == nil || !has || h.Mode == stamp.Observe {
		return false
	}
	held := false
	for _, o := range h.Record.Objects {
		held = held || o.HeldBack
	}
	return held && current.Stamp() == to.Stamp() && maps.Equal(current.Pins, to.Pins) &&
		!slices.Equal(revision.Images(current.Template), revision.Images(to.Template))
}

// operation is one of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// annotate sets an annotation, or takes it away for "", in place of what there is.
func annotate(have map[string]string, name, value string) []operation {
	path := pointer("metadata", "annotations", name)
	_, has := have[name]
	switch {
	case value == "" && has:
		return []operation{{Op: "remove", Path: path}}
	case value == "":
		return nil
	case have == nil:
		return []operation{{"add", pointer("metadata", "annotations"), map[string]string{name: value}}}
	}
	return []operation{{"add", path, value}}
}

// pointer is the JSON pointer to a field.
func pointer(path ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, field := range path {
		b.WriteString("/" + escape.Replace(field))
	}
	return b.String()
}

// patchJSON sends a JSON Patch under the field manager of rollbacks.
func patchJSON(ctx context.Context, c client.Client, object client.Object, ops []operation, dryRun bool) error {
	body, err := json.Marshal(ops)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	opts := []client.PatchOption{client.FieldOwner(v1.FieldManagerRollback)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return c.Patch(ctx, object, client.RawPatch(types.JSONPatchType, body), opts...)
}
