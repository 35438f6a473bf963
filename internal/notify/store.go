package notify

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// toldEntry is the data entry of the ConfigMap that holds the memory.
const toldEntry = "told.json"

// store keeps the memory in a ConfigMap of Tidemark's own namespace. It writes over what it has read, and nothing else: who leads
// no longer cannot overwrite what the next leader has written since.
type store struct {
	client    client.Client // uncached
	namespace string
	last      *corev1.ConfigMap
}

// load gives the memory; nil when there has been none yet.
func (s *store) load(ctx context.Context) ([]byte, error) {
	cm := &corev1.ConfigMap{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: v1.ConfigMapNotified}, cm)
	if apierrors.IsNotFound(err) {
		s.last = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configmap %s/%s: %w", s.namespace, v1.ConfigMapNotified, err)
	}
	s.last = cm
	if text, ok := cm.Data[toldEntry]; ok {
		return []byte(text), nil
	}
	return nil, nil
}

// save writes the memory. After a conflict the next write is over what is there by then.
func (s *store) save(ctx context.Context, text []byte) error {
	cm := &corev1.ConfigMap{}
	var err error
	if s.last == nil {
		cm.Namespace, cm.Name = s.namespace, v1.ConfigMapNotified
		cm.Data = map[string]string{toldEntry: string(text)}
		err = s.client.Create(ctx, cm, client.FieldOwner(v1.FieldManager))
	} else {
		cm = s.last.DeepCopy()
		cm.Data = map[string]string{toldEntry: string(text)}
		err = s.client.Update(ctx, cm, client.FieldOwner(v1.FieldManager))
	}
	if err == nil {
		s.last = cm
		return nil
	}
	err = fmt.Errorf("write configmap %s/%s: %w", s.namespace, v1.ConfigMapNotified, err)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		if _, again := s.load(ctx); again != nil {
			return again
		}
	}
	return err
}
