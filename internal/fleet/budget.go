package fleet

import "time"

const (
	// startupAllowance is how long a pod may take to become ready, before its minReadySeconds count.
	startupAllowance = time.Minute
	// minBudget is the least that any rollout may take.
	minBudget = 2 * time.Minute
)

// Rollout is what the spec of a workload says of how it rolls. Percentages are resolved to pods.
type Rollout struct {
	// Replicas is how many pods are wanted; Partition, how many of them are left as they are.
	Replicas, Partition int
	// MaxSurge and MaxUnavailable are how many pods move at once. A workload that replaces all its pods at once has
	// MaxUnavailable as large as Replicas.
	MaxSurge, MaxUnavailable int
	// Pauses is how long the rollout stands still on purpose, all in all.
	Pauses time.Duration
	// MinReady is how long a pod must be ready to count.
	MinReady time.Duration
	// ProgressDeadline is after how long without progress the workload's own controller gives up; zero when it never does.
	ProgressDeadline time.Duration
	// Override is the budget that the workload asks for itself; zero when it does not.
	Override time.Duration
}

// Budget is how long a rollout should take: the number of waves, each of as many pods as move at once, times how long a
// wave may take. That is MinReady and a minute for starting, but no longer than the ProgressDeadline, after which the
// workload's own controller calls the rollout failed. Pauses come on top. It is never less than two minutes, unless the
// workload says so.
func Budget(r Rollout) time.Duration {
	if r.Override > 0 {
		return r.Override
	}
	moving := max(r.Replicas-r.Partition, 0)
	atOnce := max(r.MaxSurge+r.MaxUnavailable, 1)
	waves := (moving + atOnce - 1) / atOnce
	wave := r.MinReady + startupAllowance
	if r.ProgressDeadline > 0 {
		wave = min(wave, r.ProgressDeadline)
	}
	return max(time.Duration(waves)*wave+r.Pauses, minBudget)
}
