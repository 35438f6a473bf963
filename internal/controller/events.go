package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Reporter is the reporting controller of Tidemark's events.
const Reporter = "tidemark"

// announcer tells people about workloads by Events. Every message names objects and reasons, never data.
type announcer struct{ recorder events.EventRecorder }

// maxNamed bounds how many objects one message names.
const maxNamed = 5

// maxNote is how long an Event's note may be, in bytes: the API refuses a longer one.
const maxNote = 1024

func (a announcer) event(obj runtime.Object, kind, reason, action, note string) {
	a.recorder.Eventf(obj, nil, kind, reason, action, "%s", bounded(note))
}

// eventOnce makes an Event whose name tells of what it is, so that another leader, or this one after a restart, does not make it
// again as long as it is kept.
func eventOnce(ctx context.Context, c client.Client, at time.Time, on corev1.ObjectReference, action, reason, what, note string) error {
	sum := sha256.Sum256([]byte(string(on.UID) + "/" + what))
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: on.Namespace, Name: eventName(on.Name, reason, hex.EncodeToString(sum[:8]))},
		EventTime:  metav1.NewMicroTime(at), ReportingController: Reporter, ReportingInstance: Reporter,
		Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: bounded(note), Regarding: on,
	}
	if err := c.Create(ctx, e); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create event: %w", err)
	}
	return nil
}

// eventName is a name that begins with the object's, which may be as long as names may be.
func eventName(object, reason, sum string) string {
	const longest = 200
	return object[:min(len(object), longest)] + "." + strings.ToLower(reason) + "-" + sum
}

// bounded cuts a note to what the API takes.
func bounded(note string) string {
	const ellipsis = "…"
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-len(ellipsis)], "") + ellipsis
	}
	return note
}

// rolled is sent after the stamp was written.
func (a announcer) rolled(s *subject, d stamp.Decision) {
	why := "configuration changed: " + names(d.Changed, s.id.Namespace)
	switch d.Reason { //nolint:exhaustive // the others are no reasons to write a stamp
	case stamp.FirstPin:
		why = "mode pin is new to the workload: each revision reads its own copies from now on"
	case stamp.NewRelease:
		why = "a new release: what was held back is as applied again"
	case stamp.NewTemplate:
		why = "the template was replaced: it is pinned to what is applied"
	case stamp.TemplateEdited:
		why = "the template reads more than before: that is pinned to what is applied"
	}
	a.event(s.object, corev1.EventTypeNormal, "ConfigurationRolled", "Stamp", why+"; the workload rolls by its own strategy")
}

// rolledBack is sent after a rollback was taken note of.
func (a announcer) rolledBack(s *subject, d stamp.Decision) {
	note := "someone went back to an older revision: it is left alone until the next change"
	if len(d.HeldBack) > 0 {
		note += "; held back: " + names(d.HeldBack, s.id.Namespace)
	}
	a.event(s.object, corev1.EventTypeNormal, "RolledBack", "Record", note)
}

// held is sent when a wanted rollout begins to be held.
func (a announcer) held(s *subject, reason, why string) {
	a.event(s.object, corev1.EventTypeWarning, "Held", "Hold", "rollout held ("+reason+"): "+why)
}

// waiting is sent when a required object or key is missing.
func (a announcer) waiting(s *subject, missing []stamp.Missing) {
	var what []string
	for _, m := range missing[:min(len(missing), maxNamed)] {
		name := m.Object.Relative(s.id.Namespace)
		if m.Key != "" {
			name += " key " + m.Key
		}
		what = append(what, name)
	}
	a.event(s.object, corev1.EventTypeWarning, "Waiting", "Hold",
		"no rollout while what the pods require is missing: "+strings.Join(what, ", ")+more(len(missing)))
}

// problem is sent when an annotation or template cannot be read.
func (a announcer) problem(s *subject, text string) {
	a.event(s.object, corev1.EventTypeWarning, "InvalidConfiguration", "Read", text)
}

// refused is sent when the API refuses a write.
func (a announcer) refused(s *subject, err error) {
	a.event(s.object, corev1.EventTypeWarning, "WriteRefused", "Write",
		fmt.Sprintf("the stamp could not be written, trying again: %v", err))
}

// unrestored is sent when a copy that the template names is gone, and cannot be made again.
func (a announcer) unrestored(s *subject, why string) {
	a.event(s.object, corev1.EventTypeWarning, "CopyLost", "Restore", "a copy that the pod template names may be gone, so that no new pod would start, and could "+
		"not be made again, trying again: "+why)
}

// stampLost is sent after a stamp was written that the pod template does not carry afterwards.
func (a announcer) stampLost(s *subject) {
	path := strings.Join(s.kind.TemplatePath, ".")
	a.event(s.object, corev1.EventTypeWarning, "StampLost", "Write", "the stamp was written and the pod template is without it, so this change did not "+
		"roll the workload: roll it by hand. Either the kind's definition prunes the template's metadata (set x-kubernetes-preserve-unknown-fields: true "+
		"at "+path+".metadata, or declare its annotations), or something on the way, such as a mutating webhook, takes annotations at "+path+" away. "+
		"It is tried again with the next change")
}

// unread is sent when the right to read a workload's revisions is missing.
func (a announcer) unread(s *subject, err error) {
	a.event(s.object, corev1.EventTypeWarning, "ReadRefused", "Read",
		fmt.Sprintf("its template is not the one that was left, and whether somebody went back cannot be told, so nothing is written; trying again: %v", err))
}

// healed is sent after a pod was deleted that kept its StatefulSet from rolling.
func (a announcer) healed(s *subject, pod string) {
	a.event(s.object, corev1.EventTypeNormal, "PodDeleted", "Heal", "pod "+pod+" is of an older revision and fails, and its StatefulSet would wait for it for "+
		"ever before it rolls (pod management policy OrderedReady); it is made again by the newest revision")
}

// enabled is sent after the scheduler that Wave took away was put back.
func (a announcer) enabled(s *subject, scheduler string) {
	if scheduler == "" {
		scheduler = corev1.DefaultSchedulerName
	}
	a.event(s.object, corev1.EventTypeNormal, "SchedulingEnabled", "Restore",
		"what the pods require is there: the scheduler that Wave took away is back, "+scheduler)
}

// promoted is sent after the pause of a canary was ended.
func (a announcer) promoted(s *subject, after time.Duration) {
	a.event(s.object, corev1.EventTypeNormal, "CanaryPromoted", "Promote", fmt.Sprintf(
		"its canary was healthy, and paused for more than %s (%s): it goes on", after, v1.AnnotationPromoteAfter))
}

// notPromoted is sent when it is time to promote a canary and something stands in the way.
func (a announcer) notPromoted(s *subject, why string) {
	a.event(s.object, corev1.EventTypeWarning, "CanaryNotPromoted", "Promote", "its canary is not promoted: "+why)
}

// rolloutRefused is sent when a right is missing that is needed to see to a rollout.
func (a announcer) rolloutRefused(s *subject, err error) {
	a.event(s.object, corev1.EventTypeWarning, "WriteRefused", "Promote", fmt.Sprintf(
		"its rollout cannot be seen to (the rights are those of deploy/pin), trying again: %v", err))
}

func names(objects []workload.Object, namespace string) string {
	var out []string
	for _, o := range objects[:min(len(objects), maxNamed)] {
		out = append(out, o.Relative(namespace))
	}
	return strings.Join(out, ", ") + more(len(objects))
}

func more(n int) string {
	if n > maxNamed {
		return fmt.Sprintf(" and %d more", n-maxNamed)
	}
	return ""
}
