package pace

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/stamp"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

func ago(durations ...time.Duration) []time.Time {
	var times []time.Time
	for _, d := range durations {
		times = append(times, at(-d))
	}
	return times
}

func TestDecide(t *testing.T) {
	const s, m = time.Second, time.Minute
	wait := func(r Reason, in time.Duration) Verdict { return Verdict{Answer: Wait, Reason: r, Until: at(in)} }
	rollsNow := Verdict{Answer: Go}
	for name, tc := range map[string]struct {
		settings func(*Settings)
		in       Input // Now is noon
		want     Verdict
	}{
		"a change settles for two seconds":   {in: Input{FirstChange: at(0), LastChange: at(0)}, want: wait(Settle, 2*s)},
		"another change settles anew":        {in: Input{FirstChange: at(-3 * s), LastChange: at(-s)}, want: wait(Settle, s)},
		"quiet for two seconds rolls":        {in: Input{FirstChange: at(-3 * s), LastChange: at(-2 * s)}, want: rollsNow},
		"settling is bounded":                {in: Input{FirstChange: at(-9 * s), LastChange: at(0)}, want: wait(Settle, s)},
		"settling has an end":                {in: Input{FirstChange: at(-10 * s), LastChange: at(0)}, want: rollsNow},
		"no settling when it is off":         {settings: func(s *Settings) { s.Settle = 0 }, in: Input{FirstChange: at(0), LastChange: at(0)}, want: rollsNow},
		"times that are not known are past":  {want: rollsNow},
		"times in the future are past":       {in: Input{FirstChange: at(m), LastChange: at(m)}, want: rollsNow},
		"a pause has no end of its own":      {in: Input{Paused: true, FirstChange: at(0), LastChange: at(0)}, want: Verdict{Answer: Wait, Reason: Paused}},
		"a pause comes before a storm":       {in: Input{Paused: true, LastChange: at(0), Rolls: ago(s, 2*s, 3*s)}, want: Verdict{Answer: Wait, Reason: Paused}},
		"a pending release is waited for":    {in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), ReleasePendingSince: at(-6 * s)}, want: wait(Release, 55*s)},
		"a release pending too long is not":  {in: Input{FirstChange: at(-m), LastChange: at(-m), ReleasePendingSince: at(-2 * m)}, want: rollsNow},
		"a release is not waited for if off": {settings: func(s *Settings) { s.ReleaseWait = 0 }, in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), ReleasePendingSince: at(-6 * s)}, want: rollsNow},
		"two rolls are no storm":             {in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), Rolls: ago(m, 2*m)}, want: rollsNow},
		"three rolls ask for 30s of quiet":   {in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), Rolls: ago(m, 2*m, 3*m)}, want: wait(Storm, 25*s)},
		"quiet ends the storm":               {in: Input{FirstChange: at(-30 * s), LastChange: at(-30 * s), Rolls: ago(m, 2*m, 3*m)}, want: rollsNow},
		"a fourth roll doubles the quiet":    {in: Input{LastChange: at(-5 * s), Rolls: ago(m, 2*m, 3*m, 4*m)}, want: wait(Storm, 55*s)},
		"quiet never exceeds the window":     {in: Input{LastChange: at(0), Rolls: ago(s, s, s, s, s, s, s, s)}, want: wait(Storm, 10*m-s)},
		"a roll that leaves the window ends": {in: Input{LastChange: at(0), Rolls: ago(m, 2*m, 10*m-3*s)}, want: wait(Storm, 3*s)},
		"rolls beyond the window are past":   {in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), Rolls: ago(m, 2*m, 10*m)}, want: rollsNow},
		"rolls in the future do not count":   {in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), Rolls: ago(-m, -2*m, -48*60*m, m)}, want: rollsNow},
		"no storm when it is off":            {settings: func(s *Settings) { s.StormRolls = 0 }, in: Input{FirstChange: at(-5 * s), LastChange: at(-5 * s), Rolls: ago(s, s, s, s)}, want: rollsNow},
		"a storm comes before a release":     {in: Input{FirstChange: at(0), LastChange: at(0), Rolls: ago(m, 2*m, 3*m), ReleasePendingSince: at(0)}, want: wait(Storm, 30*s)},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Defaults()
			if tc.settings != nil {
				tc.settings(&settings)
			}
			tc.in.Now = noon
			if diff := cmp.Diff(tc.want, settings.Decide(tc.in)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Settings)
		want   string // part of the error; "" for none
	}{
		"the defaults":                {change: func(*Settings) {}},
		"everything off":              {change: func(s *Settings) { *s = Settings{} }},
		"a bound shorter than settle": {change: func(s *Settings) { s.SettleMax = time.Second }, want: "shorter than settle"},
		"more rolls than remembered":  {change: func(s *Settings) { s.StormRolls = 9 }, want: "only the last 8"},
		"no quiet":                    {change: func(s *Settings) { s.StormQuiet = 0 }, want: "storm quiet 0s"},
		"quiet beyond the window":     {change: func(s *Settings) { s.StormWindow = time.Second }, want: "storm window 1s"},
		"a negative number":           {change: func(s *Settings) { s.StormRolls = -1 }, want: "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Defaults()
			tc.change(&s)
			err := s.Validate()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// flap is a content that takes the next of so many values every period, for a while.
type flap struct {
	period, length time.Duration
	values         int
}

func (f flap) at(t time.Duration) int {
	return int(min(t, f.length)/f.period) % f.values
}

// simulate lets one workload live through a flap, looking every second, and returns when it rolled. In the end it must be
// on the last value.
func simulate(t *testing.T, f flap, observe time.Duration) []time.Duration {
	t.Helper()
	settings := Defaults()
	var all []time.Duration
	var rolls []time.Time
	var first, last time.Time
	accounted, seen := f.at(0), f.at(0)
	for now := time.Duration(0); now <= observe; now += time.Second {
		content := f.at(now)
		if content != seen {
			seen, last = content, at(now)
		}
		if content == accounted {
			first = time.Time{}
			continue
		}
		if first.IsZero() {
			first = at(now)
		}
		v := settings.Decide(Input{Now: at(now), FirstChange: first, LastChange: last, Rolls: rolls})
		if v.Answer == Go {
			accounted, first = content, time.Time{}
			all = append(all, now)
			rolls = append(rolls, at(now))
			rolls = rolls[max(0, len(rolls)-stamp.MaxRolls):]
		}
	}
	if accounted != seen {
		t.Errorf("after all, the workload is on value %d, want %d", accounted, seen)
	}
	return all
}

func TestAFlapEverySecondGivesAHandfulOfRollouts(t *testing.T) {
	for name, tc := range map[string]struct {
		flap flap
	}{
		"two values for one minute":    {flap{time.Second, time.Minute, 2}},
		"three values for one minute":  {flap{time.Second, time.Minute, 3}},
		"two values for ten minutes":   {flap{time.Second, 10*time.Minute - time.Second, 2}},
		"three values for ten minutes": {flap{time.Second, 10 * time.Minute, 3}},
		"new values for ten minutes":   {flap{time.Second, 10 * time.Minute, 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			rolls := simulate(t, tc.flap, tc.flap.length+20*time.Minute)
			during, after := 0, 0
			for _, r := range rolls {
				if r <= tc.flap.length {
					during++
				} else {
					after++
				}
			}
			if during > 4 || after > 1 {
				t.Errorf("%d rollouts during the flap and %d after, want at most 4 and 1: %v", during, after, rolls)
			}
		})
	}
}

func TestAFlapOfAnyPeriodIsBounded(t *testing.T) {
	const perTenMinutes, perHour = 6, 31 // as documented at Decide
	for period := time.Second; period <= 5*time.Minute; period += time.Second {
		for _, values := range []int{2, 3} {
			rolls := simulate(t, flap{period, 2 * time.Hour, values}, 2*time.Hour+15*time.Minute)
			if n := most(rolls, 10*time.Minute); n > perTenMinutes {
				t.Errorf("period %s, %d values: %d rollouts within ten minutes, want at most %d", period, values, n, perTenMinutes)
			}
			if n := most(rolls, time.Hour); n > perHour {
				t.Errorf("period %s, %d values: %d rollouts within an hour, want at most %d", period, values, n, perHour)
			}
		}
	}
}

// most counts the most rollouts within any stretch of the given length.
func most(rolls []time.Duration, length time.Duration) int {
	best := 0
	for i := range rolls {
		n := 0
		for _, r := range rolls[i:] {
			if r < rolls[i]+length {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}
