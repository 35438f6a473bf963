package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// each calls do for 0 to n-1, several at a time, and stops at the first error.
func each(ctx context.Context, n, concurrency int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// namespace makes a namespace, with a mode of Tidemark's where one is given.
func (s *site) namespace(ctx context.Context, name, mode string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if mode != "" {
		ns.Labels = map[string]string{v1.LabelMode: mode}
	}
	return s.api.Create(ctx, ns)
}

// numbered names the i-th object of a set.
func numbered(i int) string { return fmt.Sprintf("n%05d", i) }

// shared names one object for all.
func shared(int) string { return "shared" }

// configMaps makes ConfigMaps of a size.
func (s *site) configMaps(ctx context.Context, namespace string, n, size int, name func(int) string) error {
	return each(ctx, n, workers, func(ctx context.Context, i int) error {
		return s.api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name(i)},
			Data:       map[string]string{"generation": "0", "filling": strings.Repeat(fmt.Sprintf("%07d\n", i), size/8)},
		})
	})
}

// deployments makes Deployments that take their environment from a ConfigMap.
func (s *site) deployments(ctx context.Context, namespace string, n, replicas int, configMap func(int) string) error {
	source := func(i int) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap(i)}}}
	}
	return s.workloads(ctx, namespace, n, replicas, source, corev1.PodSpec{})
}

func (s *site) workloads(
	ctx context.Context, namespace string, n, replicas int, source func(int) corev1.EnvFromSource, pod corev1.PodSpec,
) error {
	count := int32(replicas)
	return each(ctx, n, workers, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": numbered(i)}
		spec := *pod.DeepCopy()
		spec.Containers = []corev1.Container{{
			Name: "main", Image: "example.org/sample:1", EnvFrom: []corev1.EnvFromSource{source(i)},
		}}
		return s.api.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: numbered(i), Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: &count,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			},
		})
	})
}

// edit changes what a ConfigMap holds.
func (s *site) edit(ctx context.Context, namespace, name, value string) error {
	return s.patch(ctx, &corev1.ConfigMap{}, namespace, name, fmt.Sprintf(`{"data":{"generation":%q}}`, value))
}

func (s *site) patch(ctx context.Context, obj ctrlclient.Object, namespace, name, body string) error {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return s.api.Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(body)))
}
