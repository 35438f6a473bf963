package v1

import "time"

// KindVerification is the kind of a [Verification].
const KindVerification = "Verification"

// Verification is what `tidemark verify POD -o json` prints: what looking into a pod says of what was known of it.
type Verification struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, by the API server's clock.
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	// Workload is the one whose fleet the pod is of, as "KIND/NAME".
	Workload string `json:"workload"`
	// Checks are those of each container and object, of which none has a value.
	Checks  []VerificationCheck `json:"checks"`
	Remarks []string            `json:"remarks,omitempty"`
}

// VerificationCheck is what looking into a container says of one object.
type VerificationCheck struct {
	Container string `json:"container"`
	// Object, Digest, Applied and Evidence as in [FleetLoaded].
	Object   string `json:"object"`
	Digest   string `json:"digest,omitempty"`
	Applied  string `json:"applied,omitempty"`
	Evidence string `json:"evidence"`
	// Outcome is "right" where the process's environment has what evidence tells, "wrong" where it has something else, and
	// "unknown" where looking does not decide.
	Outcome string `json:"outcome"`
	// Why says what was found.
	Why string `json:"why"`
	// Differs are the keys that the process's environment has with another value.
	Differs []string `json:"differs,omitempty"`
	// Files says what the container's files hold now: "applied", "loaded" (what evidence tells, where that is not what is
	// applied) or "other"; absent where there are none, or they could not be read. It proves nothing of what was read.
	Files string `json:"files,omitempty"`
}
