package fleet

import (
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Verdict is the state of a fleet.
type Verdict string

// The verdicts. One always comes with since-when and why.
const (
	InStep     Verdict = "in-step"     // every pod loaded what is applied
	Rolling    Verdict = "rolling"     // more than one version, within the rollout budget
	Split      Verdict = "split"       // more than one version, beyond the rollout budget
	Dormant    Verdict = "dormant"     // one version, older than the applied one
	RolledBack Verdict = "rolled-back" // deliberately on an older stamp
	Waiting    Verdict = "waiting"     // a required object or key is missing
	Held       Verdict = "held"        // a wanted rollout is held: paused, storm
	Unpinned   Verdict = "unpinned"    // pods do not read what their pins say

	LeftUnfinished Verdict = "unfinished" // a rollout leaves more than one revision running, for longer than it may
	Unknown        Verdict = "unknown"    // the evidence does not decide
)

// Evidence is how it is known what a container loaded, strongest first.
type Evidence string

// The kinds of evidence.
const (
	Pinned       Evidence = "pinned"   // the pod reads a copy that never changes, or was pinned to an absence
	Reported     Evidence = "reported" // the program says so itself
	Inferred     Evidence = "inferred"
	NotKnown     Evidence = "unknown"
	ByWriteTimes Evidence = "write-times" // nothing installed: managed fields against start times; proves nothing
)

// Loaded is what one container loaded of one object.
type Loaded struct {
	Object workload.Object
	// Digest is the digest of what the container consumes of the object; "" when unknown.
	Digest digest.Digest
	// Applied is the same digest of the applied content; "" when unknown. Of a required object that is gone it is that of the
	// copy which the template pins.
	Applied  digest.Digest
	Evidence Evidence
	// Snapshot is the name of what the container reads in place of the object; "" when it reads the object itself.
	Snapshot string
	// Why explains the evidence in one sentence.
	Why string
	// Contradiction is what the program says otherwise than weaker or stronger evidence tells; "" when nothing.
	Contradiction string
	// Since is the earliest moment at which it can have been read.
	Since time.Time
	// Changed is since when the object has not been what was loaded; zero when it is, or when that is not known.
	Changed time.Time
	// Live says that the program reloads the object by itself, so that it makes no pod behind.
	Live bool
}

// Behind reports whether something else than the applied content is known to have been loaded.
func (l Loaded) Behind() bool { return digest.Comparable(l.Digest, l.Applied) && l.Digest != l.Applied }

// Current reports whether the applied content is known to have been loaded.
func (l Loaded) Current() bool { return l.Digest != "" && l.Digest == l.Applied }

// ContainerResult is what one container loaded.
type ContainerResult struct {
	Name    string
	Started time.Time
	Loaded  []Loaded
}

// PodResult is what one pod loaded.
type PodResult struct {
	Name, Node, Revision string
	Ready                bool
	// Version identifies the combination of loaded digests among the fleet's pods; "" when unknown.
	Version string
	// Behind says that the pod is known to run another version than the applied one.
	Behind bool
	// Unmatched are the objects that the pod's pins name and that it reads by their own names all the same.
	Unmatched  []workload.Object
	Containers []ContainerResult
}

// VersionCount is how many pods run one loaded version.
type VersionCount struct {
	// Version as in PodResult; "" for pods whose version is unknown.
	Version string
	// Applied says that this version is the applied one, and Behind that it is known not to be.
	Applied, Behind bool
	// Since is from when on all of it surely was applied, as far back as is remembered; zero when that is not known.
	Since time.Time
	Pods  int
}

// Result is what is known of a fleet.
type Result struct {
	Verdict Verdict
	// Possibly is the verdict that write times hint at where nothing is proved ("" or Dormant).
	Possibly Verdict
	// Since is when the verdict began, zero when not known.
	Since time.Time
	// Reason says why in one sentence, with names.
	Reason   string
	HeldBack []workload.Object
	// Unfinished is a rollout that leaves more than one revision running; nil when there is none.
	Unfinished *Unfinished
	// Behind counts the pods known to run another version than the applied one.
	Behind int
	// Changed is since when something else is applied than pods behind run with: the age of the oldest change that has not reached
	// them. Zero when none is behind, or when that is not known.
	Changed time.Time
	// Differing counts the consumed keys of which some pod is known to have loaded something else than is applied.
	Differing int
	// Said is what is to be said of what programs report: that it contradicts other evidence, or cannot be used. It is in the
	// Reason too.
	Said []string
	// Versions counts the running pods by version, the applied one first.
	Versions []VersionCount
	// Pods are the fleet's pods in the order given, without those that have run to their end.
	Pods []PodResult
}
