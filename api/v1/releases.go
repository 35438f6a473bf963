package v1

import "time"

// LabelDeploy is the id of a guarded deploy: on its Lease, and on Helm's record of the revision that its command wrote, where the
// command is one that can set labels.
const LabelDeploy = Domain + "/deploy"

// DeployLeasePrefix is what the name of a guard's Lease begins with; the release's name follows. The Lease is in the release's
// namespace. Its holder, duration and renewal are those of its spec.
const DeployLeasePrefix = "tidemark-deploy-"

// Annotations of a guard's Lease. Arguments and environment of the command are in none.
const (
	// AnnotationDeployRevision is the number that the command gives to the revision that it writes.
	AnnotationDeployRevision = Domain + "/deploy-revision"
	// AnnotationDeployStartedBy is the person or program that started the deploy.
	AnnotationDeployStartedBy = Domain + "/deploy-started-by"
	// AnnotationDeployJob is a link to where the deploy runs.
	AnnotationDeployJob = Domain + "/deploy-job"
	// AnnotationDeployBegan is when the command was started, in RFC 3339 by the API server's clock.
	AnnotationDeployBegan = Domain + "/deploy-began"
	// AnnotationDeployTimeout is when after its start the guard stops its command, as a Go duration; absent for never, and where the
	// command could go on after its guard was killed.
	AnnotationDeployTimeout = Domain + "/deploy-timeout"
	// AnnotationDeployEnded is when the command had ended, in RFC 3339 by the guard's clock; absent while it runs.
	AnnotationDeployEnded = Domain + "/deploy-ended"
	// AnnotationDeployExitStatus is the command's exit status, 128+n where signal n ended it. It comes with the one above.
	AnnotationDeployExitStatus = Domain + "/deploy-exit-status"
	// AnnotationDeployPod is the pod in which the guard runs, as NAMESPACE/NAME/UID. Only a guard that has read this very pod from
	// the cluster of the release writes it: the pod of a job in another cluster would be missing here although it runs.
	AnnotationDeployPod = Domain + "/deploy-pod"
	// AnnotationDeployContainer is the container of that pod; absent when it is not known.
	AnnotationDeployContainer = Domain + "/deploy-container"
	// AnnotationDeployNode is the node of that pod.
	AnnotationDeployNode = Domain + "/deploy-node"
	// AnnotationDeployPolicy is the strongest policy that the deploy allows about what it leaves behind; absent for any.
	AnnotationDeployPolicy = Domain + "/deploy-policy"
	// AnnotationDeploySignal, on a guard's Lease, is the first signal that the guard got, with when, in RFC 3339 by its clock:
	// "SIGTERM 2026-11-30T12:00:00Z". Who cancels a job sends one; what kills it does not.
	AnnotationDeploySignal = Domain + "/deploy-signal"
	// AnnotationDeployStopped is why the guard itself stopped its command: "timeout" or "silence", when it could not renew the lease.
	// It comes with the end.
	AnnotationDeployStopped = Domain + "/deploy-stopped"
	// AnnotationDeployBefore are the deploys of the last day, at most five, that did not end by themselves and whose Lease another
	// guard took: a JSON list of [FormerDeploy], the oldest first. Their starters are told from it what became of them.
	AnnotationDeployBefore = Domain + "/deploy-before"
	// AnnotationDeployWritten is when the deploy itself wrote its Lease last, in RFC 3339 by the API server's clock, where another guard
	// has put the Lease back since; absent otherwise.
	AnnotationDeployWritten = Domain + "/deploy-written"
)

// AnnotationRecovered is, on Helm's record of a revision, when the controller marked the revision failed by itself, in RFC 3339 by the
// API server's clock.
const AnnotationRecovered = Domain + "/recovered"

// EnvDeploy is the environment variable in which a guarded command finds the id of its deploy. A script that runs helm makes its
// records known as the guard's by --labels "tidemark.dev/deploy=$TIDEMARK_DEPLOY".
const EnvDeploy = "TIDEMARK_DEPLOY"

// KindReleaseList is the kind of the document that `tidemark releases -o json` prints.
const KindReleaseList = "ReleaseList"

// ReleaseList is what is known of the Helm releases.
type ReleaseList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the records were read, by the API server's clock.
	Time time.Time `json:"time"`
	// Items are the releases by namespace and name.
	Items []Release `json:"items"`
	// Remarks say what could not be told.
	Remarks []string `json:"remarks,omitempty"`
}

// Release is one Helm release.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision is the newest; absent when no record tells one.
	Revision int64 `json:"revision,omitempty"`
	// Status is Helm's word for the newest revision.
	Status string `json:"status,omitempty"`
	// Updated is when the record of the newest revision was created.
	Updated time.Time `json:"updated,omitzero"`
	// State is "healthy", "live", "overdue", "abandoned", "superseded", "silent", "residue", "unguarded" or "unknown".
	State string `json:"state"`
	// Reason is the state in one sentence.
	Reason string `json:"reason"`
	// Operation under way is "install", "upgrade", "rollback" or "uninstall"; absent when none is.
	Operation string `json:"operation,omitempty"`
	// PendingSince is since when it is under way.
	PendingSince time.Time `json:"pendingSince,omitzero"`
	// Deployed is the highest revision that is deployed; absent when there is none.
	Deployed int64 `json:"deployed,omitempty"`
	// Residue are older revisions that have remained pending, which hinders nobody.
	Residue []int64 `json:"residue,omitempty"`
	// Deploy is what the Lease of the release's guard tells; absent when there is none, and when what is under way is somebody else's for
	// certain.
	Deploy *Deploy `json:"deploy,omitempty"`
	// Next is what Tidemark does about it by itself: "none" or "report", or "forward" where the policy that was asked about does so.
	Next string `json:"next"`
	// Why is the reason for that in one sentence.
	Why string `json:"why"`
}

// Deploy is one guarded run of a deploy command.
type Deploy struct {
	ID       string    `json:"id,omitempty"`
	Revision int64     `json:"revision,omitempty"`
	Holder   string    `json:"holder,omitempty"`
	Starter  string    `json:"startedBy,omitempty"`
	Job      string    `json:"job,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	// Timeout is a Go duration; absent for none.
	Timeout string `json:"timeout,omitempty"`
	// Heartbeat is the last renewal, by the guard's clock.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	// Ended is when the command had ended, and ExitStatus what with; both absent while it runs.
	Ended      time.Time `json:"ended,omitzero"`
	ExitStatus *int      `json:"exitStatus,omitempty"`
	// Signal is the first that its guard got, such as "SIGTERM"; absent for none.
	Signal string `json:"signal,omitempty"`
	// Stopped is why its guard stopped the command, "timeout" or "silence"; absent where it did not.
	Stopped string `json:"stopped,omitempty"`
}

// FormerDeploy is a deploy whose Lease another guard took. Of the [Deploy] only id, revision, starter, job, signal and end are kept.
type FormerDeploy struct {
	Deploy
	// Taken is when the other took the Lease, by the API server's clock.
	Taken time.Time `json:"taken"`
}
