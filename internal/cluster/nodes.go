package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// Few is how many objects are read one by one rather than by a list of all.
const Few = 20

// readNodes reads since when those nodes are Ready on which a container was restarted, or reads its files again by itself: what is
// read later in a pod's life depends on it. Without history it decides nothing.
func (r *reading) readNodes(ctx context.Context) error {
	r.nodes = map[string]time.Time{}
	needed := map[string]bool{}
	for _, s := range r.seen {
		again := r.readAgain(s)
		for i := range s.pods {
			if p := &s.pods[i]; p.Node != "" && (again || slices.ContainsFunc(p.Containers, restarted)) {
				needed[p.Node] = true
			}
		}
	}
	if len(needed) == 0 || len(r.memory.logs) == 0 {
		return nil
	}
	const unknown = "what restarted containers read is unknown"
	if len(needed) > Few {
		err := EachItem(ctx, r.Client, func() client.ObjectList { return &corev1.NodeList{} }, PageSize, func(n *corev1.Node) {
			r.nodes[n.Name] = ReadySince(n)
		})
		_, err = r.permitted(err, Right{"list", "nodes", ClusterScope, unknown})
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		node := &corev1.Node{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		if apierrors.IsNotFound(err) {
			continue
		}
		ok, err := r.permitted(err, Right{"get", "nodes", ClusterScope, unknown})
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		r.nodes[name] = ReadySince(node)
	}
	return nil
}

// readAgain reports whether programs of the workload read files again by themselves: all of them, or an object's.
func (r *reading) readAgain(s *seen) bool {
	if all, err := Switch(v1.AnnotationReloads, s.annotations, s.template); all && err == nil {
		return true
	}
	return slices.ContainsFunc(s.allUses(), func(u workload.Consumption) bool {
		o := r.objects[u.Object]
		return o != nil && o.live
	})
}

func restarted(c fleet.Container) bool { return c.Restarts > 0 }
