package v1

// KindPlan is the kind of what `tidemark plan -o json` prints.
const KindPlan = "Plan"

// Plan is what `tidemark plan -o json` prints. It has no value of any setting.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Workloads that are given, or that use what is given, by namespace, kind and name.
	Workloads []PlannedWorkload `json:"workloads"`
	// Remarks say what could not be looked into.
	Remarks []string `json:"remarks,omitempty"`
}

// PlannedWorkload is what becomes of one workload.
type PlannedWorkload struct {
	// Workload is "deployment/NAME".
	Workload  string `json:"workload"`
	Namespace string `json:"namespace"`
	// Forecast is "rolls", "stays", "dormant" (what it reads changes, and running pods do not take it), "held", "next-job",
	// "waiting" (what its pods require would not be there), "new", or "unknown".
	Forecast string `json:"forecast"`
	Why      string `json:"why"`
	// Mode is "observe", "roll" or "pin"; absent where not known.
	Mode string `json:"mode,omitempty"`
	// TemplateChanges says that its own template differs from the one that is applied.
	TemplateChanges bool `json:"templateChanges"`
	// Replicas is how many pods there are meant to be, Replaced how many of them are replaced by themselves, and Pace how.
	Replicas int    `json:"replicas"`
	Replaced int    `json:"replaced"`
	Pace     string `json:"pace,omitempty"`
	// Budgets are the disruption budgets of its pods. They bound evictions, not rollouts.
	Budgets []PlannedBudget `json:"disruptionBudgets,omitempty"`
	Owner   string          `json:"owner,omitempty"`
	// Reads are the keys that the next start reads otherwise.
	Reads []PlannedRead `json:"reads,omitempty"`
	// Secrets that are given and read: whether one differs is not told.
	Secrets []string `json:"secrets,omitempty"`
	// HeldBack are objects that a rollback left on an older version.
	HeldBack []string `json:"heldBack,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// PlannedBudget is a disruption budget.
type PlannedBudget struct {
	Name string `json:"name"`
	// Allowed is how many pods may be evicted now.
	Allowed int `json:"disruptionsAllowed"`
}

// PlannedRead is a key that the next start reads otherwise.
type PlannedRead struct {
	// Object is "configmap/NAME".
	Object string `json:"object"`
	Key    string `json:"key"`
	// Change is "added", "removed" or "changed".
	Change string `json:"change"`
}
