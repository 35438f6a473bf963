package plan

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// judge words what the decision means for the workload's pods.
func judge(then client.Object, after cluster.Facts, d stamp.Decision, out *Plan) {
	rolls := out.Template || d.Action == stamp.WriteStamp
	switch {
	case d.Reason == stamp.Waiting && !out.Template:
		out.Forecast, out.Why = Waits, missingText(d.Missing)
	case rolls:
		out.Forecast, out.Why = Rolls, rollsText(out, d)
		if len(d.Missing) > 0 { // which keeps Tidemark from a rollout, and nothing else
			out.Notes = append(out.Notes, missingText(d.Missing)+": it rolls all the same, and new pods do not start")
		}
		if !out.Template && d.Reason == stamp.ContentChanged && takenUp(after, out) {
			out.Notes = append(out.Notes, fmt.Sprintf("its program reloads what changes (%s), and it rolls all the same: %s: %s on the object keeps it from that",
				v1.AnnotationReloads, v1.AnnotationTreatAs, v1.TreatAsLive))
		}
		hold(then, after, out)
	default:
		out.Forecast, out.Why = leftText(after, d, out)
	}
	if _, is := then.(*batchv1.CronJob); is && (out.Forecast == Rolls || out.Forecast == GoesStale) {
		out.Forecast, out.Why = NextJob, "the next Job reads it; a running one is left alone"
	}
	out.Replicas, out.Replaced, out.Pace = paceText(then)
	if out.Forecast != Rolls {
		out.Replaced = 0
	}
}

// leftText words that no template is written.
func leftText(after cluster.Facts, d stamp.Decision, out *Plan) (f Forecast, why string) {
	switch {
	case len(out.Changed) == 0 && d.Reason == stamp.Unchanged && len(d.HeldBack) > 0:
		return Stays, "nothing that it reads changes, and a rollback keeps it on an older version"
	case len(out.Changed) == 0:
		return Stays, "nothing that it reads changes"
	case takenUp(after, out):
		return Stays, "its program reloads what changes"
	case out.Mode == stamp.Observe:
		return GoesStale, "in mode observe nothing rolls: running pods keep what they loaded, and the next that starts reads it"
	case len(d.HeldBack) > 0:
		return GoesStale, "a rollback holds it back on an older version"
	}
	return GoesStale, "it is accounted for without a rollout (" + string(d.Reason) + ")"
}

// takenUp reports whether running pods take all that changes, because their program reloads it: an object that says so is taken at
// its word, a workload that says so of the files that are refreshed under it, which those of pinned pods never are.
func takenUp(f cluster.Facts, out *Plan) bool {
	says, _ := cluster.Switch(v1.AnnotationReloads, f.Object.GetAnnotations(), f.Template.Annotations) // one that cannot be read is the controller's to tell
	says = says && out.Mode != stamp.Pin
	return !slices.ContainsFunc(out.Changed, func(changed KeysOf) bool {
		return !slices.ContainsFunc(f.State.Objects, func(o stamp.Object) bool {
			return o.Use.Object == changed.Object && (o.Live || says && o.Use.Refreshed && !readAsVariable(o.Use, changed.Keys))
		})
	})
}

func readAsVariable(use workload.Consumption, keys []revision.KeyChange) bool {
	return slices.ContainsFunc(keys, func(k revision.KeyChange) bool { return use.Env.Has(k.Key) })
}

func missingText(missing []stamp.Missing) string {
	m := missing[0]
	if m.Key == "" {
		return m.Object.String() + " would not be there, and its pods require it"
	}
	return fmt.Sprintf("key %s of %s would not be there, and its pods require it", m.Key, m.Object)
}

func rollsText(out *Plan, d stamp.Decision) string {
	switch {
	case out.Template && len(out.Changed) > 0:
		return "its template changes, and what it reads"
	case out.Template:
		return "its template changes"
	case d.Reason == stamp.ContentChanged && len(out.Changed) > 0:
		return "what it reads changes"
	case d.Reason == stamp.FirstPin:
		return "mode pin is new to it, and its template gets its first pins"
	}
	return "something that it reads changed before, and is not rolled out yet (" + string(d.Reason) + ")"
}

// hold says what keeps a workload from rolling.
func hold(then client.Object, f cluster.Facts, out *Plan) {
	stopped := ""
	switch record := f.State.Record; {
	case f.Paused != "" && !out.Template:
		stopped = "paused: " + f.Paused
	case record != nil && record.Hold != nil && !out.Template:
		stopped = string(record.Hold.Reason) + ": its configuration changed too often, and it rolls once that ends"
	}
	if own := heldByItself(then); own != "" {
		stopped = own
	}
	if stopped != "" {
		out.Forecast, out.Why = IsHeld, out.Why+"; "+stopped
	}
}

// heldByItself says what in a workload's own spec keeps its pods from being replaced; "" for nothing.
func heldByItself(obj client.Object) string {
	paused := false
	switch o := obj.(type) {
	case *appsv1.Deployment:
		paused = o.Spec.Paused
	case *appsv1.StatefulSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			return cluster.OnDelete
		}
	case *appsv1.DaemonSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return cluster.OnDelete
		}
	case *unstructured.Unstructured:
		paused, _, _ = unstructured.NestedBool(o.Object, "spec", "paused")
	}
	if paused {
		return "spec.paused is set: it rolls when it is resumed"
	}
	return ""
}

// paceText says how many pods a workload has, how many of them a rollout replaces by itself, and how.
func paceText(obj client.Object) (replicas, replaced int, how string) {
	pace := cluster.PaceOf(obj)
	replicas, replaced = pace.Replicas, max(pace.Replicas-pace.Partition, 0)
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			return replicas, replaced, "Recreate: all are stopped before a new one starts"
		}
	case *appsv1.StatefulSet:
		switch {
		case heldByItself(o) != "":
			return replicas, 0, cluster.OnDelete
		case pace.Partition > 0:
			return replicas, replaced, fmt.Sprintf("%s; partition %d: those below this ordinal keep their revision", rollingText(pace), pace.Partition)
		}
	case *appsv1.DaemonSet:
		if heldByItself(o) != "" {
			return replicas, 0, cluster.OnDelete
		}
	case *batchv1.CronJob:
		return 0, 0, ""
	case *unstructured.Unstructured:
		if steps, _, _ := unstructured.NestedSlice(o.Object, "spec", "strategy", "canary", "steps"); len(steps) > 0 {
			return replicas, replaced, canaryText(steps, pace.Pauses)
		}
		if _, found, _ := unstructured.NestedMap(o.Object, "spec", "strategy", "blueGreen"); found {
			return replicas, replaced, "blue-green: all new ones beside all old ones"
		}
	}
	return replicas, replaced, rollingText(pace)
}

// canaryText words the steps of a canary, and what they wait for.
func canaryText(steps []any, pauses time.Duration) string {
	text := fmt.Sprintf("canary in %d steps", len(steps))
	if pauses > 0 {
		text += fmt.Sprintf(", which pause for %s at least", pauses)
	}
	endless := 0
	for _, s := range steps {
		step, _ := s.(map[string]any)
		pause, is := step["pause"].(map[string]any)
		if _, timed := pause["duration"]; is && !timed {
			endless++
		}
	}
	if endless > 0 {
		text += fmt.Sprintf("; %d of them until it is promoted", endless)
	}
	return text
}

func rollingText(pace fleet.Rollout) string {
	return fmt.Sprintf("at most %d unavailable, %d extra", pace.MaxUnavailable, pace.MaxSurge)
}
