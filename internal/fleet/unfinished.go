package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cause is why a rollout does not go on by itself.
type Cause string

// The causes.
const (
	CanaryPause    Cause = "CanaryPauseStep" // a step of a canary that waits
	BlueGreenPause Cause = "BlueGreenPause"  // the new revision of a blue-green Rollout waits to be promoted
	Inconclusive   Cause = "Inconclusive"    // an analysis or experiment did not decide
	PausedByPerson Cause = "Paused"          // spec.paused
	Aborted        Cause = "Aborted"
	Degraded       Cause = "Degraded" // the workload's own controller gave up
	Partition      Cause = "Partition"
	OnDelete       Cause = "OnDelete"
	NotKnownCause  Cause = "Unknown" // it may be going on
)

// Partial is a rollout that may stay as it is for ever, as its workload tells of it: one of Argo's Rollouts, a StatefulSet
// with a partition, a set whose pods are replaced when they are deleted, a paused Deployment.
type Partial struct {
	// Revisions are those that have pods, in any order.
	Revisions []RevisionPods
	// Cause is why it does not go on by itself, and Why the same in words.
	Cause Cause
	Why   string
	// Step is the one that a canary is at, counted from 1, of so many Steps; 0 where there are none.
	Step, Steps int
	// Weight is the percentage that a canary is meant to have; nil where there is none.
	Weight *int
	// Owner is who has to do with the workload, for people; "" when nothing tells.
	Owner string
	// After is how long it may take before it counts as unfinished; 0 for as long as it likes.
	After time.Duration
}

// RevisionPods is a revision of a workload with its pods.
type RevisionPods struct {
	// Name is that of its ReplicaSet or ControllerRevision.
	Name string
	// Number tells the order of revisions: the newest has the highest.
	Number int64
	Pods   int
	// Since is when it became the newest revision, as nearly as is known; not earlier than any other revision was made.
	Since time.Time
}

// Unfinished is a rollout that leaves more than one revision running.
type Unfinished struct {
	// Revision is the newer one, Pods are its pods, and All the pods of every revision.
	Revision  string
	Number    int64
	Pods, All int
	Cause     Cause
	Why       string
	// Step, Steps and Weight as in [Partial].
	Step, Steps int
	Weight      *int
	Owner       string
	// Since is when the newer revision came, After as in [Partial], and Overdue says that this is longer ago than that.
	Since   time.Time
	After   time.Duration
	Overdue bool
}

// UnfinishedAt judges a rollout at a moment; nil when no more than one revision has pods. Its age is that of the newer
// revision: a step, a pause or a scale-out in between does not begin it anew.
func (p *Partial) UnfinishedAt(now time.Time) *Unfinished {
	if p == nil {
		return nil
	}
	running := slices.DeleteFunc(slices.Clone(p.Revisions), func(r RevisionPods) bool { return r.Pods <= 0 })
	if len(running) < 2 {
		return nil
	}
	newer := slices.MaxFunc(running, func(a, b RevisionPods) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), a.Since.Compare(b.Since))
	})
	u := &Unfinished{
		Revision: newer.Name, Number: newer.Number, Pods: newer.Pods, Cause: p.Cause, Why: p.Why,
		Step: p.Step, Steps: p.Steps, Weight: p.Weight, Owner: p.Owner, Since: newer.Since, After: p.After,
	}
	for _, r := range running {
		u.All += r.Pods
	}
	u.Overdue = p.After > 0 && !newer.Since.IsZero() && now.Sub(newer.Since) >= p.After
	return u
}

// Text words it: "revision 3 has 1 of 5 pods, at step 1 of 2, weight 20: the canary pauses …; it belongs to Helm release shop".
func (u *Unfinished) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "revision %d (%s) has %d of %d pods", u.Number, u.Revision, u.Pods, u.All)
	if u.Steps > 0 {
		fmt.Fprintf(&b, ", at step %d of %d", u.Step, u.Steps)
	}
	if u.Weight != nil {
		fmt.Fprintf(&b, ", weight %d", *u.Weight)
	}
	if u.Why != "" {
		b.WriteString(": " + u.Why)
	}
	if u.Owner != "" {
		b.WriteString("; it belongs to " + u.Owner)
	}
	return b.String()
}
