// Package release decides whether an operation on a Helm release is alive, stranded or superseded, with what may be done about it.
package release

import (
	"strings"
	"time"
)

// Status is the status of a revision, in Helm's words.
type Status string

// The statuses of Helm.
const (
	Deployed        Status = "deployed"
	Superseded      Status = "superseded"
	Failed          Status = "failed"
	Uninstalled     Status = "uninstalled"
	Uninstalling    Status = "uninstalling"
	PendingInstall  Status = "pending-install"
	PendingUpgrade  Status = "pending-upgrade"
	PendingRollback Status = "pending-rollback"
	StatusUnknown   Status = "unknown"
)

// Operation is what Helm was doing when it wrote a record that is not settled.
type Operation string

// The operations.
const (
	NoOperation Operation = ""
	Install     Operation = "install"
	Upgrade     Operation = "upgrade"
	Rollback    Operation = "rollback"
	Uninstall   Operation = "uninstall"
)

// Operation is what is under way while a revision has the status; known is false for a status that Helm does not have.
func (s Status) Operation() (operation Operation, known bool) {
	switch s {
	case PendingInstall, PendingUpgrade, PendingRollback:
		return Operation(strings.TrimPrefix(string(s), "pending-")), true
	case Uninstalling:
		return Uninstall, true
	case Deployed, Superseded, Failed, Uninstalled:
		return NoOperation, true
	case StatusUnknown:
	}
	return NoOperation, false
}

// Revision is what the metadata of one of Helm's records tells.
type Revision struct {
	// Record is the name of the object that tells; Kind is "Secret" or "ConfigMap"; ResourceVersion is that of the object as read.
	Record, Kind, ResourceVersion string
	// Number counts from 1; 0 when the record does not tell.
	Number int64
	Status Status
	// Created is the record's creationTimestamp: Helm's own labels with times are inherited, and lost.
	Created time.Time
	// Written is when the record was last written, by the API server's clock; zero when nothing tells.
	Written time.Time
	// Deploy is the id of the guarded deploy that wrote the record; "" when none is told.
	Deploy string
	// Recovered is when the controller marked the revision failed by itself; zero when it has not.
	Recovered time.Time
}

// JobPod is where a guard runs, when that is in a pod of the release's own cluster.
type JobPod struct {
	Namespace, Name, UID string
	// Container is "" when it is not known: all of the pod's count then.
	Container string
	Node      string
}

// Lease is what a guard says of its deploy, as its observer sees it.
type Lease struct {
	// ResourceVersion is that of the Lease as read.
	ResourceVersion string
	// Deploy is the id of this one run of a command. A revision that has it was written by that command.
	Deploy string
	// Revision is the number that the command gives to what it writes; 0 when it is not known.
	Revision int64
	// Holder is the guard; Starter the person or program that started the deploy; Job a link to where it runs.
	Holder, Starter, Job string
	// Pod is the zero value when none is recorded.
	Pod JobPod
	// Began is when the command was started, by the API server's clock.
	Began time.Time
	// Timeout is when after Began the guard stops its command; 0 when never, or when the command could outlive its guard.
	Timeout time.Duration
	// Duration is how long the lease holds without renewal.
	Duration time.Duration
	// Renewed is the last renewal, by the guard's clock. It is for people; no decision uses it.
	Renewed time.Time
	// Written is when the deploy last wrote the Lease, by the API server's clock; zero when nothing tells.
	Written time.Time
	// Unchanged is for how long the observer, by its own clock, has seen the Lease as it is.
	Unchanged time.Duration
	// Signal is the first that the guard got, such as "SIGTERM"; "" for none.
	Signal string
	// Signalled is when, by the guard's clock; zero when that is not told.
	Signalled time.Time
	// Finished says that the guard ended after its command had, with this outcome; nil while it has not said so.
	Finished *Outcome
	// Policy is the strongest policy that the deploy allows; "" for any.
	Policy Policy
}

// Outcome is how a guarded command ended.
type Outcome struct {
	// Time is when, by the guard's clock.
	Time time.Time
	// ExitStatus is the command's, 128+n where signal n ended it.
	ExitStatus int
	// Stopped is why the guard stopped the command; "" where it did not.
	Stopped Stop
}

// Stop is why a guard stopped its command.
type Stop string

// The reasons.
const (
	StoppedAtTimeout Stop = "timeout" // of the deploy
	StoppedInSilence Stop = "silence" // the lease could not be renewed
)

// signalled is the exit status above which a signal ended a command: 128 and its number.
const signalled = 128

// Signal is the number of the signal that ended the command; 0 where none did.
func (o Outcome) Signal() int { return max(0, o.ExitStatus-signalled) }

// Cancelled reports whether the deploy ended before its time. The exit status alone does not tell: Helm heeds a signal, and exits
// with 1 as after any failure. What succeeded in spite of a signal was not cancelled.
func (l *Lease) Cancelled() bool {
	if l == nil || l.Finished == nil || l.Finished.ExitStatus == 0 {
		return false
	}
	return l.Signal != "" || l.Finished.Stopped != "" || l.Finished.Signal() > 0
}

// live reports whether the guard may still be there: it has not said that it ended, and was heard within the lease's duration.
func (l *Lease) live() bool {
	return l != nil && l.Finished == nil && (l.Duration <= 0 || l.Unchanged < l.Duration)
}

// overdue reports whether the deploy is past its own timeout.
func (l *Lease) overdue(now time.Time) bool {
	return l.Timeout > 0 && !l.Began.IsZero() && now.After(l.Began.Add(l.Timeout))
}

// wrote reports whether the deploy of the lease wrote the revision. The number alone proves nothing: somebody without a guard
// may have been faster to write it.
func (l *Lease) wrote(r Revision) bool {
	return l != nil && l.Deploy != "" && l.Deploy == r.Deploy && l.Revision == r.Number
}

// mayHaveWritten reports whether the deploy probably wrote the revision, although no label says so: its record is of the number that
// the command was to write, or of the one that follows when it rolls back by itself, and was written while the command ran. All
// times are the API server's. It is enough to call a person, and for nothing else: somebody without a guard may have been as fast.
func (l *Lease) mayHaveWritten(r Revision) bool {
	if l == nil || l.Revision == 0 || r.Number != l.Revision && r.Number != l.Revision+1 {
		return false
	}
	if l.Began.IsZero() || l.Written.IsZero() || r.Written.IsZero() {
		return false
	}
	end := l.Written
	switch {
	case l.Finished == nil:
		end = end.Add(l.Duration) // within which its guard stops it
	case l.Finished.ExitStatus == 0:
		return false // it left nothing
	}
	return !r.Written.Before(l.Began) && !r.Written.After(end)
}

// Life is what is known of the place where a deploy runs, apart from its lease.
type Life string

// What may be known.
const (
	LifeUnknown Life = ""      // nothing: no job pod is recorded, or it cannot be read, or its node does not answer
	Alive       Life = "alive" // the job pod runs on a node that answers
	Dead        Life = "dead"  // the job pod ended or is gone, and its node answers or is gone
)

// Input is all that is known of one release.
type Input struct {
	Now time.Time
	// Revisions are those that have a record, in any order.
	Revisions []Revision
	// Undecodable are names of records that cannot be read as a revision. One of them may be the newest.
	Undecodable []string
	// Lease is that of the release's guard; nil when there is none.
	Lease *Lease
	// LeaseProblem says why the lease cannot be read, "" when it can or there is none.
	LeaseProblem string
	// Life of the lease's deploy.
	Life Life
	// HookActive says that a Job or a Pod of one of the newest revision's hooks is not finished.
	HookActive bool
	// HookProblem says why that cannot be told; "" when it can, or nothing is under way.
	HookProblem string
}
