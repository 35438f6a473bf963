package v1

// KindCheckReport is the kind of what `tidemark check -o json` prints.
const KindCheckReport = "CheckReport"

// CheckReport is what `tidemark check -o json` prints. It has no value of any setting.
type CheckReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Before names the releases that were compared with; absent where there was none. After names the one that was checked.
	Before []string `json:"before,omitempty"`
	After  string   `json:"after"`
	// Findings by place.
	Findings []CheckFinding `json:"findings"`
	// Matrix has every revision with every configuration that its pods could read.
	Matrix []CheckCell `json:"matrix"`
	// Remarks say what could not be looked into.
	Remarks []string `json:"remarks,omitempty"`
}

// CheckFinding is something that would break, or cannot do what it is for.
type CheckFinding struct {
	Rule string `json:"rule"`
	// Severity is "error" or "warning".
	Severity string `json:"severity"`
	// Object is "configmap/NAME", "secret/NAME", a workload as "deployment/NAME", each with a namespace where manifests name
	// one, or "job/NAME" of a CI workflow.
	Object string `json:"object"`
	// Workload that reads the object; absent where none is meant.
	Workload string `json:"workload,omitempty"`
	// Key is "KEY" or "KEY:SETTING", or an environment variable; absent for a whole object. To is the new name of a renamed one.
	Key string `json:"key,omitempty"`
	To  string `json:"to,omitempty"`
	// Before is the release that the finding compares with; absent where it is about one alone.
	Before string `json:"before,omitempty"`
	// Confidence is "certain", "high", "medium", "low", or "possible" where what a program reads is not declared.
	Confidence string `json:"confidence"`
	Why        string `json:"why"`
	Fix        string `json:"fix"`
	// File and Line where it is, relative to the repository; Source what that was rendered from. Each is absent where not known.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Source string `json:"source,omitempty"`
	// Excused is why it does not count; absent where it does.
	Excused *CheckExcuse `json:"excused,omitempty"`
	// Fingerprint stays the same wherever the finding moves.
	Fingerprint string `json:"fingerprint"`
}

// CheckExcuse is why a finding does not count.
type CheckExcuse struct {
	// Until is the last day on which it holds, as YYYY-MM-DD.
	Until  string `json:"until"`
	Reason string `json:"reason"`
}

// CheckCell is a revision of a workload with a configuration that its pods could read.
type CheckCell struct {
	Workload string `json:"workload"`
	// Revision and Configuration name releases.
	Revision      string `json:"revision"`
	Configuration string `json:"configuration"`
	// Outcome is "ok", "breaks", "unknown", or "never" where they do not read it.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
}
