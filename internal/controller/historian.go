package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

const (
	// flushDelay is how long changes are gathered before the history is written.
	flushDelay = time.Second
	// flushRetry is how long to wait after a write of the history failed.
	flushRetry = 5 * time.Second
	// flushLast is how long the last write may take when the program ends.
	flushLast = 5 * time.Second
	// flushWithin is how long a write of one namespace's history may take: no longer than the history may be late.
	flushWithin = 10 * time.Second
	// renewEvery is how often the leader Lease is renewed; silence beyond it may have delayed what was watched.
	renewEvery = 2 * time.Second
)

// historian keeps the history of every consumed object in Tidemark's own namespace: one ConfigMap, or a few, for each
// namespace. Only the leader writes; a content change costs one write however many objects change within a second.
type historian struct {
	client    client.Client
	reader    client.Reader // uncached: the cache has digests only
	clock     clock.Clock
	log       logr.Logger
	metrics   *Metrics
	index     *index
	signs     *signs
	key       *digest.Key
	namespace string
	// lag is how long a change may take to be seen.
	lag time.Duration
	// renewDeadline is how long after the last renewal of the Lease that was seen nobody else can lead.
	renewDeadline time.Duration
	// synced reports whether all objects of a kind are known, so that an unknown one is absent.
	synced func(workload.ObjectKind) bool
	// watched is since when that is so.
	watched func(workload.ObjectKind) time.Time

	mu      sync.Mutex
	leading bool
	// holder is this process's identity as the leader.
	holder string
	logs   map[workload.Object]*history.Log
	dirty  map[string]bool
	// unsaved is since when there is something to write; zero when there is nothing.
	unsaved time.Time
	// stated is what the Lease says of that, once it could not be written; zero when it says nothing.
	stated time.Time
	// shards is how many ConfigMaps hold each namespace's history.
	shards map[string]int
	// unwatched is the last moment at which the leader before surely watched; zero when there was none.
	unwatched time.Time
	// heard is when a watch event of each kind last arrived: what a list then brings may have changed since.
	heard map[workload.ObjectKind]time.Time
	// unseen are objects whose log comes from a leader before and that this one has not looked at yet.
	unseen map[workload.Object]bool
	values values
	// blindness is which kinds are not watched.
	blindness blindness
	// silences are the times for which nodes gave no sign of life.
	silences history.Silences
	// loaded is closed once what the leader before left is known.
	loaded chan struct{}
	kick   chan struct{}
}

// ofNodes stands for the namespace whose history is that of nodes.
const ofNodes = ""

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (h *historian) NeedLeaderElection() bool { return true }

// Start loads what the leader before left, looks at every object, and then writes what changes until the context ends.
func (h *historian) Start(ctx context.Context) error {
	for {
		err := h.load(ctx)
		if err == nil {
			break
		}
		h.log.Error(err, "Cannot read the history; trying again", "retryIn", flushRetry)
		if !h.sleep(ctx, flushRetry) {
			return nil
		}
	}
	close(h.loaded)
	h.follow(h.index.consumedObjects(), h.clock.Now())
	if err := h.missEnded(ctx); err != nil {
		h.log.Error(err, "Cannot look which namespaces ended while nobody led; their history stays until the next start")
	}
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLast)
			h.flush(last)
			cancel()
			return nil
		case <-h.kick:
		}
		if !h.sleep(ctx, flushDelay) {
			continue
		}
		for !h.flush(ctx) && h.sleep(ctx, flushRetry) {
		}
	}
}

func (h *historian) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-h.clock.After(d):
		return true
	}
}

func (h *historian) load(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: v1.LeaseLeader}, lease)
	if err != nil {
		return fmt.Errorf("get lease: %w", err)
	}
	logs, shards, err := cluster.ReadHistory(ctx, h.reader, h.namespace)
	if logs == nil && err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	if err != nil {
		h.log.Error(err, "Some of the history cannot be read and begins anew")
	}
	silences, err := cluster.ReadSilences(ctx, h.reader, h.namespace)
	if silences == nil {
		return fmt.Errorf("read silences of nodes: %w", err)
	}
	if err != nil {
		h.log.Error(err, "Some nodes count as silent for as long as they are there")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leading, h.shards, h.silences = true, shards, silences
	h.logs, h.unseen = map[workload.Object]*history.Log{}, map[workload.Object]bool{}
	for _, l := range logs {
		if h.values.took(&l) {
			h.dirty[l.Object.Namespace] = true
		}
		h.logs[l.Object] = &l
		h.unseen[l.Object] = true
	}
	h.succeed(lease)
	return nil
}

// succeed takes over from the leader before what the Lease says of it.
func (h *historian) succeed(lease *coordinationv1.Lease) {
	if lease.Spec.HolderIdentity != nil {
		h.holder = *lease.Spec.HolderIdentity
		// What the leader before saw in its last moments it may not have had the time to write.
		if t := h.signs.before(*lease.Spec.HolderIdentity); !t.IsZero() {
			h.unwatched = t.Add(-flushDelay - flushRetry)
		}
	}
	h.blindness.inherit(cluster.BlindSince(lease), h.unwatched, h.synced, h.clock.Now())
	if len(h.blindness.since) > 0 || len(h.blindness.stated) > 0 {
		h.wake()
	}
	// Nor had it where it could not write: what it saw since then is lost.
	if h.stated = cluster.UnsavedSince(lease); !h.stated.IsZero() {
		if h.unwatched.IsZero() || h.stated.Before(h.unwatched) {
			h.unwatched = h.stated
		}
		h.wake()
	}
}

// look is one look at a config object.
type look struct {
	at time.Time
	// digested is what was seen; nil when the object is absent.
	digested *cluster.Digested
	// fresh says that the object was seen coming into being.
	fresh bool
	// listed says that it came by no watch event of its own, so that changes before may have been missed.
	listed bool
	// absent is since when a fresh object had been absent; zero when that is not known.
	absent time.Time
}

// follow looks at objects that nobody consumed before, or that nobody looked at since this process leads.
func (h *historian) follow(objects []workload.Object, now time.Time) {
	for _, o := range objects {
		if !h.synced(o.Kind) {
			continue
		}
		h.meet(o, now)
	}
}

// meet looks at an object of which nobody was told by a watch event. Where its history begins, it begins with what the watch
// had shown before. One whose history this process has begun, or gone on with, was told of ever since.
func (h *historian) meet(o workload.Object, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logs[o] != nil && !h.unseen[o] {
		return
	}
	// Under the lock, so that no look that is newer comes in between.
	a := h.index.acquaintance(o, h.watched(o.Kind), now)
	k := look{at: now, digested: a.digested, listed: true}
	if h.logs[o] == nil && !a.since.IsZero() {
		k = look{at: a.since, digested: a.digested, fresh: a.born, listed: !a.born, absent: a.absent}
	}
	h.take(o, k)
}

// saw takes in a look at a config object.
func (h *historian) saw(o workload.Object, k look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(o, k)
}

// take takes in a look. An object has a history from when somebody first consumed it.
func (h *historian) take(o workload.Object, k look) {
	_, consumed := h.index.consumed(o)
	l := h.logs[o]
	if !h.leading || l == nil && !consumed {
		return
	}
	if l == nil {
		l = &history.Log{Object: o}
		h.logs[o] = l
	}
	if l.Observe(h.observation(o, k)) {
		h.soil(o.Namespace)
	}
	h.want(o, h.index.reads(o))
	delete(h.unseen, o)
}

// soil says that the history of a namespace is to be written.
func (h *historian) soil(ns string) {
	h.dirty[ns] = true
	if h.unsaved.IsZero() {
		h.unsaved = h.clock.Now()
	}
	h.wake()
}

// wake asks for a write of what there is to write.
func (h *historian) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// freshFor is how young an object must be for its first content to count as known from its creation on.
const freshFor = 5 * time.Second

// observation says what a look at an object shows, and how far it can be trusted.
func (h *historian) observation(o workload.Object, l look) history.Observation {
	obs := history.Observation{
		At: l.at, Content: digest.AbsentIn(o.Kind, h.key), Lag: h.lag, EveryEvent: !l.listed && !h.unseen[o],
		Reads: h.index.reads(o),
	}
	if silence := h.signs.silence(); silence > renewEvery {
		obs.Lag += silence
	}
	switch {
	case h.unseen[o]:
		obs.Unwatched = h.blindness.before(o.Kind, h.unwatched)
	case l.listed:
		obs.Unwatched = h.heard[o.Kind]
	}
	if !l.listed {
		h.heard[o.Kind] = latest(h.heard[o.Kind], l.at)
	}
	if l.digested == nil {
		return obs
	}
	d := l.digested
	obs.Content, obs.Immutable = d.Content, d.Immutable
	obs.UID, obs.ResourceVersion = string(d.UID), d.ResourceVersion
	obs.Created, obs.Written = d.CreationTimestamp.Time, d.Written
	obs.Fresh = l.fresh && !l.listed && l.at.Sub(obs.Created) < freshFor && !obs.Written.After(obs.Created)
	obs.AbsentSince = l.absent
	return obs
}

// nodeSilent says that a node has given no sign of life since.
func (h *historian) nodeSilent(node string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silences.Begin(node, since) {
		h.soil(ofNodes)
	}
}

// nodeHeard says that a node gave a sign of life. After less than so long it had not been silent.
func (h *historian) nodeHeard(node string, at time.Time, least time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silences.End(node, at, least) {
		h.soil(ofNodes)
	}
}

// nodesLeft says which nodes there are.
func (h *historian) nodesLeft(there func(node string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silences.Forget(there) {
		h.soil(ofNodes)
	}
}

// ended says that a namespace is gone, whose history goes as well.
func (h *historian) ended(ns string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading || h.shards[ns] == 0 {
		return
	}
	h.soil(ns)
}

// missEnded looks for namespaces that ended while nobody led, whose history goes as well.
func (h *historian) missEnded(ctx context.Context) error {
	there := metav1.PartialObjectMetadataList{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := h.reader.List(ctx, &there); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ns := range h.shards {
		if !slices.ContainsFunc(there.Items, func(m metav1.PartialObjectMetadata) bool { return m.Name == ns }) {
			h.soil(ns)
		}
	}
	return nil
}

// flush writes the history of every namespace in which something changed, and reports whether all of it is written. While it is not,
// the Lease says so: whoever reads the history must not take its end for the present.
func (h *historian) flush(ctx context.Context) bool {
	if !h.leads(ctx) {
		return false
	}
	ok := h.stateBlindness(ctx)
	namespaces, since := h.takeDirty()
	for _, ns := range namespaces {
		if err := h.writeInTime(ctx, ns); err != nil {
			ok = false
			h.metrics.historyErrors.Inc()
			h.log.Error(err, "Cannot write the history; trying again", "historyOf", ns, "retryIn", flushRetry)
			h.mu.Lock()
			h.dirty[ns] = true
			if !since.IsZero() { // zero where only values were to be written, and what was seen meanwhile has its own
				h.unsaved = since
			}
			h.mu.Unlock()
			if !since.IsZero() {
				h.state(ctx, since)
			}
		}
	}
	return ok && h.state(ctx, time.Time{})
}

// state has the Lease say since when changes are not written, zero for that all are, and reports whether it says so. What it says
// already stays: a leader before may have lost more.
func (h *historian) state(ctx context.Context, since time.Time) bool {
	h.mu.Lock()
	stated := h.stated
	h.mu.Unlock()
	if stated.IsZero() == since.IsZero() {
		return true
	}
	value := "null"
	if !since.IsZero() {
		value = strconv.Quote(since.UTC().Format(time.RFC3339)) // truncated: earlier, if anything
	}
	if err := h.annotateLease(ctx, v1.AnnotationHistoryUnsaved, value); err != nil {
		h.log.Error(err, "Cannot say in the leader Lease whether the history is written; trying again", "retryIn", flushRetry)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stated = since
	return true
}

// stateBlindness has the Lease say which kinds are not watched, and reports whether it says so and there will be nothing else to say.
func (h *historian) stateBlindness(ctx context.Context) bool {
	h.mu.Lock()
	blind, lasts := h.blindness.statement(h.clock.Now())
	stated := h.blindness.stated
	h.mu.Unlock()
	text := cluster.BlindText(blind)
	if text == cluster.BlindText(stated) {
		return !lasts
	}
	value := "null"
	if text != "" {
		value = strconv.Quote(text)
	}
	if err := h.annotateLease(ctx, v1.AnnotationHistoryBlind, value); err != nil {
		h.log.Error(err, "Cannot say in the leader Lease which kinds are not watched; trying again", "retryIn", flushRetry)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blindness.stated = blind
	return !lasts
}

// annotateLease sets an annotation of the Lease to a value, as JSON has it.
func (h *historian) annotateLease(ctx context.Context, name, value string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: v1.LeaseLeader}}
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, name, value)
	return h.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(v1.FieldManager))
}

// watches says whether a kind of config objects is watched.
func (h *historian) watches(kind workload.ObjectKind, does bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if does {
		h.blindness.end(kind, h.clock.Now())
	} else {
		h.blindness.begin(kind, h.clock.Now())
	}
	if h.leading && len(h.blindness.since) > 0 {
		h.wake()
	}
}

func (h *historian) writeInTime(ctx context.Context, ns string) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	return h.write(ctx, ns)
}

// leads reports whether this process surely leads. One that was frozen, or cut off, asks: another may lead by now, whose
// history must not be replaced by an older one.
func (h *historian) leads(ctx context.Context) bool {
	if h.signs.silence() <= h.renewDeadline {
		return true
	}
	lease := &coordinationv1.Lease{}
	if err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: v1.LeaseLeader}, lease); err != nil {
		h.log.Error(err, "Cannot read the leader Lease; the history is written later", "retryIn", flushRetry)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == h.holder
}

// takeDirty takes the namespaces whose history is to be written, and since when there are any.
func (h *historian) takeDirty() (namespaces []string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	namespaces, since = slices.Sorted(maps.Keys(h.dirty)), h.unsaved
	clear(h.dirty)
	h.unsaved = time.Time{}
	return namespaces, since
}

// write applies the ConfigMaps that hold a namespace's history, where they differ from what is there.
func (h *historian) write(ctx context.Context, ns string) error {
	if ns == ofNodes {
		return h.writeSilences(ctx)
	}
	stored, err := h.stored(ctx, ns)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	read, err := h.readValues(ctx, ns)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	written := false
	defer func() {
		if !written {
			h.wantAgain(read)
		}
	}()
	shards, failed := h.encode(ns, h.values.of(ns, stored), read)
	for i, data := range slices.Backward(shards) { // the order in which nothing is lost half-way
		if i < len(stored) && maps.Equal(data, stored[i]) {
			continue
		}
		cm := corev1ac.ConfigMap(shardName(ns, i), h.namespace).WithLabels(map[string]string{v1.LabelHistory: ns}).WithData(data)
		if err := h.client.Apply(ctx, cm, client.FieldOwner(v1.FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply history: %w", err)
		}
		h.metrics.historyWrites.Inc()
	}
	for i := len(shards); i < len(stored); i++ {
		cm := &corev1.ConfigMap{}
		cm.Namespace, cm.Name = h.namespace, shardName(ns, i)
		if err := client.IgnoreNotFound(h.client.Delete(ctx, cm)); err != nil {
			return fmt.Errorf("delete history: %w", err)
		}
	}
	written = true
	h.mu.Lock()
	h.shards[ns] = len(shards)
	h.mu.Unlock()
	if failed != nil {
		h.log.Error(failed, "Some of the history cannot be kept", "historyOf", ns)
	}
	return nil
}

// writeSilences applies the ConfigMap with the silences of nodes.
func (h *historian) writeSilences(ctx context.Context) error {
	h.mu.Lock()
	data, failed := h.silences.Encode()
	h.mu.Unlock()
	cm := corev1ac.ConfigMap(v1.NodeSilences, h.namespace).WithData(data)
	if err := h.client.Apply(ctx, cm, client.FieldOwner(v1.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply silences of nodes: %w", err)
	}
	h.metrics.historyWrites.Inc()
	if failed != nil {
		h.log.Error(failed, "What pods read on nodes that were cut off for a while may be stated wrongly")
	}
	return nil
}

// stored reads what is there of a namespace's history: the data of each ConfigMap, nil for one that is not there.
func (h *historian) stored(ctx context.Context, ns string) ([]map[string]string, error) {
	h.mu.Lock()
	shards := make([]map[string]string, h.shards[ns])
	h.mu.Unlock()
	for i := range shards {
		cm := &corev1.ConfigMap{}
		err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: shardName(ns, i)}, cm)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if shards[i] = cm.Data; err != nil {
			shards[i] = nil
		}
	}
	return shards, nil
}

// encode gives the data of each ConfigMap of a namespace's history, with the values that were kept before and those that
// were read now. Objects that are gone and that nobody consumes any more are forgotten.
func (h *historian) encode(ns string, kept map[workload.Object]history.Values, read map[workload.Object]map[string]string) ([]map[string]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var logs []history.Log
	for o, l := range h.logs {
		if o.Namespace != ns {
			continue
		}
		if d, consumed := h.index.consumed(o); d == nil && !consumed && h.synced(o.Kind) {
			delete(h.logs, o)
			h.values.forget(o)
			continue
		}
		whole := *l
		whole.Values = kept[o]
		if data, ok := read[o]; ok {
			whole.Keep(data, h.index.reads(o))
		}
		logs = append(logs, whole)
	}
	return history.Encode(logs)
}

// shardName names the n-th ConfigMap of a namespace's history. A namespace's name has no dot, so no two share a name.
func shardName(ns string, n int) string {
	if n == 0 {
		return v1.HistoryPrefix + ns
	}
	return fmt.Sprintf("%s%s.%d", v1.HistoryPrefix, ns, n)
}
