package check

import "slices"

// RuleID names a rule; it is stable, for configuration and for excuses.
type RuleID string

// The rules.
const (
	RenameInOneStep       RuleID = "rename-in-one-step"
	KeyRemovedWhileRead   RuleID = "key-removed-while-read"
	ObjectRemoved         RuleID = "object-removed-while-read"
	KeyMissing            RuleID = "key-missing"
	KeyUnknown            RuleID = "key-unknown"
	ValueInvalid          RuleID = "value-invalid"
	ItemsKeyMissing       RuleID = "items-key-missing"
	UnversionedReference  RuleID = "unversioned-reference"
	HashConstant          RuleID = "hash-annotation-constant"
	OptionalHidesTypo     RuleID = "optional-hides-typo"
	ImmutableChanged      RuleID = "immutable-changed"
	EnvNameCollision      RuleID = "env-name-collision"
	SubPathNeverRefreshes RuleID = "subpath-never-refreshes"
	SecretInConfigMap     RuleID = "secret-in-configmap"
	FieldUnknown          RuleID = "field-unknown"
	CancelInProgress      RuleID = "cancel-in-progress"
	ExcuseInvalid         RuleID = "excuse-invalid"
)

// Severity is how much a finding matters.
type Severity string

// The severities. What is off is not looked for.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Off     Severity = "off"
)

// Rule is something that is looked for.
type Rule struct {
	ID       RuleID
	Severity Severity // unless it is set otherwise
	// Summary in one sentence, for lists.
	Summary string
	// Detail says when it is found and when not.
	Detail string
	// Fix in one sentence.
	Fix string
	// NeedsBefore says that it compares with a release from before.
	NeedsBefore bool
}

// Rules lists all rules, those that need nothing to compare with last.
func Rules() []Rule { return slices.Clone(rules) }

// RuleOf finds a rule.
func RuleOf(id RuleID) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

var rules = []Rule{
	{
		RenameInOneStep, Warning, "A setting is renamed in one step, so pods of the release before cannot find it.",
		"A name is gone and another one is new that means the same, by its words or its value, while pods of the release before read the " +
			"object by its own name. After a rollback, or when one of them restarts, old code meets the new name. Not in mode pin, and " +
			"not where the new name was there before.",
		"Ship it in two steps: first a release that reads both names, with both in the configuration, then one that drops the old name.", true,
	},
	{
		KeyRemovedWhileRead, Warning, "A setting is removed that pods of the release before read, or may read.",
		"It is certain for a key that a container names, or that tidemark.dev/reads or a schema names, and possible for one that comes " +
			"with a whole object or file of which nobody declared what is read. Not in mode pin, and not where a setting that means the same was there before and stays.",
		"Keep the setting until no pod and no revision to roll back to reads it, then remove it in a release of its own.", true,
	},
	{
		ObjectRemoved, Warning, "A ConfigMap or Secret is removed that pods of the release before need in order to start.",
		"The object was part of the release before and is not part of this one, and a template of the release before requires it. Not for " +
			"names with a version in them, of which the older one may stay.",
		"Keep the object until no pod and no revision to roll back to names it.", true,
	},
	{
		UnversionedReference, Warning, "The configuration changes and the pod template does not, so nothing will roll.",
		"Only where the mode is known to be observe: by annotation, by the namespace's label, or by --mode. Not for objects that the program reloads.",
		"Put the workload into mode roll or pin, or give the pod template something that changes with the configuration.", true,
	},
	{
		HashConstant, Warning, "A checksum annotation stays the same although the configuration changed.",
		"The pod template carries an annotation that looks like a checksum of configuration, the content of a config object that it reads " +
			"changed, and none of its checksums did. Not where the names of all of them say that they are over other objects, and not in modes roll and pin, where the stamp does that.",
		"Compute the checksum over the rendered object that the pods read.", true,
	},
	{
		ImmutableChanged, Error, "An immutable ConfigMap or Secret is changed, which the API refuses.",
		"The object is immutable in the release before and has other content in this one, or is immutable no more.",
		"Give the new content a new name, and let the pod template name it.", true,
	},
	{
		KeyMissing, Error, "A key is read that is not there.",
		"A container requires a key that the object of this release does not have, its sub-path names a file that is not there, or what tidemark.dev/reads or a schema requires is missing.",
		"Add the key to the object, or correct its name where it is read.", false,
	},
	{
		KeyUnknown, Warning, "A strict loader would refuse a setting that it does not know.",
		"The schema of a revision allows no further settings and the configuration that its pods could read has one.",
		"Release code that knows the setting first, or ignores it, then the setting.", false,
	},
	{
		ValueInvalid, Warning, "A value does not fit the schema of a revision that could read it.",
		"The schema of a revision refuses a value of the configuration that its pods could read, for another reason than a missing or unknown setting.",
		"Correct the value, or release code with a schema that allows it first.", false,
	},
	{
		ItemsKeyMissing, Error, "A volume names a key that is not there, which keeps the whole volume from being mounted.",
		"An entry of items names a key that the object of this release does not have, and the volume is not optional: no pod gets past ContainerCreating.",
		"Add the key to the object, or take its entry out of the volume's items.", false,
	},
	{
		OptionalHidesTypo, Warning, "An optional reference names what is not there, and something of nearly that name is.",
		"The reference is optional, its key or object is not part of this release, and one is that differs in a letter or in how its words are joined.",
		"Correct the name, or make the reference required so that a mistake stops the first pod.", false,
	},
	{
		EnvNameCollision, Warning, "Two sources give a container the same environment variable, and one silently wins.",
		"Two entries of envFrom, with their prefixes, or two entries of env have the same name. An entry of env over one of envFrom is taken for meant.",
		"Take one of the two out, or give its source a prefix.", false,
	},
	{
		SubPathNeverRefreshes, Warning, "A sub-path mount keeps its content for as long as the container runs.",
		"The workload says that it reloads, or the object that it is reloaded, and the mount cannot show a change; or the content changes and the pod template does not. Not in modes roll and pin without such a promise.",
		"Mount the whole volume into a directory of its own, or roll the pods when the content changes.", false,
	},
	{
		SecretInConfigMap, Warning, "A value in a ConfigMap looks like a credential.",
		"A private key, a URL with a password, a token of a known shape, or a setting that is named like a credential and has a value that can be one.",
		"Move the value into a Secret, and treat it as known to everybody who could read the ConfigMap.", false,
	},
	{
		FieldUnknown, Warning, "A field of a pod template is none that Kubernetes knows, so it is dropped without a word, or refused.",
		"The API knows fields by their letters, upper case and lower case, in Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, Pods and Rollouts. " +
			"kubectl refuses what it does not know; helm, GitOps controllers and other clients let it be dropped. Certain where a known field has nearly the name, " +
			"else possible, since newer releases of Kubernetes have more fields. Not for fields that are null, nor for other kinds.",
		"Correct the field's name, or take the field out.", false,
	},
	{
		CancelInProgress, Warning, "A CI workflow cancels a run while it may be deploying.",
		"A job with a deploying command is in a GitHub workflow with cancel-in-progress, or is interruptible in GitLab CI. Not where the command runs under " +
			"tidemark guard, or only tries. An excuse in a comment is for the job that it stands with, or for all where it stands with none.",
		"Let deploys queue: switch cancellation off for the job that deploys, or run its command under tidemark guard.", false,
	},
	{
		ExcuseInvalid, Warning, "An excuse cannot be read, and excuses nothing.",
		"An entry of the annotation tidemark.dev/check-excuse is not of the form RULE [KEY] until YYYY-MM-DD: REASON.",
		"Write it as: rename-in-one-step until 2026-12-31: reason.", false,
	},
}
