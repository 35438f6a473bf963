package webhook

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Bounds of what is told.
const (
	// tellAfter is how long after an admission it is looked whether the write was made: it may still have failed.
	tellAfter = 2 * time.Second
	// toldAtOnce bounds what waits to be told. What is beyond that is not: the record on the workload says it too.
	toldAtOnce = 1000
	// maxNamed bounds how many objects one message names.
	maxNamed = 5
	// maxNote is how long an Event's note may be, in bytes.
	maxNote = 1024
)

// news is what was decided about a workload.
type news struct {
	kind cluster.Kind
	key  client.ObjectKey
	// sum is the checksum of the record that the workload carries when the write was made.
	sum          string
	reason, note string
	at           time.Time
}

// teller tells of what was decided at admission by Events on the workloads, as the controller does of its own writes: after
// the write.
type teller struct {
	reader   client.Reader
	recorder events.EventRecorder
	clock    clock.Clock
	waiting  chan news
}

func newTeller(reader client.Reader, recorder events.EventRecorder, c clock.Clock) *teller {
	return &teller{reader: reader, recorder: recorder, clock: c, waiting: make(chan news, toldAtOnce)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who answered tells.
func (t *teller) NeedLeaderElection() bool { return false }

// decided notes a decision that was added to a write. There is nothing to tell of most.
func (t *teller) decided(kind cluster.Kind, obj client.Object, d stamp.Decision, p cluster.Patch) {
	sum, namespace := p.Labels[v1.LabelRecordSum], obj.GetNamespace()
	n := news{kind: kind, key: client.ObjectKeyFromObject(obj), at: t.clock.Now()}
	switch {
	case n.key.Name == "" || sum == nil:
		return
	case d.Reason == stamp.RolledBack:
		n.reason, n.note = "RolledBack", "someone went back to an older revision: it is left alone until the next change"
		if len(d.HeldBack) > 0 {
			n.note += "; held back: " + names(d.HeldBack, namespace)
		}
	case d.Action == stamp.WriteStamp && len(d.Changed) > 0:
		n.reason = "ConfigurationRolled"
		n.note = "configuration changed: " + names(d.Changed, namespace) + "; it goes with the change of the pod template, in one revision"
	default:
		return
	}
	n.sum = *sum
	select {
	case t.waiting <- n:
	default:
	}
}

// Start tells until the context ends.
func (t *teller) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-t.waiting:
			select {
			case <-ctx.Done():
				return nil
			case <-t.clock.After(n.at.Add(tellAfter).Sub(t.clock.Now())):
				t.tell(ctx, n)
			}
		}
	}
}

// tell sends the Event when the workload is as it was decided. It is news, no duty: what cannot be looked at is not told.
func (t *teller) tell(ctx context.Context, n news) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	// A list, which is a right that the controller has; it has none to get workloads.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(n.kind.GroupVersionKind.GroupVersion().WithKind(n.kind.GroupVersionKind.Kind + "List"))
	err := t.reader.List(ctx, list, client.InNamespace(n.key.Namespace), client.MatchingFields{metav1.ObjectNameField: n.key.Name})
	if err != nil || len(list.Items) != 1 || list.Items[0].Labels[v1.LabelRecordSum] != n.sum {
		return
	}
	m := &list.Items[0]
	m.SetGroupVersionKind(n.kind.GroupVersionKind)
	const ellipsis = "…"
	if len(n.note) > maxNote {
		n.note = strings.ToValidUTF8(n.note[:maxNote-len(ellipsis)], "") + ellipsis
	}
	t.recorder.Eventf(m, nil, corev1.EventTypeNormal, n.reason, "Admit", "%s", n.note)
}

func names(objects []workload.Object, namespace string) string {
	var out []string
	for _, o := range objects[:min(len(objects), maxNamed)] {
		out = append(out, o.Relative(namespace))
	}
	if len(objects) > maxNamed {
		out = append(out, "and more")
	}
	return strings.Join(out, ", ")
}
