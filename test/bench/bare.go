package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "tidemark.dev/tidemark/api/v1"
)

// sizes are those of what the controller writes on a workload, so that the bare loop writes as much.
type sizes struct{ record, sum, stamp int }

// sizesOf reads them from a workload that the controller has written to.
func (s *site) sizesOf(ctx context.Context, namespace, name string) (sizes, error) {
	d, err := s.witness.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return sizes{}, err
	}
	z := sizes{
		len(d.Annotations[v1.AnnotationRecord]), len(d.Labels[v1.LabelRecordSum]),
		len(d.Spec.Template.Annotations[v1.AnnotationConfigHash]),
	}
	if z.stamp == 0 {
		z.stamp = z.sum // not rolled yet
	}
	return z, nil
}

// bareRoll patches one Deployment as the controller would: annotation and label of the workload, and the stamp. It finds
// nothing out and decides nothing.
func (s *site) bareRoll(ctx context.Context, namespace, name, value string, z sizes) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"annotations": map[string]string{"bench.example.org/record": padded(value, z.record)},
			"labels":      map[string]string{"bench.example.org/record-sum": padded(value, z.sum)},
		},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{"bench.example.org/config-hash": padded(value, z.stamp)},
		}}},
	})
	if err != nil {
		return err
	}
	_, err = s.bare.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "bare"})
	if err != nil {
		return fmt.Errorf("bare loop: %w", err)
	}
	return nil
}

func padded(value string, size int) string {
	return value + strings.Repeat("x", max(0, size-len(value)))
}
