package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// FieldManager is Helm's own, under which its records are written.
const FieldManager = "helm"

// ErrChanged says that a record is not the one any more that was decided on.
var ErrChanged = errors.New("it has changed since it was looked at")

// LeftByItsProcess describes a revision that is marked failed because nobody is at work on it any more.
const LeftByItsProcess = "Left by its process; marked failed"

// Mark is what is noted of a revision that is marked failed.
type Mark struct {
	// Description is for people.
	Description string
	// Unasked is when the controller did it by itself, by the API server's clock; zero for anybody else.
	Unasked time.Time
}

// MarkFailed marks a pending revision failed, so that Helm accepts the next operation: in the payload, which Helm goes by, and in
// the label, in one write. It touches no workload. The error is or wraps [ErrChanged] when the record is not the one that was
// decided on, whose resourceVersion is in r.
func MarkFailed(ctx context.Context, c client.Client, namespace string, r release.Revision, mark Mark) error {
	if err := markFailed(ctx, c, namespace, r, mark); err != nil {
		return fmt.Errorf("mark revision %d failed in %s/%s in namespace %s: %w", r.Number, strings.ToLower(r.Kind), r.Record, namespace, err)
	}
	return nil
}

func markFailed(ctx context.Context, c client.Client, namespace string, r release.Revision, mark Mark) error {
	key := client.ObjectKey{Namespace: namespace, Name: r.Record}
	var object client.Object
	var packed helmrecord.Packed
	var into func(helmrecord.Packed)
	if r.Kind == "ConfigMap" {
		record := &corev1.ConfigMap{}
		err := c.Get(ctx, key, record)
		if err != nil {
			return gone(err)
		}
		object, packed = record, helmrecord.OfConfigMap(record)
		into = func(p helmrecord.Packed) { p.IntoConfigMap(record, release.Failed) }
	} else {
		record := &corev1.Secret{}
		err := c.Get(ctx, key, record)
		if err != nil {
			return gone(err)
		}
		object, packed = record, helmrecord.OfSecret(record)
		into = func(p helmrecord.Packed) { p.IntoSecret(record, release.Failed) }
	}
	if object.GetResourceVersion() != r.ResourceVersion {
		return ErrChanged
	}
	payload, err := packed.Unpack()
	if err != nil {
		return err
	}
	if operation, _ := payload.Info.Status.Operation(); operation == release.NoOperation || operation == release.Uninstall || payload.Version != r.Number {
		return fmt.Errorf("its payload says that revision %d is %s", payload.Version, payload.Info.Status)
	}
	changed, err := packed.WithStatus(release.Failed, mark.Description)
	if err != nil {
		return err
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	into(changed)
	if !mark.Unasked.IsZero() {
		annotations := map[string]string{}
		maps.Copy(annotations, object.GetAnnotations())
		annotations[v1.AnnotationRecovered] = mark.Unasked.UTC().Format(time.RFC3339)
		object.SetAnnotations(annotations)
	}
	err = c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if apierrors.IsConflict(err) {
		return ErrChanged
	}
	return gone(err)
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrChanged
	}
	return err
}
