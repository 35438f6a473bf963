package v1

import "time"

// Explanation is what `tidemark explain KIND/NAME -o json` prints.
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, by the API server's clock.
	Time  time.Time `json:"time"`
	Fleet Fleet     `json:"fleet"`
	// References are all uses of config objects by the pod template.
	References []Reference `json:"references"`
	// Ignored are objects that are marked to be ignored.
	Ignored []string `json:"ignored,omitempty"`
	// Next is what a pod that starts now would read, key by key, and how that differs from what pods run with. What the pod
	// template pins it would read as it is pinned, else as it is applied.
	Next []NextKey `json:"next"`
	// LastAction is what Tidemark did last to the workload; absent when nothing.
	LastAction *LastAction `json:"lastAction,omitempty"`
	// Hold is a rollout that is wanted and held; absent when none is.
	Hold *Hold `json:"hold,omitempty"`
	// Events are Tidemark's recent Events of the workload, oldest first.
	Events  []Event  `json:"events,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// Reference is one use of a config object by a pod template.
type Reference struct {
	Object string `json:"object"`
	// Source is "env", "envFrom", "volume", "projected", "named", "imagePullSecret", "volumeDriver" or "ephemeral"; the last three do not
	// roll.
	Source string `json:"source"`
	Rolls  bool   `json:"rolls"`
	// Container is absent for uses of the whole pod.
	Container string `json:"container,omitempty"`
	Role      string `json:"role,omitempty"`
	// Keys are the keys read; absent for all.
	Keys     []string `json:"keys,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	// Detail says where it appears: the prefix, the variable, the mount path.
	Detail string `json:"detail,omitempty"`
}

// NextKey is one key that a pod which starts now would read. A key that differs in two ways has two entries.
type NextKey struct {
	Object string `json:"object"`
	// Key is absent where it is not known which keys there are, or what pods loaded of the object.
	Key string `json:"key,omitempty"`
	// Change from what running pods loaded: "added", "removed", "changed" or "unknown"; absent when there is none.
	Change string `json:"change,omitempty"`
	// Pods is how many running pods see the change.
	Pods int `json:"pods,omitempty"`
	// Was is the value with which those pods run, of ConfigMaps only; absent where WasNote says why it is not shown.
	Was     *string `json:"was,omitempty"`
	WasNote string  `json:"wasNote,omitempty"`
	// KeptIn is the name of a copy, with the value that a pod of those runs with; absent where none is known.
	KeptIn string `json:"keptIn,omitempty"`
	// Value is the value that it would read of a ConfigMap's key, cut to a bounded length; absent for Secrets, for what looks
	// like a credential, and where there is none.
	Value string `json:"value,omitempty"`
	// Note says why a value is not shown.
	Note string `json:"note,omitempty"`
	// Why says why it is not known what pods loaded.
	Why string `json:"why,omitempty"`
}

// LastAction is something that Tidemark did to a workload.
type LastAction struct {
	Time time.Time `json:"time"`
	// Action is "stamp" or "record".
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Changed are the objects that made it act.
	Changed []string `json:"changed,omitempty"`
}

// Hold is a rollout that is wanted and held.
type Hold struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Event is an Event of Tidemark's.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
}
