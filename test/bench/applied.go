package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/test/scenario"
)

// behind lists the Deployments whose stamp does not stand for what their ConfigMaps and Secrets hold now.
func (s *site) behind(ctx context.Context, namespace string) ([]string, error) {
	contents, err := s.contents(ctx, namespace)
	if err != nil {
		return nil, err
	}
	deployments := &appsv1.DeploymentList{}
	if err := s.api.List(ctx, deployments, ctrlclient.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var behind []string
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if err := carries(d, contents); err != nil {
			behind = append(behind, fmt.Sprintf("%s (%v)", d.Name, err))
		}
	}
	return behind, nil
}

// contents reads what a namespace's ConfigMaps and Secrets hold, in terms of the controller's key.
func (s *site) contents(ctx context.Context, namespace string) (map[workload.Object]digest.Content, error) {
	key, err := cluster.DigestKey(ctx, s.api, scenario.SystemNamespace)
	if err != nil {
		return nil, err
	}
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	if err := errOf(
		s.api.List(ctx, configMaps, ctrlclient.InNamespace(namespace)),
		s.api.List(ctx, secrets, ctrlclient.InNamespace(namespace)),
	); err != nil {
		return nil, err
	}
	contents := map[workload.Object]digest.Content{}
	for i := range configMaps.Items {
		o := &configMaps.Items[i]
		contents[workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: o.Name}] = cluster.ContentOfConfigMap(o)
	}
	for i := range secrets.Items {
		o := &secrets.Items[i]
		contents[workload.Object{Kind: workload.Secret, Namespace: namespace, Name: o.Name}] = cluster.ContentOfSecret(key, o)
	}
	return contents, nil
}

// carries compares the record on a Deployment with the contents.
func carries(d *appsv1.Deployment, contents map[workload.Object]digest.Content) error {
	record, intact, err := stamp.Parse(d.Annotations[v1.AnnotationRecord], d.Labels[v1.LabelRecordSum])
	switch {
	case err != nil:
		return err
	case record == nil || !intact:
		return fmt.Errorf("no record, or not its own")
	case record.Stamp != d.Spec.Template.Annotations[v1.AnnotationConfigHash]:
		return fmt.Errorf("its stamp is not the one that was left")
	}
	_, uses, _ := cluster.ConsumptionOf(d.Namespace, d.Annotations, &d.Spec.Template)
	for _, use := range uses {
		applied := contents[use.Object].Consumed(use)
		if stamped := record.Objects[use.Object.Relative(d.Namespace)].Stamped; stamped != applied {
			return fmt.Errorf("stamped %s, applied %s", stamped.Short(), applied.Short())
		}
	}
	return nil
}
