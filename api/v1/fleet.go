package v1

import "time"

// APIVersion is the apiVersion of the documents that the command line prints. Fields are added to them within v1, never
// changed or removed. A field that is absent is empty, or not known where its description says so.
const APIVersion = Domain + "/v1"

// Kinds of the documents that the command line prints.
const (
	KindFleetList   = "FleetList"
	KindFleet       = "Fleet"
	KindExplanation = "Explanation"
)

// FleetList is what `tidemark status -o json` prints.
type FleetList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, by the API server's clock.
	Time time.Time `json:"time"`
	// Items are the fleets by namespace, kind and name; of several clusters one after the other.
	Items []Fleet `json:"items"`
	// Contexts are the clusters that were asked for by --contexts, with what is to be said of each; absent without.
	Contexts []FleetContext `json:"contexts,omitempty"`
	// Remarks say what could not be read, and what is unknown because of it, and what is not installed that workloads in mode
	// pin need.
	Remarks []string `json:"remarks,omitempty"`
}

// FleetContext is one of several clusters that were looked at.
type FleetContext struct {
	// Context is its name in the kubeconfig.
	Context string `json:"context"`
	// Time is when it was read, by its API server's clock; absent when it could not be.
	Time time.Time `json:"time,omitzero"`
	// Error is why its fleets are not among the items; absent when they are.
	Error string `json:"error,omitempty"`
	// Remarks as in [FleetList].
	Remarks []string `json:"remarks,omitempty"`
}

// Fleet is the pods of one workload, and how far they are from the configuration that is applied.
type Fleet struct {
	// APIVersion and Kind are set on a fleet that is printed by itself, as --watch does.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`

	// Context names the cluster where several were asked for.
	Context string `json:"context,omitempty"`

	Workload WorkloadReference `json:"workload"`
	// Mode is "observe", "roll" or "pin".
	Mode string `json:"mode"`
	// Paused says where Tidemark is paused for the workload, and by whom; absent when it is not.
	Paused string `json:"paused,omitempty"`
	// Verdict is "in-step", "rolling", "split", "dormant", "rolled-back", "waiting", "held", "unpinned", "unfinished"
	// or "unknown"; in a watch also "gone".
	Verdict string `json:"verdict"`
	// Possibly is "dormant" where nothing is proved, and write times hint that the pods are behind.
	Possibly string `json:"possibly,omitempty"`
	// InStep is what --exit-code counts: false for every verdict but in-step, and unknown without a hint.
	InStep bool `json:"inStep"`
	// Since is when the verdict began; absent when not known.
	Since time.Time `json:"since,omitzero"`
	// Reason says why in one sentence.
	Reason string `json:"reason"`
	// Stamp is the stamp on the pod template.
	Stamp string `json:"stamp,omitempty"`
	// HeldBack are the objects that a rollback left on an older version on purpose.
	HeldBack []string `json:"heldBack,omitempty"`
	// Behind is how many pods are known to run another version than the applied one.
	Behind int `json:"behind"`
	// Versions counts the running pods by loaded version.
	Versions []FleetVersion `json:"versions"`
	// Objects are the config objects that the workload's pods consume.
	Objects []FleetObject `json:"objects"`
	// Pods are the pods, with what each container loaded.
	Pods []FleetPod `json:"pods"`
	// NextStart tells for each revision with running pods what a pod of it would read otherwise, were it to start now, because
	// it is replaced or there are to be more; absent where it would read the same.
	NextStart []NextStart `json:"nextStart,omitempty"`
	// Unfinished is a rollout that need not end by itself and leaves more than one revision running, whether for too long
	// already or not; absent when there is none.
	Unfinished *FleetUnfinished `json:"unfinished,omitempty"`
	// Problems are annotations that could not be heeded.
	Problems []string `json:"problems,omitempty"`
}

// WorkloadReference names a workload.
type WorkloadReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// FleetVersion is how many pods run one loaded version.
type FleetVersion struct {
	// Version identifies the combination of loaded contents; absent when not known.
	Version string `json:"version,omitempty"`
	// Applied says that it is the applied one.
	Applied bool `json:"applied"`
	// Behind says that it is known not to be, also where it is not known which one it is.
	Behind bool `json:"behind"`
	// Since is from when on all of it surely was applied, as far back as is remembered; absent when not known.
	Since time.Time `json:"since,omitzero"`
	Pods  int       `json:"pods"`
}

// FleetObject is a config object that a fleet consumes.
type FleetObject struct {
	// Object is "configmap/NAMESPACE/NAME" or "secret/NAMESPACE/NAME".
	Object string `json:"object"`
	// Applied is the digest of what the workload's template consumes of the present content; absent when not known.
	Applied string `json:"applied,omitempty"`
	// Present says that the object exists; absent when that is not known.
	Present *bool `json:"present,omitempty"`
	// Required says that a pod cannot start without it.
	Required bool `json:"required"`
	// Live says that the program reloads it by itself.
	Live bool `json:"live,omitempty"`
	// Pin is what the pod template has new pods read in place of the object; absent where they read the object itself.
	Pin *FleetPin `json:"pin,omitempty"`
	// Written is the newest write to consumed keys that the object's metadata tells of, and WrittenBy its field manager.
	// They hint, and prove nothing.
	Written   time.Time `json:"written,omitzero"`
	WrittenBy string    `json:"writtenBy,omitempty"`
	// Problem is why its content is not known.
	Problem string `json:"problem,omitempty"`
}

// FleetPin is what a pod template pins an object to.
type FleetPin struct {
	// Snapshot is the name of the copy; "absent.tidemark.dev" for an object that there was none of.
	Snapshot string `json:"snapshot"`
	// Digest of what the template consumes of the copy; absent when not known. It compares with [FleetObject].Applied.
	Digest string `json:"digest,omitempty"`
	// Created is when the copy was made; absent when not known.
	Created time.Time `json:"created,omitzero"`
	// Problem is why the digest is not known.
	Problem string `json:"problem,omitempty"`
}

// FleetPod is one pod.
type FleetPod struct {
	Name     string `json:"name"`
	Node     string `json:"node,omitempty"`
	Revision string `json:"revision,omitempty"`
	Ready    bool   `json:"ready"`
	// Version as in [FleetVersion]; absent when not known.
	Version string `json:"version,omitempty"`
	// Behind says that the pod is known to run another version than the applied one.
	Behind bool `json:"behind"`
	// Unmatched are the objects, as in [FleetObject], that the pod's pins name and that it reads by their own names all the
	// same.
	Unmatched  []string         `json:"unmatched,omitempty"`
	Containers []FleetContainer `json:"containers"`
}

// FleetContainer is one container of a pod.
type FleetContainer struct {
	Name    string        `json:"name"`
	Started time.Time     `json:"started,omitzero"`
	Loaded  []FleetLoaded `json:"loaded"`
}

// FleetLoaded is what one container loaded of one object.
type FleetLoaded struct {
	// Object as in [FleetObject].
	Object string `json:"object"`
	// Digest of what the container consumes, as it loaded it; absent when not known. Digests compare only where the part
	// before the hyphen is the same.
	Digest string `json:"digest,omitempty"`
	// Applied is the same digest of the present content; absent when not known. Of a required object that is gone while the
	// template pins it, it is that of the copy.
	Applied string `json:"applied,omitempty"`
	// Snapshot is the name of what the container reads in place of the object: of a copy, or "absent.tidemark.dev"; absent
	// where it reads the object itself.
	Snapshot string `json:"snapshot,omitempty"`
	// Evidence is "pinned", "reported", "inferred", "write-times" or "unknown".
	Evidence string `json:"evidence"`
	// Why explains the evidence.
	Why string `json:"why"`
	// Contradiction is what the program says otherwise than other evidence tells; absent when nothing.
	Contradiction string `json:"contradiction,omitempty"`
	// Since is the earliest moment at which it can have been read.
	Since time.Time `json:"since,omitzero"`
}

// NextStart is what a pod of one revision would read otherwise than those of it that run, were it to start now.
type NextStart struct {
	// Revision as in [FleetPod].
	Revision string `json:"revision,omitempty"`
	// Pods is how many pods of the revision run.
	Pods int            `json:"pods"`
	Keys []NextStartKey `json:"keys"`
}

// NextStartKey is one key that would be read otherwise. Pods that run with different values have an entry for each.
type NextStartKey struct {
	// Object as in [FleetObject].
	Object string `json:"object"`
	// Key is absent for pods of which it is not known what they loaded of the object, or what the next one would.
	Key string `json:"key,omitempty"`
	// Change is "added", "removed", "changed" or "unknown".
	Change string `json:"change"`
	// Pods is how many running pods of the revision it would be otherwise for.
	Pods int `json:"pods"`
	// From is the value that those run with, To the one that would be read, both of ConfigMaps only and cut to a bounded
	// length. Absent where the key is not there, and where FromNote and ToNote say why the value is not shown.
	From     *string `json:"from,omitempty"`
	FromNote string  `json:"fromNote,omitempty"`
	To       *string `json:"to,omitempty"`
	ToNote   string  `json:"toNote,omitempty"`
	// Blocks says that the pod would not start, because something that it requires is missing.
	Blocks bool `json:"blocks,omitempty"`
	// Why says why it is not known.
	Why string `json:"why,omitempty"`
}

// FleetUnfinished is a rollout that leaves more than one revision running.
type FleetUnfinished struct {
	// Revision is the newer one, by the name of its ReplicaSet or ControllerRevision, and Number its number.
	Revision string `json:"revision"`
	Number   int64  `json:"number"`
	// Pods are those of the newer revision, AllPods those of every revision.
	Pods    int `json:"pods"`
	AllPods int `json:"allPods"`
	// Cause is why it does not go on by itself: "CanaryPauseStep", "BlueGreenPause", "Inconclusive", "Paused" (by a
	// person), "Aborted", "Degraded", "Partition", "OnDelete", or "Unknown" where it may be going on. Why is the same in words.
	Cause string `json:"cause"`
	Why   string `json:"why,omitempty"`
	// Step is the one that a canary is at, counted from 1, of so many Steps; absent where there are none.
	Step  int `json:"step,omitempty"`
	Steps int `json:"steps,omitempty"`
	// Weight is the percentage that a canary is meant to have; absent where there is none.
	Weight *int `json:"weight,omitempty"`
	// Owner is who has to do with the workload, for people; absent when nothing tells.
	Owner string `json:"owner,omitempty"`
	// Since is when the newer revision came.
	Since time.Time `json:"since,omitzero"`
	// After is how long it may take, as a Go duration; absent when there is no limit. Overdue says that it took longer.
	After   string `json:"after,omitempty"`
	Overdue bool   `json:"overdue"`
}
