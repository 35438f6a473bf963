package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// podWatch watches whether pods read what their pins say, and which are ready. A pod that was created while nothing rewrote pods
// never will: it is told of by an Event on it, and counted.
type podWatch struct {
	// pods gives pods as [cluster.PinnedPod]; it is started when this process leads.
	pods      cache.Cache
	client    client.Client
	clock     clock.Clock
	log       logr.Logger
	metrics   *Metrics
	announcer announcer
	// sightings takes in which pods are ready, and ready is called when one of a workload has become so.
	sightings *sightings
	ready     func(ID)

	mu sync.Mutex
	// off are the pods that do not read what their pins say.
	off map[types.NamespacedName]bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *podWatch) NeedLeaderElection() bool { return true }

// Start watches until the context ends. Without the right to, which only an install of mode pin has, there is nothing to watch.
func (w *podWatch) Start(ctx context.Context) error {
	for {
		err := cluster.Access(ctx, w.client, corev1.SchemeGroupVersion.WithKind("Pod"), "", "list", "watch")
		if err == nil {
			return w.watch(ctx)
		}
		if forbidden := (&cluster.ForbiddenError{}); !errors.As(err, &forbidden) && ctx.Err() == nil {
			w.log.Error(err, "Cannot look whether pods may be watched; trying again", "retryIn", accessRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.clock.After(accessRetry):
		}
	}
}

func (w *podWatch) watch(ctx context.Context) error {
	informer, err := w.pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { w.saw(o) },
		UpdateFunc: func(before, o any) {
			w.replaced(before, o)
			w.saw(o)
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if p, ok := o.(*cluster.PinnedPod); ok {
				w.gone(p)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return w.pods.Start(ctx)
}

// replaced takes in that a pod is gone of which another has the name, as a watch that was broken shows it.
func (w *podWatch) replaced(before, after any) {
	b, ok := before.(*cluster.PinnedPod)
	a, both := after.(*cluster.PinnedPod)
	if ok && both && a.UID != b.UID {
		w.gone(b)
	}
}

func (w *podWatch) gone(p *cluster.PinnedPod) {
	w.note(p, false)
	w.sightings.gone(p.UID)
}

func (w *podWatch) saw(o any) {
	p, ok := o.(*cluster.PinnedPod)
	if !ok {
		return
	}
	if id, news := w.sightings.saw(p); news {
		w.ready(id)
	}
	if !w.note(p, len(p.Mismatches) > 0) {
		return
	}
	text := "it does not read what its pins say, as nothing rewrote it when it was created: " + strings.Join(p.Mismatches, "; ") +
		". Delete it once pins are in force (apply deploy/pin)"
	if p.Unreadable { // its successors would be alike, or be refused
		text = "its pins cannot be read, so it reads what is applied: " + strings.Join(p.Mismatches, "; ") + ". Somebody else wrote the annotation " + v1.AnnotationPins +
			": correct it on the pod template of its workload, or remove it there, and leave the pod until then"
	}
	w.announcer.event(&corev1.Pod{ObjectMeta: p.ObjectMeta}, corev1.EventTypeWarning, "PinsNotInForce", "Watch", text)
	w.log.Info("A pod does not read what its pins say", "pod", p.Namespace+"/"+p.Name, "mismatches", p.Mismatches)
}

// note takes in how a pod stands, and reports whether it is off and was not known to be.
func (w *podWatch) note(p *cluster.PinnedPod, off bool) (news bool) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off[name] == off {
		return false
	}
	if off {
		w.off[name] = true
	} else {
		delete(w.off, name)
	}
	n := 0
	for other := range w.off {
		if other.Namespace == p.Namespace {
			n++
		}
	}
	w.metrics.podsOff(p.Namespace, n)
	return off
}
