package v1

import "time"

// KindCleanup is the kind of the document that `tidemark gc -o json` prints.
const KindCleanup = "Cleanup"

// Cleanup is what one run of clean-up did, or would do.
type Cleanup struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when what is used was read, by the API server's clock.
	Time time.Time `json:"time"`
	// DryRun says that nothing was written.
	DryRun bool `json:"dryRun"`
	// History is how many of each source, or family of names, were to stay, and MinAge the minimum age as a Go duration.
	History int    `json:"history"`
	MinAge  string `json:"minAge"`
	// HelmRelease is the release whose left-overs were looked at; absent when it was snapshots.
	HelmRelease string `json:"helmRelease,omitempty"`
	// Items are all objects that were found, by source and the newest first.
	Items []CleanupItem `json:"items"`
	// Quotas are those that are nearly full, of namespaces with such objects.
	Quotas []CleanupQuota `json:"quotas,omitempty"`
	// Remarks say what could not be told.
	Remarks []string `json:"remarks,omitempty"`
}

// CleanupItem is one object.
type CleanupItem struct {
	// Object is "configmap/NAMESPACE/NAME" or "secret/NAMESPACE/NAME", Source what it is a copy of. Of what a Helm release left,
	// Source is the family of its name: with "N" or "HASH" in place of the version, or the object itself where it has none.
	Object string `json:"object"`
	Source string `json:"source"`
	// Revision numbers the copies of one source; absent when not known.
	Revision int64     `json:"revision,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	// Action is "keep", "condemn", "pardon" or "delete".
	Action string `json:"action"`
	// Done says that the action was carried out; always false for "keep".
	Done bool `json:"done"`
	// Reason is "used", "recent", "young" or "waiting" for what is kept or pardoned, "superseded" or "orphaned" for what is
	// condemned or deleted. Of what a Helm release left also "released" and "unversioned", for what is kept.
	Reason string `json:"reason"`
	// Detail is the reason in one sentence.
	Detail string `json:"detail"`
	// Condemned is the mark that the object had; absent when it had none.
	Condemned time.Time `json:"condemned,omitzero"`
	// Until is when the reasons "young" and "waiting" end.
	Until time.Time `json:"until,omitzero"`
	// Problem is why the action was not carried out although it should have been.
	Problem string `json:"problem,omitempty"`
}

// CleanupQuota is a quota that is nearly full.
type CleanupQuota struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Resource  string `json:"resource"`
	Used      int64  `json:"used"`
	Hard      int64  `json:"hard"`
}
