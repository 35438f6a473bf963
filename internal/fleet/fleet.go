// Package fleet judges how far the pods of a workload are from the configuration that is applied.
//
// What a container loaded is what its pod is pinned to, or is inferred from when it can have read its configuration, an
// interval, and from what the history of each object says of that interval. Where that does not decide, nothing is claimed; docs/design/0003-evidence.md
// has the rules with their reasons.
package fleet

import (
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Settings are the margins of inference: bounds on what cannot be seen. A margin that is zero has its default. Where the
// bounds hold, nothing that is said to be known is wrong; wider margins make more unknown, and nothing else.
type Settings struct {
	// RefreshLag is how long a mounted file may lag behind what its kubelet could read: the sync period and the cache.
	// Default 2m.
	RefreshLag time.Duration
	// ReadLag is how stale what a connected kubelet reads of an object may be. Default 2s. Where pods start less than this
	// after the content that their stamp was written for, what they read is not known.
	ReadLag time.Duration
	// CutLag is how stale it may be at a later start in a pod: for so long a node may be cut off before its status tells,
	// and for so long a kubelet may go on with its old cache after it is connected again. Default 1m.
	CutLag time.Duration
	// ResumeLag is how long after a silence of its node a kubelet may go on with what it knew before: so long may it wait, at
	// most, before it tries anew to watch an object. Default 1m.
	ResumeLag time.Duration
	// Skew is how far any two clocks of nodes, API server and controller may be apart. Default 1s.
	Skew time.Duration
	// LoadTime is how long after its start a program may still read its files. Default 5s.
	LoadTime time.Duration
}

// WithDefaults gives margins that are not set their defaults.
func (s Settings) WithDefaults() Settings {
	return s.Or(Settings{
		RefreshLag: 2 * time.Minute, ReadLag: 2 * time.Second, CutLag: time.Minute, ResumeLag: time.Minute,
		Skew: time.Second, LoadTime: 5 * time.Second,
	})
}

// Or gives margins that are not set those of others.
func (s Settings) Or(others Settings) Settings {
	for _, m := range []struct {
		margin *time.Duration
		other  time.Duration
	}{
		{&s.RefreshLag, others.RefreshLag},
		{&s.ReadLag, others.ReadLag},
		{&s.CutLag, others.CutLag},
		{&s.ResumeLag, others.ResumeLag},
		{&s.Skew, others.Skew},
		{&s.LoadTime, others.LoadTime},
	} {
		if *m.margin <= 0 {
			*m.margin = m.other
		}
	}
	return s
}

// Pod is one pod of a fleet.
type Pod struct {
	Name, UID, Node string
	// Revision is the pod's revision: the pod-template-hash or controller-revision-hash.
	Revision string
	Created  time.Time
	// Stamp is the stamp in the pod's annotations.
	Stamp string
	// InitEnded is when the last init container ended; zero when there is none or it has not ended.
	InitEnded          time.Time
	Ready, Terminating bool
	// Phase and Waiting are the pod's phase and the first waiting reason of its containers, for people.
	Phase, Waiting string
	// NodeReadySince is since when the pod's node is Ready; zero when it is not, or not known.
	NodeReadySince time.Time
	// Silences are the times for which that node gave no sign of life, oldest first, as far as somebody watched; one that lasts has
	// no To.
	Silences []history.Span
	// Unmatched are the objects that the pod's pins name, and that its spec references by their own names all the same,
	// sorted.
	Unmatched []workload.Object
	// PinsProblem is why the pod's pins cannot be read, so that it reads what is applied; "" when they can, or there are none.
	PinsProblem string
	// ReportProblem is why what the pod's program says cannot be used; "" when it can, or was not asked for.
	ReportProblem string
	Containers    []Container
}

// Container is one container of a pod.
type Container struct {
	Name string
	Role workload.Role
	// Started is when the present run started, to the second; zero when it is not running. An init container that has
	// ended keeps the start of its last run.
	Started time.Time
	// Restarts counts the runs before this one.
	Restarts int32
	// PreviousEnded is when the run before ended; zero when there was none or it is not known.
	PreviousEnded time.Time
	// Uses are what this container consumes of objects as they are applied, Pinned what it consumes through its pod's pins.
	Uses   []workload.Consumption
	Pinned []PinnedUse
	// Report is what the program says that it loaded; nil where it says nothing, or was not asked.
	Report *Report
}

// Object is a config object of the fleet.
type Object struct {
	// Use is what the workload's present template consumes of it.
	Use workload.Consumption
	// Applied is the present content; nil when it could not be read (Problem says why).
	Applied *digest.Content
	// Log is what is remembered of the object; empty when nothing is.
	Log history.Log
	// Values are values of a ConfigMap, and of its snapshots, that were read, by their sums.
	Values map[digest.Sum]string
	// LogTo is until when the log is known to be complete. For who has just read the object and found the log's last
	// resourceVersion: the moment before that read. For who follows the object: now less how long a change may take to
	// arrive. Else: the leader's last sign of life, less that and less how long it may take to save what it saw. Zero when
	// there is no log.
	LogTo time.Time
	// Written is the newest write to consumed keys by managed fields, with its manager; zero when none is recorded.
	Written   time.Time
	WrittenBy string
	// Live says that the program reloads the object by itself.
	Live bool
	// Problem is why the object could not be read, for people.
	Problem string
}

// Fleet is all that [Judge] needs to know of a workload. It holds no clock and makes no calls.
type Fleet struct {
	// Now is the moment to judge: no later than the first of the reads that the rest comes from.
	Now       time.Time
	Namespace string
	Mode      stamp.Mode
	// Record is what Tidemark left on the workload; nil when nothing.
	Record *stamp.Record
	// Stamp is the stamp on the workload's pod template.
	Stamp string
	// Pins are those on the workload's pod template; none when it carries none that can be read.
	Pins snapshot.Pins
	// Snapshots are what the pins of the template and of the pods name, each under its own name.
	Snapshots map[workload.Object]Snapshot
	// Objects are what the workload's template consumes, and what pods of older revisions do as far as it was read.
	Objects []Object
	// Ignored are objects that are no configuration by their own word: as if no pod used them.
	Ignored []workload.Object
	Pods    []Pod
	// Paused says that Tidemark is paused for the workload, with who and when.
	Paused   bool
	PausedBy string
	// Reloads says that the program re-reads its files.
	Reloads bool
	// Installed says that a controller keeps (or kept) history here, for people.
	Installed bool
	// Budget is how long a rollout may take: see [Budget].
	Budget time.Duration
	// RolloutDone says that the workload's own controller says its rollout is done: every pod is of the newest revision.
	RolloutDone bool
	// Stuck is why the workload does not roll although its template changed (OnDelete, partition, spec.paused), for people.
	Stuck string
	// Partial is a rollout that may stay as it is; nil when there is none.
	Partial  *Partial
	Settings Settings
}

func (f *Fleet) object(o workload.Object) *Object {
	for i := range f.Objects {
		if f.Objects[i].Use.Object == o {
			return &f.Objects[i]
		}
	}
	return nil
}
