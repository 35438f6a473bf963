package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sizes of pages: of objects of ordinary size or their metadata, and of those that may be a mebibyte each.
const (
	PageSize      = 500
	largePageSize = 100
)

// EachItem lists page by page, and hands each item to visit; nothing of a page is kept when the next one is asked for.
func EachItem[T client.Object](
	ctx context.Context, c client.Reader, newList func() client.ObjectList, size int64, visit func(T), opts ...client.ListOption,
) error {
	token := ""
	for {
		list := newList()
		page := append([]client.ListOption{client.Limit(size), client.Continue(token)}, opts...)
		if err := c.List(ctx, list, page...); err != nil {
			if apierrors.IsResourceExpired(err) {
				return fmt.Errorf("the list changed while it was read page by page: run the command again: %w", err)
			}
			return err
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			item, ok := obj.(T)
			if !ok {
				return fmt.Errorf("unexpected item %T in a list", obj)
			}
			visit(item)
			return nil
		})
		if err != nil {
			return err
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// EachConfigMap lists the ConfigMaps of a namespace page by page, as [EachItem] does.
func EachConfigMap(ctx context.Context, c client.Reader, namespace string, visit func(*corev1.ConfigMap)) error {
	return EachItem(ctx, c, newConfigMaps, largePageSize, visit, client.InNamespace(namespace))
}

// NewList makes empty lists of a kind's objects, typed where the objects of the kind are.
func (k Kind) NewList() client.ObjectList {
	gvk := k.GroupVersionKind
	gvk.Kind += "List"
	if _, other := k.NewObject().(*unstructured.Unstructured); !other {
		if list, err := scheme.Scheme.New(gvk); err == nil {
			if typed, ok := list.(client.ObjectList); ok {
				return typed
			}
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	return list
}

// MetadataList gives what makes lists of a kind's metadata, so that no content is sent.
func MetadataList(gvk schema.GroupVersionKind) func() client.ObjectList {
	gvk.Kind += "List"
	return func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list
	}
}

// MetadataOf is an empty object of a kind, for its metadata only.
func MetadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func newConfigMaps() client.ObjectList { return &corev1.ConfigMapList{} }
