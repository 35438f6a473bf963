package fleet

import (
	"fmt"
	"time"
)

// calm is for how long no container of a canary may have ended before the canary is promoted.
const calm = 10 * time.Minute

// Canary is a rollout that waits, with what its workload asks for, as far as it matters to whether Tidemark promotes it.
type Canary struct {
	// After is how long a pause may last before the canary is promoted; 0 for as long as it likes.
	After time.Duration
	// Causes are why the rollout waits, all of them, and Since is when its pause began.
	Causes []Cause
	Since  time.Time
	// Timed says that the pause ends by itself.
	Timed bool
	// Stopped says that Tidemark must not write; "" when it may.
	Stopped string
	// Wanted is how many pods the newer revision is to have, and Pods are those that it has.
	Wanted int
	Pods   []Pod
}

// Promotion says whether a canary is to be promoted.
type Promotion struct {
	// Now says that it is.
	Now bool
	// At is when it will be, if nothing stands in the way; zero when that is not known.
	At time.Time
	// Why is what stands in the way, for people; "" when only the time does, or when nothing is asked for.
	Why string
}

// Promote decides whether a canary is promoted. Only a step that pauses until somebody goes on is passed, never an abort, an
// analysis that did not decide or a person's pause, and only when the pods of the newer revision are all there, ready, and none
// of their containers has ended of late.
func Promote(c Canary, now time.Time) Promotion {
	if c.After <= 0 || len(c.Causes) == 0 {
		return Promotion{}
	}
	for _, cause := range c.Causes {
		if cause != CanaryPause {
			return Promotion{Why: "it waits for another reason than a step of a canary: " + string(cause)}
		}
	}
	switch {
	case c.Timed:
		return Promotion{Why: "its pause ends by itself"}
	case c.Since.IsZero():
		return Promotion{Why: "it is not known since when it pauses"}
	case now.Sub(c.Since) < c.After:
		return Promotion{At: c.Since.Add(c.After)}
	case c.Stopped != "":
		return Promotion{Why: "Tidemark is paused " + c.Stopped}
	}
	if why := c.ailment(now); why != "" {
		return Promotion{Why: why}
	}
	return Promotion{Now: true, At: now}
}

// ailment is why the newer revision is not healthy; "" when it is.
func (c Canary) ailment(now time.Time) string {
	if c.Wanted < 1 {
		return "the newer revision is to have no pods"
	}
	ready := 0
	for i := range c.Pods {
		p := &c.Pods[i]
		if p.Terminating {
			continue
		}
		for _, container := range p.Containers {
			if container.Restarts > 0 && now.Sub(container.PreviousEnded) < calm {
				return fmt.Sprintf("container %s of %s ended within the last %s", container.Name, p.Name, calm)
			}
		}
		if !p.Ready {
			return p.Name + " is not ready"
		}
		ready++
	}
	if ready < c.Wanted {
		return fmt.Sprintf("%d of %d pods of the newer revision are ready", ready, c.Wanted)
	}
	return ""
}
