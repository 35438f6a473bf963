package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/notify"
)

// runbooks is where the pages of docs/runbooks are published.
const runbooks = "https://tidemark.dev/docs/runbooks/"

// concern is why a verdict calls for attention. Its alert is the one of deploy/alerts for the same thing.
type concern struct {
	alert    string
	severity notify.Severity
	// after is for how long the verdict must stand, as for the alert of the same name; zero where it has waited already. A
	// split that a drain makes takes no budget: a minute later the drain is over, and what its pods run is known.
	after time.Duration
	// words say what it means, for the title.
	words string
}

// verdictOf is the verdict by which a fleet calls for attention. A change that pods are known not to have read lies dormant, also where
// of some pod it is not known what it runs: one odd pod must not silence it.
func verdictOf(r fleet.Result) fleet.Verdict {
	if r.Verdict == fleet.Unknown && r.Behind > 0 {
		return fleet.Dormant
	}
	return r.Verdict
}

// concernOf is why a verdict calls for attention; nil when it does not.
func concernOf(v fleet.Verdict, dormantAfter time.Duration) *concern {
	switch v {
	case fleet.Split:
		return &concern{alert: "TidemarkFleetSplit", severity: notify.Page, after: time.Minute, words: "runs more than one configuration for longer than a rollout should take"}
	case fleet.Dormant:
		return &concern{alert: "TidemarkChangeDormant", severity: notify.Note, after: dormantAfter, words: "has a change that takes effect at the next start of a pod, whenever that is"}
	case fleet.LeftUnfinished:
		return &concern{alert: "TidemarkRolloutUnfinished", severity: notify.Note, words: "has a rollout that was begun and not finished"}
	case fleet.Waiting:
		return &concern{alert: "TidemarkWorkloadWaiting", severity: notify.Page, after: 5 * time.Minute, words: "requires configuration that is not there, so no pod can start"}
	case fleet.Held:
		return &concern{alert: "TidemarkRolloutHeld", severity: notify.Note, after: 15 * time.Minute, words: "has a rollout that is held"}
	case fleet.Unpinned:
		return &concern{alert: "TidemarkPinsNotInForce", severity: notify.Page, after: 5 * time.Minute, words: "has pods that do not read what their pins say, so a rollback would not bring their configuration back"}
	case fleet.InStep, fleet.Rolling, fleet.RolledBack, fleet.Unknown:
	}
	return nil
}

// concerns are what fleets call for attention for, look by look.
type concerns struct {
	notifier     *notify.Notifier
	dormantAfter time.Duration
	// values are the values, old and new, of a workload's keys that the next start changes, where they may be shown; nil for none.
	values func(context.Context, cluster.Workload) []notify.Fact
	// first is when a verdict was first seen of which it is not known since when it stands.
	first map[string]time.Time
	// split are the fleets, by how their keys begin, that were split when it was last known what they run.
	split map[string]bool
}

// fleetsSource is the name of the set of all that fleets call for attention for.
const fleetsSource = "fleets"

// tell tells people what one look found. Where the verdict is not known, what was told stays as it is; so of the kinds left out.
func (c *concerns) tell(ctx context.Context, at time.Time, sight []judged, leftOut []cluster.Kind) {
	if c.notifier == nil {
		return
	}
	unseen := func(key string) bool {
		return slices.ContainsFunc(leftOut, func(k cluster.Kind) bool { return strings.HasPrefix(key, kindPrefix(k)) })
	}
	first, split := c.first, c.split
	holds, unknown := c.holds(ctx, at, sight)
	rolling := map[string]bool{}
	for _, j := range sight {
		rolling[keyPrefix(j.Target)] = j.result.Verdict == fleet.Rolling
	}
	// While pods are replaced, by a rollout or because a node is drained, it is open whether the change lies dormant afterwards.
	undecided := func(key string) bool {
		i := strings.LastIndex(key, "/") + 1
		return unseen(key) || unknown[key[:i]] || rolling[key[:i]] && key[i:] == string(fleet.Dormant)
	}
	carry(c.first, first, unseen)
	carry(c.split, split, unseen)
	c.notifier.Sync(fleetsSource, holds, undecided)
}

// carry takes over from an earlier look what is noted under the keys of which this one saw nothing.
func carry[V any](into, earlier map[string]V, unseen func(key string) bool) {
	for key, v := range earlier {
		if unseen(key) {
			into[key] = v
		}
	}
}

// holds are the messages of what holds, and the beginnings of the keys of which that is not known.
func (c *concerns) holds(ctx context.Context, at time.Time, sight []judged) (holds []notify.Message, unknown map[string]bool) {
	first, split := map[string]time.Time{}, map[string]bool{}
	unknown = map[string]bool{}
	for _, j := range sight {
		prefix, verdict := keyPrefix(j.Target), verdictOf(j.result)
		unknown[prefix] = j.result.Verdict == fleet.Unknown
		split[prefix] = verdict == fleet.Split || unknown[prefix] && c.split[prefix]
		if unknown[prefix] && split[prefix] {
			continue // some have what is applied, so the change does not lie dormant again
		}
		why := concernOf(verdict, c.dormantAfter)
		if why == nil {
			continue
		}
		key := prefix + string(verdict)
		since := c.since(key, j.result, at)
		if j.result.Since.IsZero() {
			first[key] = since
		}
		m := messageOf(key, why, j)
		m.Early = at.Sub(since) < why.after
		if !m.Early && c.values != nil && len(j.Shown) > 0 && !c.notifier.Holds(key) {
			m.Facts = append(m.Facts, c.values(ctx, j.Workload)...)
		}
		holds = append(holds, m)
	}
	c.first, c.split = first, split
	return holds, unknown
}

// since is when the verdict began, or was first seen.
func (c *concerns) since(key string, r fleet.Result, at time.Time) time.Time {
	if verdictOf(r) == fleet.Dormant && !r.Changed.IsZero() {
		return r.Changed
	}
	if !r.Since.IsZero() {
		return r.Since
	}
	if first, ok := c.first[key]; ok {
		return first
	}
	return at
}

// keyPrefix begins the keys of a workload's messages.
func keyPrefix(t cluster.Target) string {
	return kindPrefix(t.Kind) + t.Namespace + "/" + t.Name + "/"
}

// kindPrefix begins the keys of the messages of all workloads of a kind.
func kindPrefix(k cluster.Kind) string { return "fleet/" + k.GroupKind().String() + "/" }

// messageOf says what the verdict on a fleet means, with names, digests and counts.
func messageOf(key string, why *concern, j judged) notify.Message {
	kind := j.Kind.GroupVersionKind.Kind
	m := notify.Message{
		Key: key, Alert: why.alert, Severity: why.severity, Owner: j.Owner, Since: j.result.Since, Runbook: runbooks + why.alert + ".md",
		Title:  fmt.Sprintf("%s in namespace %s %s", j.Target, j.Namespace, why.words),
		Labels: map[string]string{"kind": kind, "namespace": j.Namespace, "name": j.Name},
		Facts: []notify.Fact{
			{Name: "verdict", Value: string(j.result.Verdict) + ": " + j.result.Reason},
		},
	}
	if versions := versionsOf(j.result); versions != "" {
		m.Facts = append(m.Facts, notify.Fact{Name: "pods", Value: versions})
	}
	if j.result.Differing > 0 {
		m.Facts = append(m.Facts, notify.Fact{Name: "keys that differ", Value: fmt.Sprint(j.result.Differing)})
	}
	if !j.result.Changed.IsZero() {
		m.Facts = append(m.Facts, notify.Fact{Name: "changed", Value: j.result.Changed.UTC().Format(time.RFC3339)})
	}
	m.Facts = append(m.Facts, notify.Fact{Name: "next", Value: fmt.Sprintf("kubectl tidemark explain %s -n %s", j.Target, j.Namespace)})
	return m
}

// versionsOf words how many pods run which version: "6 applied (mll5k4iq), 18 older (uyh5ezi4)".
func versionsOf(r fleet.Result) string {
	f := measured{result: r}
	counts, _ := f.pods()
	slices.SortStableFunc(counts, func(a, b podCount) int {
		return cmp.Compare(boolean(b.state == podApplied), boolean(a.state == podApplied))
	})
	var words []string
	for _, c := range counts {
		text := fmt.Sprintf("%d %s", c.pods, c.state)
		if c.version != "" {
			text += " (" + c.version + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}
