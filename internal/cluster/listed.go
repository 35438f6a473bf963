package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// listedMark is put, in memory only, on config objects that came by a list and not by a watch event: what happened to
// them before may have been missed.
const listedMark = "listed.internal.tidemark.dev"

// marks reports whether states of the type are marked when they come by a list: those of config objects.
func marks(obj runtime.Object) bool {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		return true
	}
	return false
}

func markListed(lw *toolscache.ListWatch) {
	list, watcher := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		objects, err := list(ctx, o)
		if err != nil {
			return nil, err
		}
		return objects, meta.EachListItem(objects, func(obj runtime.Object) error { mark(obj); return nil })
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := watcher(ctx, o)
		if err != nil || o.SendInitialEvents == nil || !*o.SendInitialEvents {
			return w, err
		}
		return markInitial(w), nil
	}
}

// markInitial marks the events of a watch that begins with a list, up to the bookmark that ends it.
func markInitial(w watch.Interface) watch.Interface {
	listing := true
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if !listing {
			return e, true
		}
		if e.Type == watch.Bookmark {
			m, err := meta.Accessor(e.Object)
			listing = err != nil || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true"
			return e, true
		}
		mark(e.Object)
		return e, true
	})
}

func mark(obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	a := m.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[listedMark] = ""
	m.SetAnnotations(a)
}
