// Package pace decides when a wanted rollout may happen.
package pace

import (
	"errors"
	"fmt"
	"time"

	"tidemark.dev/tidemark/internal/stamp"
)

// Settings bound how soon and how often a workload rolls. [Defaults] gives the defaults; the zero value has no bound.
type Settings struct {
	// Settle is how long the content must have been quiet, so that several changes give one rollout. Default 2s; 0 does
	// not wait.
	Settle time.Duration
	// SettleMax is how long Settle may put a rollout off, counted from the first change. Default 10s.
	SettleMax time.Duration
	// ReleaseWait is how long a pending Helm release may put a rollout off, counted from the first change: the image of
	// the same release may be on its way. Default 60s; 0 does not wait.
	ReleaseWait time.Duration
	// StormRolls is the number of rollouts within StormWindow from which on the content must be quiet for longer before
	// the next. Default 3, at most [stamp.MaxRolls]; 0 switches the storm breaker off.
	StormRolls int
	// StormWindow is how far back rollouts count, and the longest quiet that is asked for. Default 10m.
	StormWindow time.Duration
	// StormQuiet is the quiet asked for after StormRolls rollouts, doubled for each one more. Default 30s.
	StormQuiet time.Duration
}

// Defaults gives the default settings.
func Defaults() Settings {
	return Settings{
		Settle: 2 * time.Second, SettleMax: 10 * time.Second, ReleaseWait: time.Minute,
		StormRolls: 3, StormWindow: 10 * time.Minute, StormQuiet: 30 * time.Second,
	}
}

// Validate says what is wrong with the settings.
func (s Settings) Validate() error {
	var errs []error
	if s.Settle < 0 || s.ReleaseWait < 0 || s.StormRolls < 0 {
		errs = append(errs, errors.New("settle, release wait: a negative duration or number of rollouts"))
	}
	if s.SettleMax < s.Settle {
		errs = append(errs, fmt.Errorf("settle at most %s: shorter than settle %s", s.SettleMax, s.Settle))
	}
	if s.StormRolls > stamp.MaxRolls {
		errs = append(errs, fmt.Errorf("storm after %d rollouts: only the last %d are remembered", s.StormRolls, stamp.MaxRolls))
	}
	if s.StormRolls > 0 && (s.StormQuiet <= 0 || s.StormWindow < s.StormQuiet) {
		errs = append(errs, fmt.Errorf("storm quiet %s: want more than 0 and at most the storm window %s", s.StormQuiet, s.StormWindow))
	}
	return errors.Join(errs...)
}

// Input is what is known of a wanted rollout. Zero times are long past, and so are times in the future, which only a
// clock that was set back, or another one, can give: waiting for them might never end.
type Input struct {
	Now time.Time
	// FirstChange is since when the content differs from what was accounted for, as the caller observed it.
	FirstChange time.Time
	// LastChange is when the content last changed, to whatever value, as the caller observed it. A caller that has just
	// started puts Now, in the place of what it has not seen.
	LastChange time.Time
	// Rolls are the times of past rollouts in any order: stamp.Record.Rolls.
	Rolls []time.Time
	// Paused says that someone stopped all writes to the workload.
	Paused bool
	// ReleasePendingSince is since when the Helm release that owns the workload is pending; zero when it is not.
	ReleasePendingSince time.Time
}

// Answer says whether a wanted rollout may happen now.
type Answer string

// The answers.
const (
	Go   Answer = "go"
	Wait Answer = "wait"
)

// Reason says what a rollout waits for.
type Reason string

// The reasons to wait.
const (
	None    Reason = ""        // it does not wait
	Paused  Reason = "paused"  // someone stopped all writes
	Storm   Reason = "storm"   // the configuration keeps changing
	Release Reason = "release" // the Helm release is pending
	Settle  Reason = "settle"  // more changes may follow
)

// Verdict is when a wanted rollout may happen.
type Verdict struct {
	Answer Answer
	Reason Reason
	// Until is when to look again; zero when only an event can change the answer.
	Until time.Time
}

// Decide says whether a wanted rollout may happen now. What waits for several things gives the one that people can do most
// about: a pause, then a storm, a release, and settling.
//
// The storm breaker needs no memory of its own: it follows from the rollouts that the record keeps, so a restart of the
// controller changes nothing. With the defaults a workload whose configuration never comes to rest rolls at most 6 times
// within any 10 minutes and 31 times within an hour, whatever the rhythm; once at rest it rolls once more, at the latest
// StormWindow later. For a workload that is marked as held while nothing is wanted any more, a verdict that is not
// [Storm] means that the mark may go.
func (s Settings) Decide(in Input) Verdict {
	if in.Paused {
		return Verdict{Answer: Wait, Reason: Paused}
	}
	if until := s.stormEnd(in); until.After(in.Now) {
		return Verdict{Answer: Wait, Reason: Storm, Until: until}
	}
	if until := s.releaseEnd(in); until.After(in.Now) {
		return Verdict{Answer: Wait, Reason: Release, Until: until}
	}
	if until := s.settled(in); until.After(in.Now) {
		return Verdict{Answer: Wait, Reason: Settle, Until: until}
	}
	return Verdict{Answer: Go}
}

// stormEnd gives when the storm is over if nothing changes any more, or when fewer rollouts count, if that is sooner.
func (s Settings) stormEnd(in Input) time.Time {
	if s.StormRolls <= 0 {
		return time.Time{}
	}
	count, oldest := s.recentRolls(in)
	if count < s.StormRolls {
		return time.Time{}
	}
	quiet := after(in, in.LastChange, s.quietFor(count))
	if forgotten := oldest.Add(s.StormWindow); forgotten.Before(quiet) {
		return forgotten
	}
	return quiet
}

// recentRolls counts the rollouts within the window. Those in the future do not count.
func (s Settings) recentRolls(in Input) (count int, oldest time.Time) {
	for _, r := range in.Rolls {
		if r.After(in.Now) || in.Now.Sub(r) >= s.StormWindow {
			continue
		}
		if count++; oldest.IsZero() || r.Before(oldest) {
			oldest = r
		}
	}
	return count, oldest
}

func (s Settings) quietFor(rolls int) time.Duration {
	quiet := s.StormQuiet
	for range rolls - s.StormRolls {
		if quiet >= s.StormWindow {
			break // before it overflows
		}
		quiet *= 2
	}
	return min(quiet, s.StormWindow)
}

func (s Settings) releaseEnd(in Input) time.Time {
	if in.ReleasePendingSince.IsZero() {
		return time.Time{}
	}
	return after(in, in.FirstChange, s.ReleaseWait)
}

func (s Settings) settled(in Input) time.Time {
	quiet, limit := after(in, in.LastChange, s.Settle), after(in, in.FirstChange, s.SettleMax)
	if limit.Before(quiet) {
		return limit
	}
	return quiet
}

// after adds to a time that has been, and gives the zero time for one that cannot have been.
func after(in Input, t time.Time, d time.Duration) time.Time {
	if t.IsZero() || t.After(in.Now) {
		return time.Time{}
	}
	return t.Add(d)
}
