package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

// values says which values of ConfigMaps are still to be read for the history. The values themselves are in the API only:
// a write of the history takes over those that are stored, and adds what it reads.
type values struct {
	// keep says whether values are kept at all.
	keep bool
	// looked are the values that were looked for already, by key, whether they are kept or not.
	looked map[workload.Object]map[string]digest.Sum
	// wanted are the objects to read with the next write.
	wanted map[workload.Object]bool
}

func newValues(keep bool) values {
	return values{keep: keep, looked: map[workload.Object]map[string]digest.Sum{}, wanted: map[workload.Object]bool{}}
}

// took takes a log over that a leader before wrote, without its values, and reports whether they are to be removed from the
// API as well. That leader looked for the newest value of a key where it is kept, or where none is that the key ever had; where only
// older ones are, it may have ended before it could.
func (v values) took(l *history.Log) (unwelcome bool) {
	stored := *l
	l.Values = nil
	if v.keep {
		v.look(stored, func(key string) bool {
			kept, there := stored.Values[key]
			_, newest := stored.Value(key, stored.Newest().Content.Data[key])
			return newest || there && len(kept) == 0
		})
	}
	return !v.keep && stored.Values != nil
}

// look notes that the values of the newest version are looked for, of keys that somebody reads.
func (v values) look(l history.Log, reads func(key string) bool) {
	looked := map[string]digest.Sum{}
	for key, sum := range l.Newest().Content.Data {
		if reads(key) {
			looked[key] = sum
		}
	}
	v.looked[l.Object] = looked
	delete(v.wanted, l.Object)
}

func (v values) forget(o workload.Object) {
	delete(v.looked, o)
	delete(v.wanted, o)
}

// of gives the values that are stored of a namespace's objects. An entry that cannot be read has none.
func (v values) of(ns string, stored []map[string]string) map[workload.Object]history.Values {
	out := map[workload.Object]history.Values{}
	if !v.keep {
		return out
	}
	logs, _ := history.Decode(ns, stored) // what cannot be read was said when this process began to lead
	for _, l := range logs {
		out[l.Object] = l.Values
	}
	return out
}

// readBy says that a workload reads objects, of whose keys it may be the first to read some.
func (h *historian) readBy(uses []workload.Consumption) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, u := range uses {
		h.want(u.Object, u.Reads)
	}
}

// want asks for the values of an object where some key that is read has one that was never looked for.
func (h *historian) want(o workload.Object, reads func(key string) bool) {
	l := h.logs[o]
	if !h.values.keep || !h.leading || l == nil || o.Kind != workload.ConfigMap || h.values.wanted[o] {
		return
	}
	looked := h.values.looked[o]
	for key, sum := range l.Newest().Content.Data {
		if was, ok := looked[key]; reads(key) && (!ok || was != sum) {
			h.values.wanted[o] = true
			h.soil(o.Namespace)
			return
		}
	}
}

// manyValues is how many objects of one namespace are read by a list rather than one by one.
const manyValues = 20

// readValues reads the objects of a namespace whose values are wanted. One that may not be read, or is gone, has none. A
// version that comes meanwhile asks again.
func (h *historian) readValues(ctx context.Context, ns string) (map[workload.Object]map[string]string, error) {
	out := map[workload.Object]map[string]string{}
	h.mu.Lock()
	for o := range h.values.wanted {
		if o.Namespace == ns && h.logs[o] != nil {
			out[o] = nil
			h.values.look(*h.logs[o], h.index.reads(o))
		}
	}
	h.mu.Unlock()
	err := h.readData(ctx, ns, out)
	if err != nil {
		h.wantAgain(out)
	}
	return out, err
}

// wantAgain asks once more for values that were taken for read, and did not come into the history.
func (h *historian) wantAgain(read map[workload.Object]map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := range read {
		if h.logs[o] != nil {
			h.values.wanted[o] = true
		}
	}
}

// readData fills in the data of the ConfigMaps of a namespace.
func (h *historian) readData(ctx context.Context, ns string, into map[workload.Object]map[string]string) error {
	take := func(cm *corev1.ConfigMap) {
		o := workload.Object{Kind: workload.ConfigMap, Namespace: cm.Namespace, Name: cm.Name}
		if _, wanted := into[o]; wanted && !cluster.SettingOf(o.Kind, cm).Ignore {
			into[o] = cm.Data
		}
	}
	if len(into) > manyValues {
		return unlessRefused(cluster.EachConfigMap(ctx, h.reader, ns, take))
	}
	for o := range into {
		cm := &corev1.ConfigMap{}
		err := h.reader.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, cm)
		if err == nil {
			take(cm)
		}
		if unlessRefused(err) != nil {
			return err
		}
	}
	return nil
}

func unlessRefused(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
