package cluster

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/history"
)

// ReadHistory reads the history of every namespace from Tidemark's own, and how many ConfigMaps hold each. An error with
// logs names the entries that could not be read; one without means that nothing could be read.
func ReadHistory(ctx context.Context, reader client.Reader, namespace string) ([]history.Log, map[string]int, error) {
	list := &corev1.ConfigMapList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.HasLabels{v1.LabelHistory}); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	shards := map[string][]map[string]string{}
	for i := range list.Items {
		of := list.Items[i].Labels[v1.LabelHistory]
		shards[of] = append(shards[of], list.Items[i].Data)
	}
	logs, counts := []history.Log{}, map[string]int{}
	var errs []error
	for _, of := range slices.Sorted(maps.Keys(shards)) {
		some, err := history.Decode(of, shards[of])
		logs, counts[of] = append(logs, some...), len(shards[of])
		errs = append(errs, err)
	}
	return logs, counts, errors.Join(errs...)
}

// ReadSilences reads for which times nodes gave no sign of life. An error with silences names the entries that could not be read; one
// without means that nothing could be read.
func ReadSilences(ctx context.Context, reader client.Reader, namespace string) (history.Silences, error) {
	cm := &corev1.ConfigMap{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.NodeSilences}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return history.DecodeSilences(cm.Data)
}
