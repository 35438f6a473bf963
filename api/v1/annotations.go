package v1

// Annotations that users set on a workload (or on its pod template, where noted).
const (
	// AnnotationMode chooses what Tidemark does for a workload: "observe", "roll" or "pin". Read from the workload, else
	// from its pod template, else from the label of the same name on the namespace (see [LabelMode]), else the
	// controller's --default-mode.
	AnnotationMode = Domain + "/mode"
	// AnnotationPaused stops every write of Tidemark to the object that carries it: a workload, a namespace (all its
	// workloads), or Tidemark's own namespace (everything). The value is "true"; who, when and why are in
	// [AnnotationPausedBy].
	AnnotationPaused = Domain + "/paused"
	// AnnotationPausedBy says who paused, when and why, for people; its content is never interpreted.
	AnnotationPausedBy = Domain + "/paused-by"
	// AnnotationExtraConfigMaps lists ConfigMaps that the program reads through the API: comma separated "name" or
	// "namespace/name".
	AnnotationExtraConfigMaps = Domain + "/extra-configmaps"
	// AnnotationExtraSecrets is [AnnotationExtraConfigMaps] for Secrets.
	AnnotationExtraSecrets = Domain + "/extra-secrets"
	// AnnotationWholeObject, when "true", makes every key of each referenced object count, not only the consumed ones.
	AnnotationWholeObject = Domain + "/whole-object"
	// AnnotationReloads, when "true", says that the program re-reads mounted files by itself, so that a file's present
	// content is what it runs with.
	AnnotationReloads = Domain + "/reloads"
	// AnnotationReads lists, on a workload or its pod template, the settings that its program reads: names or patterns with "*",
	// separated by commas or line ends, each the key of a config object, "KEY:SETTING", or a setting in whatever file. One
	// that ends in "?" may be absent. What is not listed is not read. For `tidemark check`.
	AnnotationReads = Domain + "/reads"
	// AnnotationSchema is, on a workload or its pod template, the JSON Schema of its configuration: the schema itself, or the
	// path of a file that has it. It describes an object with the keys of all config objects that the pods read, the values
	// being text, or the content of a file that is understood. For `tidemark check`.
	AnnotationSchema = Domain + "/config-schema"
	// AnnotationExcuse excuses, on a workload or config object, findings of `tidemark check`: lines, or parts between
	// semicolons, of "RULE until YYYY-MM-DD: REASON" or "RULE KEY until YYYY-MM-DD: REASON".
	AnnotationExcuse = Domain + "/check-excuse"
	// AnnotationLoadedPort, on a pod (so in its template), is the port at which the program tells what it loaded, by the
	// library tidemark.dev/tidemark/loaded: "8080", or "CONTAINER:8080" where the port is no port of one of its containers and
	// there are several. It is asked only by a controller with --read-reports, and by a command line with --reports.
	AnnotationLoadedPort = Domain + "/loaded-port"
	// AnnotationRolloutBudget overrides how long a rollout of this workload should take, as a Go duration.
	AnnotationRolloutBudget = Domain + "/rollout-budget"
	// AnnotationUnfinishedAfter is after how long a rollout that leaves more than one revision running counts as unfinished, as a
	// Go duration; "off" for never. Default 1h. Read from the workload, else from its pod template.
	AnnotationUnfinishedAfter = Domain + "/unfinished-after"
	// AnnotationOwner names who owns the workload: metrics carry it, and notifications are routed by it. Read from the workload,
	// else from its pod template, else from the namespace.
	AnnotationOwner = Domain + "/owner"
	// AnnotationPromoteAfter, on an Argo Rollout, is after how long Tidemark ends a pause of a healthy canary, as a Go
	// duration. Only a pause of a step that has no duration of its own is ended: never an abort, an analysis that did not
	// decide, a pause of a blue-green Rollout, or one by a person.
	AnnotationPromoteAfter = Domain + "/promote-after"
)

// Off is the value of [AnnotationUnfinishedAfter] for never.
const Off = "off"

// Annotations that users set on a config object (a ConfigMap or a Secret).
const (
	// AnnotationIgnore, when "true", makes Tidemark act as if nothing referenced the object.
	AnnotationIgnore = Domain + "/ignore"
	// AnnotationShowValues, when "true" on a ConfigMap, allows that notifications show values of its keys. Values of Secrets are
	// never shown, nor what looks like a credential.
	AnnotationShowValues = Domain + "/show-values"
	// AnnotationTreatAs is "versioned", "restart" or "live".
	AnnotationTreatAs = Domain + "/treat-as"
)

// Annotations and labels that Tidemark writes on a workload.
const (
	// AnnotationConfigHash is the stamp on the pod template: a versioned digest of what the template consumes.
	AnnotationConfigHash = Domain + "/config-hash"
	// AnnotationPins is the part of the stamp on the pod template that names the snapshots of mode pin.
	AnnotationPins = Domain + "/pins"
	// AnnotationRecord holds, on the workload's own metadata, what Tidemark left there and on which contents it decided.
	AnnotationRecord = Domain + "/record"
	// LabelRecordSum is the checksum of [AnnotationRecord]. It is a label because a rollback of a Deployment puts all
	// annotations back and leaves the labels.
	LabelRecordSum = Domain + "/record-sum"
	// LabelMode is the namespace label that chooses the mode of all its workloads.
	LabelMode = AnnotationMode
	// LabelPaused is "true" on a paused workload beside [AnnotationPaused], because a rollback of a Deployment would take
	// the annotation away.
	LabelPaused = AnnotationPaused
	// LabelHistory marks the ConfigMaps, in Tidemark's own namespace, that hold the history of another namespace; the
	// value is that namespace.
	LabelHistory = Domain + "/history-of"
)

// Annotations and labels that Tidemark writes on a snapshot: the immutable copy of a config object, in its namespace.
const (
	// LabelSnapshot is "true" on every snapshot.
	LabelSnapshot = Domain + "/snapshot"
	// AnnotationSnapshotOf names the config object that was copied, as "configmap/NAME" or "secret/NAME".
	AnnotationSnapshotOf = Domain + "/snapshot-of"
	// AnnotationSourceUID is the UID of the object that was copied.
	AnnotationSourceUID = Domain + "/source-uid"
	// AnnotationSourceVersion is the resourceVersion of the object that was copied.
	AnnotationSourceVersion = Domain + "/source-resource-version"
	// AnnotationSnapshotRevision numbers the snapshots of one source from 1 on; the highest was stamped last.
	AnnotationSnapshotRevision = Domain + "/snapshot-revision"
	// AnnotationSnapshotTime is when the copy was made, in RFC 3339.
	AnnotationSnapshotTime = Domain + "/snapshot-time"
	// AnnotationCondemned is when clean-up found that nothing needs the snapshot any more, in RFC 3339. It is deleted when
	// that is so still some time later; a use takes the mark away.
	AnnotationCondemned = Domain + "/condemned"
)

// AbsentName is the name that pins stand for when an optional object is absent. No object may have it, so that what
// appears later cannot appear in an older revision.
const AbsentName = "absent." + Domain

// Names of what puts mode pin into force, in the whole cluster.
const (
	// PolicyPin is the MutatingAdmissionPolicy that makes new pods read what their pins say, and its binding.
	PolicyPin = "tidemark-pin"
	// WebhookPods is the MutatingWebhookConfiguration that does so where the API server has no such policies.
	WebhookPods = "tidemark-pods"
	// WebhookWorkloads is the MutatingWebhookConfiguration that decides the stamp when a workload is written.
	WebhookWorkloads = "tidemark-workloads"
)

// Names in Tidemark's own namespace.
const (
	// LeaseLeader is the leader election Lease of the controller.
	LeaseLeader = "tidemark-controller"
	// SecretDigestKey holds the key with which digests of Secrets are made, under the entry [DigestKeyEntry].
	SecretDigestKey = "tidemark-digest-key"
	// DigestKeyEntry is the data entry of [SecretDigestKey]: 32 random bytes.
	DigestKeyEntry = "key"
	// SecretWebhookCertificate holds the certificate of the webhooks, with its key, and the one that is to follow it.
	SecretWebhookCertificate = "tidemark-webhook-certificate"
	// ConfigMapNotified holds what people were told of, so that the next leader does not tell it again.
	ConfigMapNotified = "tidemark-notified"
	// HistoryPrefix begins the name of the ConfigMap that holds the history of one namespace.
	HistoryPrefix = "tidemark-history-"
	// NodeSilences is the ConfigMap in Tidemark's own namespace with the times for which nodes gave no sign of life.
	NodeSilences = "tidemark-node-silences"
)

// Labels of [LeaseLeader] by which the controller states the margins of its inference, each a duration as Go writes it ("2m0s"): labels,
// because they are written with the lead itself.
const (
	LabelRefreshLag = Domain + "/refresh-lag"
	LabelReadLag    = Domain + "/read-lag"
	LabelClockSkew  = Domain + "/clock-skew"
)

// AnnotationHistoryUnsaved is on [LeaseLeader] while the history cannot be written: since when changes are not in it, as RFC 3339. The
// lease goes on being renewed then, and proves no longer that what was seen is written down. Set by the leader.
const AnnotationHistoryUnsaved = Domain + "/history-unsaved"

// AnnotationHistoryBlind is on [LeaseLeader] while kinds of config objects are not watched, as where the right to is missing: of each
// since when changes are not in the history, "ConfigMap=TIME,Secret=TIME" with times as RFC 3339. Set by the leader.
const AnnotationHistoryBlind = Domain + "/history-blind"

// Values of [AnnotationMode].
const (
	ModeObserve = "observe"
	ModeRoll    = "roll"
	ModePin     = "pin"
)

// Values of [AnnotationTreatAs].
const (
	TreatAsVersioned = "versioned"
	TreatAsRestart   = "restart"
	TreatAsLive      = "live"
)

// True is the value that switches a boolean annotation on.
const True = "true"
