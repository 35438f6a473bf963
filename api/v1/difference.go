package v1

// Difference is what `tidemark diff KIND/NAME -o json` prints.
type Difference struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Workload   WorkloadReference `json:"workload"`
	From       DifferenceSide    `json:"from"`
	To         DifferenceSide    `json:"to"`
	// Differs says whether there is any difference below.
	Differs bool `json:"differs"`
	// Images that differ.
	Images []ImageDifference `json:"images"`
	// Template are the fields of the pod template that differ, but for images and what controllers and Tidemark add.
	Template []FieldDifference `json:"template"`
	// Configuration are the config objects that differ.
	Configuration []ObjectDifference `json:"configuration"`
	// Remarks say what could not be compared, and why.
	Remarks []string `json:"remarks,omitempty"`
}

// DifferenceSide is one of the two that are compared.
type DifferenceSide struct {
	// Revision is the number of a revision; absent for what is applied, and for a template that has no number yet.
	Revision int64 `json:"revision,omitempty"`
	Current  bool  `json:"current,omitempty"`
	// Applied says that it is the present template with what is applied now.
	Applied bool `json:"applied,omitempty"`
}

// ImageDifference is a container whose image differs; From or To is absent where there is no such container.
type ImageDifference struct {
	Container string `json:"container"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

// FieldDifference is a field of the pod template that differs.
type FieldDifference struct {
	// Path leads to it, with the items of lists by what tells them apart: "spec.containers[app].resources.limits.cpu".
	Path string `json:"path"`
	// From and To are the values, anything but text as JSON; absent where there is none, and where they are not shown.
	From *string `json:"from,omitempty"`
	To   *string `json:"to,omitempty"`
	// Note says why the values are not shown.
	Note string `json:"note,omitempty"`
}

// ObjectDifference is a config object that differs.
type ObjectDifference struct {
	// Object as in [RevisionObject].
	Object string `json:"object"`
	// From and To are where each side reads it: "copy NAME", "applied", "absent" or "not read".
	From string `json:"from"`
	To   string `json:"to"`
	// Keys that differ.
	Keys []KeyDifference `json:"keys"`
	// Note says why keys are not compared.
	Note string `json:"note,omitempty"`
}

// KeyDifference is a key that differs.
type KeyDifference struct {
	Key string `json:"key"`
	// Change is "added", "removed" or "changed".
	Change string `json:"change"`
	// Read says that one of the two templates reads the key.
	Read bool `json:"read"`
	// From and To are the values of a ConfigMap's key; absent for Secrets, for what looks like a credential, for what is not
	// text, and where there is none.
	From *string `json:"from,omitempty"`
	To   *string `json:"to,omitempty"`
	// Note says why values, or lines of them, are not shown.
	Note string `json:"note,omitempty"`
}
