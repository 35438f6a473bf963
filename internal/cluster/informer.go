package cluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Informers makes the informers of a cache.
type Informers struct {
	// Scheme knows the types that are watched; it is only needed with Fared.
	Scheme *runtime.Scheme
	// Fared, unless it is nil, is told after each list and each start of a watch of a kind: nil when the API granted it, a
	// *NotServedError or a *ForbiddenError when its answer was no. An API that does not answer is not told of.
	Fared func(schema.GroupVersionKind, error)
}

// New makes an informer, as a cache's option NewInformer has it. Those of config objects know of a state of theirs whether it
// came by a list: at the start, and again whenever a watch could not be resumed.
func (i Informers) New(
	lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if w, ok := lw.(*toolscache.ListWatch); ok && w.ListWithContextFunc != nil && w.WatchFuncWithContext != nil {
		if marks(obj) {
			markListed(w)
		}
		if i.Fared != nil {
			i.tell(w, obj)
		}
	}
	return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
}

// tell lets Fared know how the lists and watches of a type fare.
func (i Informers) tell(lw *toolscache.ListWatch, obj runtime.Object) {
	gvk, err := apiutil.GVKForObject(obj, i.Scheme)
	if err != nil {
		return // nor could it be listed
	}
	list, watcher := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		objects, err := list(ctx, o)
		i.fared(gvk, err)
		return objects, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := watcher(ctx, o)
		i.fared(gvk, err)
		return w, err
	}
}

func (i Informers) fared(gvk schema.GroupVersionKind, err error) {
	if no := refusal(gvk, err); no != nil || err == nil {
		i.Fared(gvk, no)
	}
}

// refusal is the API's answer of no to a list or a watch; nil for any other error.
func refusal(gvk schema.GroupVersionKind, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		resource := schema.GroupResource{Group: gvk.Group, Resource: Plural(gvk)}
		if d := status.Status().Details; d != nil && d.Kind != "" {
			resource = schema.GroupResource{Group: d.Group, Resource: d.Kind} // it is the resource there
		}
		// The answer tells of one verb at a time; a watch needs both.
		return &ForbiddenError{Resource: resource, Verbs: []string{"list", "watch"}}
	case apierrors.IsNotFound(err):
		return &NotServedError{GVK: gvk}
	}
	return nil
}

// QuietRefusals logs errors of watches as client-go does, but for answers of no: the informer asks again for ever, and
// [Informers] has told.
func QuietRefusals(ctx context.Context, r *toolscache.Reflector, err error) {
	if refusal(schema.GroupVersionKind{}, err) == nil {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}
