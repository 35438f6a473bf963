package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// witness sees the template writes of the Deployments of a namespace, by a watch that belongs to neither side.
type witness struct {
	watch watch.Interface

	mu   sync.Mutex
	seen map[string]*sighting
	last time.Time // of the newest template write
	err  error
}

// sighting is what was seen of one Deployment. Its generation does not count the writes of its template: an annotation of
// its own moves it too.
type sighting struct {
	template             string // by its annotations, the one part that anybody writes here
	writes               int64
	generation, observed int64
}

func (s *sighting) take(d *appsv1.Deployment) (written bool) {
	template := fmt.Sprint(d.Spec.Template.Annotations)
	if written = template != s.template; written {
		s.writes++
	}
	s.template, s.generation, s.observed = template, d.Generation, d.Status.ObservedGeneration
	return written
}

// witnessed begins to watch. The present state is what later writes count from.
func (s *site) witnessed(ctx context.Context, namespace string) (*witness, error) {
	api := s.witness.AppsV1().Deployments(namespace)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch for writes: %w", err)
	}
	w := &witness{seen: map[string]*sighting{}}
	for i := range list.Items {
		d := &list.Items[i]
		w.seen[d.Name] = &sighting{}
		w.seen[d.Name].take(d)
		w.seen[d.Name].writes = 0
	}
	hours := int64(6 * 60 * 60)
	if w.watch, err = api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: &hours}); err != nil {
		return nil, fmt.Errorf("watch for writes: %w", err)
	}
	go w.follow()
	return w, nil
}

func (w *witness) follow() {
	for e := range w.watch.ResultChan() {
		now := time.Now()
		d, ok := e.Object.(*appsv1.Deployment)
		w.mu.Lock()
		if !ok {
			w.err = fmt.Errorf("watch for writes: %v", e.Object)
		} else if s := w.seen[d.Name]; s != nil && s.take(d) {
			w.last = now
		}
		w.mu.Unlock()
	}
}

func (w *witness) stop() { w.watch.Stop() }

// written counts the Deployments whose template was written, and tells when the last of the writes was seen.
func (w *witness) written() (n int, last time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if s.writes > 0 {
			n++
		}
	}
	return n, w.last, w.err
}

// writes gives how many writes of the template were seen of each Deployment.
func (w *witness) writes() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int64{}
	for name, s := range w.seen {
		out[name] = s.writes
	}
	return out
}

// await waits until the templates of n Deployments were written, and tells when the last write was seen.
func (w *witness) await(ctx context.Context, n int) (time.Time, error) {
	for {
		written, last, err := w.written()
		if err != nil || written >= n {
			return last, err
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return last, fmt.Errorf("%d of %d templates were written: %w", written, n, err)
		}
	}
}

// drained waits until the Deployment controller has taken in every write, so that it does not work into the next figure.
func (w *witness) drained(ctx context.Context) error {
	for {
		left := 0
		w.mu.Lock()
		for _, s := range w.seen {
			if s.observed < s.generation {
				left++
			}
		}
		w.mu.Unlock()
		if left == 0 {
			return wait(ctx, 2*time.Second)
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%d writes are not taken in yet: %w", left, err)
		}
	}
}
