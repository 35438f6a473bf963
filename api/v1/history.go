package v1

import "time"

// AnnotationSeenAvailable lists, on a workload, the revisions of which Tidemark saw a pod that was available, as the values
// of the label that tells the revision's pods, comma separated, the latest last. Kubernetes keeps no record of it, and
// `tidemark rollback` needs it to pass over a revision that nobody ever ran.
const AnnotationSeenAvailable = Domain + "/seen-available"

// FieldManagerRollback is the field manager under which `tidemark rollback` writes, with the rights of whoever calls it.
const FieldManagerRollback = "tidemark-rollback"

// Kinds of the documents that the command line prints of revisions.
const (
	KindRevisionList = "RevisionList"
	KindDifference   = "Difference"
	KindRollback     = "Rollback"
)

// RevisionList is what `tidemark history KIND/NAME -o json` prints.
type RevisionList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, by the API server's clock.
	Time     time.Time         `json:"time"`
	Workload WorkloadReference `json:"workload"`
	// Mode is "observe", "roll" or "pin".
	Mode string `json:"mode"`
	// Items are the retained revisions, lowest number first.
	Items []Revision `json:"items"`
	// Remarks say what could not be read, and what is unknown because of it.
	Remarks []string `json:"remarks,omitempty"`
}

// Rollback is what `tidemark rollback KIND/NAME -o json` prints once everything is written.
type Rollback struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Workload   WorkloadReference `json:"workload"`
	// DryRun is "client" or "server" when nothing was written; absent otherwise.
	DryRun string `json:"dryRun,omitempty"`
	// Unchanged says that the workload was at the revision already.
	Unchanged bool `json:"unchanged,omitempty"`
	// From is the revision before; absent when the present template was none yet.
	From *Revision `json:"from,omitempty"`
	To   Revision  `json:"to"`
	// Sources are the objects that have the content of a copy again.
	Sources []RestoredSource `json:"sources,omitempty"`
	// Remarks say what was passed over, and what one should know.
	Remarks []string `json:"remarks,omitempty"`
}

// RestoredSource is a config object that has the content of a copy again.
type RestoredSource struct {
	// Object is "configmap/NAMESPACE/NAME" or "secret/NAMESPACE/NAME", Copy the name of the copy.
	Object string `json:"object"`
	Copy   string `json:"copy"`
}

// Revision is one retained revision of a workload.
type Revision struct {
	// Revision is its number; absent until the workload's controller has numbered it.
	Revision int64 `json:"revision,omitempty"`
	// Former are numbers that it had before somebody went back to it.
	Former []int64 `json:"former,omitempty"`
	// Name is that of the ReplicaSet or ControllerRevision; absent until there is one.
	Name    string    `json:"name,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Current says that it is the workload's present template.
	Current     bool   `json:"current"`
	ChangeCause string `json:"changeCause,omitempty"`
	// Stamp is the stamp on its pod template.
	Stamp  string          `json:"stamp,omitempty"`
	Images []RevisionImage `json:"images"`
	// Configuration is what its pods read.
	Configuration []RevisionObject `json:"configuration"`
	// Pods are counted; absent where they could not be.
	Pods *RevisionPods `json:"pods,omitempty"`
	// Available is "available" when a pod of it is, or was seen to be, available, "never" when it never had a pod, and
	// else "unknown"; Evidence is what tells.
	Available string `json:"available"`
	Evidence  string `json:"evidence"`
	// Reach is "in-full" when its pods would read the copies that it names if it came back, "not-pinned" when they would read
	// what is applied, "in-part" when it pins some ConfigMaps and others not, "out-of" when a copy is gone, else "unknown".
	Reach string `json:"reach"`
	// Why explains a reach that is not in full.
	Why string `json:"why,omitempty"`
}

// RevisionImage is what one container of a revision runs.
type RevisionImage struct {
	Container string `json:"container"`
	Image     string `json:"image"`
}

// RevisionObject is one config object that the pods of a revision read.
type RevisionObject struct {
	// Object is "configmap/NAMESPACE/NAME" or "secret/NAMESPACE/NAME".
	Object string `json:"object"`
	// Copy is the name of the copy that they read in its place; absent where they read what is applied, or nothing.
	Copy string `json:"copy,omitempty"`
	// Absent says that they read nothing, because it was absent when the revision was released.
	Absent bool `json:"absent,omitempty"`
	// CopyRevision numbers the copies of one object from 1 on; absent where not known.
	CopyRevision int64 `json:"copyRevision,omitempty"`
	// State of the copy is "there", "gone", "foreign" when something else has its name, or "unknown".
	State string `json:"state,omitempty"`
	// Changed says that the revision before reads another copy, or reads it elsewhere.
	Changed bool `json:"changed"`
}

// RevisionPods counts pods.
type RevisionPods struct {
	All       int `json:"all"`
	Ready     int `json:"ready"`
	Available int `json:"available"`
}
