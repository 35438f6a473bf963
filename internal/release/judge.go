package release

import (
	"fmt"
	"slices"
	"time"
)

// State is what a release is in.
type State string

// The states.
const (
	// Healthy: no operation is under way. The newest revision may have failed; Helm accepts the next one.
	Healthy State = "healthy"
	// Live: an operation is under way, and there is a sign that it lives.
	Live State = "live"
	// Overdue: it lives, and is past its own timeout.
	Overdue State = "overdue"
	// Abandoned: a guarded operation whose process cannot come back.
	Abandoned State = "abandoned"
	// Outrun: a guarded deploy ended without a word, and a newer revision has replaced its own since.
	Outrun State = "superseded"
	// Silent: no operation is under way, and the guard of a deploy gives no sign of life: it was killed before Helm wrote anything, or
	// after all was settled.
	Silent State = "silent"
	// Residue: no operation is under way; an older revision has remained pending, which hinders nobody.
	Residue State = "residue"
	// Unguarded: an operation is under way of which no lease tells.
	Unguarded State = "unguarded"
	// Unknown: what there is does not decide.
	Unknown State = "unknown"
)

// Verdict is the state of a release with what it follows from.
type Verdict struct {
	State State
	// Reason is a sentence for people.
	Reason string
	// Newest is the revision that counts; its Number is 0 when there is none.
	Newest Revision
	// Operation that is under way; "" when none is.
	Operation Operation
	// Since is when the operation began; zero when none is under way.
	Since time.Time
	// Good is the highest deployed revision; 0 when there is none.
	Good int64
	// Residue are older revisions that are not settled.
	Residue []int64
	// Busy says that a guard is at work on the release, whatever it is that is pending: nobody else may write.
	Busy bool
	// Allowed is the strongest policy that the deploy's lease allows; "" for any.
	Allowed Policy
	// Left says that an unguarded operation was probably left by the deploy of the lease, which is over. Nothing proves it, so
	// only a person can recover it, and must be told at once.
	Left bool
	// First says that no other revision than the newest was ever recorded.
	First bool
}

// Age is for how long the operation has been under way; 0 when none is.
func (v Verdict) Age(now time.Time) time.Duration {
	if v.Since.IsZero() {
		return 0
	}
	return max(0, now.Sub(v.Since))
}

// Judge gives the state of a release. A lease is evidence of life for whatever is pending; of death it is evidence only for a
// revision that its own deploy wrote.
func Judge(in Input) Verdict {
	v := survey(in)
	switch {
	case len(in.Undecodable) > 0:
		v.State, v.Reason = Unknown, fmt.Sprintf("record %s cannot be read, and may be the newest revision", in.Undecodable[0])
	case v.Newest.Number == 0 && in.Lease == nil:
		v.State, v.Reason = Unknown, "no record tells a revision"
	case in.LeaseProblem != "":
		v.State, v.Reason = Unknown, "the lease of its guard cannot be read: "+in.LeaseProblem
	case v.Operation == NoOperation:
		v.State, v.Reason = settled(in, v)
	case in.HookActive:
		v.State, v.Reason = Live, "one of its hooks is running"
	case !in.Lease.wrote(v.Newest):
		v.State, v.Reason = Unguarded, notItsLease(in.Lease, v.Newest)
		v.Left, v.Reason = left(in, v)
	default:
		v.State, v.Reason = guarded(in)
	}
	if in.HookProblem != "" && (v.State == Unguarded || v.State == Abandoned) {
		v.State, v.Left, v.Reason = Unknown, false, v.Reason+"; whether one of its hooks runs cannot be told: "+in.HookProblem
	}
	return v
}

// survey finds what the records tell by themselves.
func survey(in Input) Verdict {
	revisions := slices.Clone(in.Revisions)
	slices.SortStableFunc(revisions, func(a, b Revision) int { return int(b.Number - a.Number) })
	v := Verdict{Busy: in.Lease.live(), First: len(revisions) == 1 && revisions[0].Number == 1}
	for i, r := range revisions {
		operation, _ := r.Status.Operation()
		switch {
		case i == 0:
			v.Newest, v.Operation = r, operation
		case operation != NoOperation:
			v.Residue = append(v.Residue, r.Number)
		}
		if r.Status == Deployed {
			v.Good = max(v.Good, r.Number)
		}
	}
	if v.Operation != NoOperation {
		v.Since = v.Newest.Created
	}
	if in.Lease != nil {
		v.Allowed = in.Lease.Policy
	}
	return v
}

// settled is the state of a release whose newest revision is settled, or of which there is but a lease.
func settled(in Input, v Verdict) (State, string) {
	status, written := "no record of the release is in the cluster", v.Newest.Number > 0
	if written {
		status = fmt.Sprintf("revision %d is %s", v.Newest.Number, v.Newest.Status)
	}
	l := in.Lease
	switch {
	case written && (v.Newest.Status == StatusUnknown || !known(v.Newest.Status)):
		return Unknown, fmt.Sprintf("revision %d has the status %q, which tells nothing", v.Newest.Number, v.Newest.Status)
	case l.live() && l.overdue(in.Now):
		return Overdue, "a guarded deploy is alive, and past its timeout of " + l.Timeout.String()
	case l.live():
		return Live, "a guarded deploy is at work"
	case l != nil && l.Finished == nil && l.Revision > 0 && l.Revision < v.Newest.Number:
		return Outrun, fmt.Sprintf("the guard of revision %d ended without a word; since then %s", l.Revision, status)
	case l != nil && l.Finished == nil:
		return Silent, "the guard of a deploy gives no sign of life; " + status
	case len(v.Residue) > 0:
		return Residue, fmt.Sprintf("%s; revision %d below it has remained pending, which hinders nobody", status, v.Residue[0])
	}
	return Healthy, status
}

func known(s Status) bool {
	_, is := s.Operation()
	return is
}

// guarded is the state of an operation that the deploy of the lease wrote.
func guarded(in Input) (State, string) {
	l := in.Lease
	switch {
	case l.Finished != nil:
		return Abandoned, fmt.Sprintf("its command ended with exit status %d and left it so", l.Finished.ExitStatus)
	case l.live() && l.overdue(in.Now):
		return Overdue, "its guard is alive, and past its timeout of " + l.Timeout.String()
	case l.live():
		return Live, "its guard is alive"
	case in.Life == Dead:
		return Abandoned, "its guard gives no sign of life, and the pod of its job is gone"
	case in.Life == Alive:
		return Unknown, "its guard gives no sign of life, but the pod of its job runs: it may be stopped, and go on"
	case l.overdue(in.Now):
		return Abandoned, "its guard gives no sign of life, and its timeout of " + l.Timeout.String() + " is past"
	case l.Timeout <= 0:
		return Unknown, "its guard gives no sign of life, and nothing proves that it ended: when you know that nothing of it runs any more, delete its Lease, and releases recover does the rest"
	}
	return Unknown, "its guard gives no sign of life; whether it ended is certain after " + l.Began.Add(l.Timeout).UTC().Format(time.RFC3339)
}

// left reports whether the unguarded operation was probably left by the deploy of the lease, with the reason for its state.
func left(in Input, v Verdict) (bool, string) {
	if !in.Lease.mayHaveWritten(v.Newest) {
		return false, v.Reason
	}
	if state, why := guarded(in); state == Abandoned {
		return true, v.Reason + "; its number and time do, and " + why
	}
	return false, v.Reason
}

// Teller is the lease of the deploy that the verdict may be about; nil when what is under way is somebody else's for certain: no label
// says that the deploy wrote it, and its command left nothing, or had ended before the record was created.
func (in Input) Teller(v Verdict) *Lease {
	l := in.Lease
	if l == nil || l.Finished == nil || v.State != Unguarded || v.Left {
		return l
	}
	if l.Finished.ExitStatus == 0 || !l.Written.IsZero() && l.Written.Before(v.Newest.Created) {
		return nil
	}
	return l
}

func notItsLease(l *Lease, newest Revision) string {
	switch {
	case l == nil:
		return "no lease tells who is at work"
	case l.Revision != newest.Number:
		return fmt.Sprintf("the lease of its guard is that of revision %d, and no label says that the same command wrote this one", l.Revision)
	}
	return "a guard expected this revision, but its record does not say that the guarded command wrote it"
}
