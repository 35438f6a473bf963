package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
)

// sightings are the pods that are ready now, by their workload.
type sightings struct {
	mu sync.Mutex
	of map[ID]map[types.UID]sighting
	// at says whose each pod is: a pod that is gone is told of without its owner.
	at map[types.UID]ID
}

// sighting is a pod that has been ready since a time, of a revision with a hash.
type sighting struct {
	hash  string
	since time.Time
}

func newSightings() *sightings {
	return &sightings{of: map[ID]map[types.UID]sighting{}, at: map[types.UID]ID{}}
}

// saw takes in how a pod stands, and gives the workload of which it has become ready, if it has.
func (x *sightings) saw(p *cluster.PinnedPod) (ID, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.Revision == nil || p.ReadySince.IsZero() {
		x.drop(p.UID)
		return ID{}, false
	}
	id := ID{p.Revision.Owner, types.NamespacedName{Namespace: p.Namespace, Name: p.Revision.Name}}
	now := sighting{p.Revision.Hash, p.ReadySince}
	if x.of[id] == nil {
		x.of[id] = map[types.UID]sighting{}
	}
	news := x.of[id][p.UID] != now
	x.of[id][p.UID], x.at[p.UID] = now, id
	return id, news
}

// gone takes in that a pod is there no more.
func (x *sightings) gone(pod types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(pod)
}

func (x *sightings) drop(pod types.UID) {
	id := x.at[pod]
	delete(x.at, pod)
	delete(x.of[id], pod)
	if len(x.of[id]) == 0 {
		delete(x.of, id)
	}
}

// available gives the hashes of a workload's revisions of which a pod has been ready for a while, sorted, and after what time there
// may be more; 0 when not before a pod gets ready.
func (x *sightings) available(id ID, minReady time.Duration, now time.Time) (hashes []string, more time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.of[id] {
		left := minReady - now.Sub(s.since)
		switch {
		case left <= 0:
			hashes = append(hashes, s.hash)
		case more == 0 || left < more:
			more = left
		}
	}
	slices.Sort(hashes)
	return slices.Compact(hashes), more
}

// noteAvailable notes on a workload which of its revisions had an available pod, for the rollback that should pass over those
// that never had: one write for each revision. It returns when to look again, 0 for not before something changes.
func (c *Controller) noteAvailable(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if d.Reason == stamp.Observed || v.paused != "" || v.state.Record == nil {
		return reconcile.Result{}, nil
	}
	hashes, more := c.sightings.available(s.id, cluster.PaceOf(s.object).MinReady, c.clock.Now())
	result := reconcile.Result{RequeueAfter: more}
	value, news := revision.Note(s.object.GetAnnotations()[v1.AnnotationSeenAvailable], hashes...)
	if !news || c.memory.recall(s.id).written == s.object.GetResourceVersion() {
		return result, nil
	}
	p := cluster.Patch{ResourceVersion: s.object.GetResourceVersion()}
	p.Set(v1.AnnotationSeenAvailable, &value)
	written, err := c.send(ctx, s, p)
	if err != nil || !written {
		return c.afterWrite(s, written, err)
	}
	return result, nil
}
