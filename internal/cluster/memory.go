package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

// memory is what the controller remembers, as a survey found it.
type memory struct {
	logs map[workload.Object]history.Log
	// silences are the times for which nodes gave no sign of life, as far as the leader watched.
	silences history.Silences
	// lastSign is the leader's last sign of life; zero when there was none.
	lastSign time.Time
	// blind is since when kinds of config objects are not watched.
	blind map[workload.ObjectKind]time.Time
	// noLease is why the Lease may not be read.
	noLease error
}

// behind reports whether the object holds, and has held for longer than the history may be late, what its log does not
// know: whoever should write the history cannot, live Lease or not.
func (o *object) behind(log history.Log, read time.Time) bool {
	last := log.Newest()
	written := o.writes.Newest(workload.Consumption{}.Whole()).At
	if written.IsZero() || read.Sub(written) <= HistoryLag {
		return false
	}
	if o.content == nil { // of a Secret only times are known
		return written.After(last.Seen)
	}
	return o.content.Version == last.Content.Version && !o.content.Equal(last.Content)
}

// HistoryLag is how late the history may be: a change is seen, gathered with others, and written, twice where need be.
const HistoryLag = 15 * time.Second

// readLease reads the leader's Lease, and the margins that it states. Where it may not be read, that matters only if there is history.
func (r *reading) readLease(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.System, Name: v1.LeaseLeader}, lease)
	r.sight.Now = r.Now()
	switch {
	case err == nil:
		r.sight.Installed = true
		r.memory.lastSign, r.memory.blind = lastSign(lease, r.sight.Now), BlindSince(lease)
		stated, problems := marginsOf(lease)
		r.Settings = r.Settings.Or(stated)
		r.sight.Remarks = append(r.sight.Remarks, problems...)
	case apierrors.IsForbidden(err):
		r.memory.noLease = err
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get lease %s/%s: %w", r.System, v1.LeaseLeader, err)
	}
	return nil
}

// lastSign is the last moment at which a leader surely watched, and has written down what it saw before: its last renewal, or since
// when it cannot write. One that took the lead a moment ago may not have written yet that nobody watched until then, so it gives no sign.
func lastSign(lease *coordinationv1.Lease, now time.Time) time.Time {
	spec := lease.Spec
	if spec.RenewTime == nil || spec.AcquireTime != nil && now.Sub(spec.AcquireTime.Time) < HistoryLag {
		return time.Time{}
	}
	if since := UnsavedSince(lease); !since.IsZero() && since.Before(spec.RenewTime.Time) {
		return since
	}
	return spec.RenewTime.Time
}

// UnsavedSince is since when the history lacks changes, by the leader's Lease; zero when it is written. One that cannot be read is as old as
// can be.
func UnsavedSince(lease *coordinationv1.Lease) time.Time {
	text, stated := lease.Annotations[v1.AnnotationHistoryUnsaved]
	if !stated {
		return time.Time{}
	}
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Unix(0, 0)
	}
	return since
}

// BlindSince is since when the history lacks changes of kinds that are not watched, by the leader's Lease. Of a statement that cannot be
// read, all kinds count as not watched ever.
func BlindSince(lease *coordinationv1.Lease) map[workload.ObjectKind]time.Time {
	blind := map[workload.ObjectKind]time.Time{}
	text := lease.Annotations[v1.AnnotationHistoryBlind]
	if text == "" {
		return blind
	}
	for entry := range strings.SplitSeq(text, ",") {
		kind, at, _ := strings.Cut(entry, "=")
		since, err := time.Parse(time.RFC3339, at)
		if err != nil {
			never := time.Unix(0, 0)
			return map[workload.ObjectKind]time.Time{workload.ConfigMap: never, workload.Secret: never}
		}
		blind[workload.ObjectKind(kind)] = since
	}
	return blind
}

// BlindText is what [BlindSince] reads.
func BlindText(blind map[workload.ObjectKind]time.Time) string {
	var entries []string
	for _, kind := range slices.Sorted(maps.Keys(blind)) {
		entries = append(entries, string(kind)+"="+blind[kind].UTC().Format(time.RFC3339)) // truncated: earlier, if anything
	}
	return strings.Join(entries, ",")
}

// readMemory reads the history of the objects that the workloads and their pods use.
func (r *reading) readMemory(ctx context.Context) error {
	r.used, r.copies = r.usedObjects(), r.usedCopies()
	if len(r.used) == 0 {
		return nil
	}
	r.memory.logs = map[workload.Object]history.Log{}
	var unreadable []error
	err := EachItem(ctx, r.Client, newConfigMaps, largePageSize, func(cm *corev1.ConfigMap) {
		r.sight.Installed = true
		if err := r.remember(cm); err != nil {
			unreadable = append(unreadable, err)
		}
	}, client.InNamespace(r.System), r.historyOf())
	const unknown = "Tidemark's history is not used, if it is installed there"
	ok, err := r.permitted(err, Right{"list", "configmaps", r.System, unknown})
	if err != nil || !ok {
		return err
	}
	for _, err := range unreadable {
		r.sight.Remarks = append(r.sight.Remarks, "some of the history cannot be read: "+err.Error())
	}
	if len(r.memory.logs) == 0 {
		return nil
	}
	const until = "until when the history is complete is known only of objects not written since, and margins are the default ones where flags set none"
	if _, err = r.permitted(r.memory.noLease, Right{"get", "leases/" + v1.LeaseLeader, r.System, until}); err != nil {
		return err
	}
	return r.readSilences(ctx)
}

// readSilences reads which nodes gave no sign of life, and when.
func (r *reading) readSilences(ctx context.Context) error {
	silences, err := ReadSilences(ctx, r.Client, r.System)
	if silences == nil {
		const unknown = "what pods read on nodes that were cut off for a while may be stated wrongly"
		_, err = r.permitted(err, Right{"get", "configmaps/" + v1.NodeSilences, r.System, unknown})
		return err
	}
	if err != nil {
		r.sight.Remarks = append(r.sight.Remarks, "some of the history cannot be read: configmap "+r.System+"/"+v1.NodeSilences+": "+err.Error())
	}
	r.memory.silences = silences
	return nil
}

// remember takes in the logs of the objects used. Of two logs of one object, which a write that was interrupted may leave,
// the one that was seen to change last counts, as in [history.Decode].
func (r *reading) remember(cm *corev1.ConfigMap) error {
	decoded, err := history.Decode(cm.Labels[v1.LabelHistory], []map[string]string{cm.Data})
	for _, log := range decoded {
		if !r.used[log.Object] {
			continue
		}
		if other, ok := r.memory.logs[log.Object]; !ok || other.Newest().Seen.Before(log.Newest().Seen) {
			r.memory.logs[log.Object] = log
		}
	}
	if err != nil {
		return fmt.Errorf("configmap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return nil
}

// historyOf selects the history of the objects used: of their namespace where they share one, else all.
func (r *reading) historyOf() client.ListOption {
	namespaces := map[string]bool{}
	for o := range r.used {
		namespaces[o.Namespace] = true
	}
	if len(namespaces) == 1 {
		for ns := range namespaces {
			return client.MatchingLabels{v1.LabelHistory: ns}
		}
	}
	return client.HasLabels{v1.LabelHistory}
}

// usedObjects are the config objects that the workloads' templates or their pods use.
func (r *reading) usedObjects() map[workload.Object]bool {
	used := map[workload.Object]bool{}
	for _, s := range r.seen {
		for _, u := range s.allUses() {
			used[u.Object] = true
		}
	}
	return used
}

// allUses is what the template consumes, and what only pods do: those of older revisions, or with containers that were
// added on their way into the cluster.
func (s *seen) allUses() []workload.Consumption {
	uses := slices.Clone(s.uses)
	have := map[workload.Object]bool{}
	for _, u := range uses {
		have[u.Object] = true
	}
	for i := range s.pods {
		for j := range s.pods[i].Containers {
			for _, u := range consumptions(&s.pods[i].Containers[j]) {
				if !have[u.Object] {
					have[u.Object] = true
					u.Required, u.RequiredKeys, u.RequiredEnv = false, nil, nil // the next pods start without it
					uses = append(uses, u)
				}
			}
		}
	}
	return uses
}

// completeTo is until when the log of an object is known to hold every change. Where the object is in the very state that
// the log ends with, that is the moment before it was read; else it is the leader's last sign of life, less the time that a
// change takes to be seen and written.
func (m memory) completeTo(log history.Log, o *object, read time.Time) time.Time {
	switch {
	case len(log.Versions) == 0:
		return time.Time{}
	case o.atEndOf(log):
		return read
	case m.lastSign.IsZero():
		return log.Newest().Seen.Add(-HistoryLag)
	case o.behind(log, read):
		return log.Newest().Seen
	}
	last := m.lastSign
	if since, blind := m.blind[log.Object.Kind]; blind && since.Before(last) {
		last = since
	}
	return last.Add(-HistoryLag)
}

// atEndOf reports whether the object is in the state that the log ends with. Of an absent object that is never certain: it
// may have come and gone.
func (o *object) atEndOf(log history.Log) bool {
	last := log.Newest()
	return o.known && o.present && last.Content.Present && last.UID == o.uid && last.ResourceVersion == o.resourceVersion
}
