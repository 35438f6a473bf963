package fleet

import (
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Judge says how far the pods of a workload are from the configuration that is applied, since when and why. The first of
// these that holds is the verdict:
//
//  1. Waiting: something that pods require is not applied, so none can start.
//  2. InStep: nothing is read that could differ.
//  3. Held: a rollout is held, or Tidemark is paused and pods are behind, or would be if any ran.
//  4. InStep: no pod runs that could differ.
//  5. Unpinned: in mode pin, pods do not read what their pins say. A rollback would not bring their configuration back,
//     whatever they run now, and no rollout mends it while the cause lasts.
//  6. LeftUnfinished: a rollout that need not end by itself leaves more than one revision running, for longer than it may; also
//     where nothing is read.
//  7. RolledBack: someone went back on purpose, no pod differs from another, and none is behind but on what is held back.
//  8. Rolling: pods are behind, or have just started, and a rollout goes on within its budget.
//  9. Split: pods are known to run different versions, whatever else is unknown.
//  10. Dormant: all pods are known to run one version that is not the applied one.
//  11. Unknown: something is not known that could make a difference.
//  12. InStep: every pod is known to run what is applied.
func Judge(f Fleet) Result {
	f.Settings = f.Settings.WithDefaults()
	s := look(&f)
	r := s.verdict()
	r.Since = r.Since.UTC().Truncate(time.Second)
	r.Unfinished = f.Partial.UnfinishedAt(f.Now)
	r.HeldBack, r.Behind, r.Versions = s.heldBack(), s.count(behind), s.versions()
	r.Changed, r.Differing, r.Said = s.changedAt().UTC(), s.differing(), s.said()
	for _, p := range s.pods {
		r.Pods = append(r.Pods, p.result)
	}
	r.Reason = strings.Join(append([]string{r.Reason}, s.remarks(r.Verdict)...), "; ")
	return r
}

// verdict tries the verdicts in the order of [Judge].
func (s survey) verdict() Result {
	for _, try := range []func() (Result, bool){
		s.waiting, s.nothing, s.held, s.empty, s.unpinned, s.leftUnfinished, s.rolledBack, s.rolling, s.split, s.dormant, s.unknown,
	} {
		if r, ok := try(); ok {
			return r
		}
	}
	return s.inStep()
}

func (s survey) waiting() (Result, bool) {
	var missing []stamp.Missing
	var since earliest
	for _, o := range s.Objects {
		if o.Live || o.Applied == nil {
			continue
		}
		if m := missingOf(o.Use, *o.Applied); len(m) > 0 {
			missing = append(missing, m...)
			since.add(trailing(o.Log, o.Use, func(c digest.Content) bool { return len(missingOf(o.Use, c)) > 0 }))
		}
	}
	var words []string
	if len(missing) > 0 {
		words = append(words, describeMissing(missing, s.Namespace))
	}
	if lost := s.lostCopies(); len(lost) > 0 {
		words = append(words, s.listed(lost)+", which the template pins")
		since.add(time.Time{})
	}
	if len(words) == 0 {
		return Result{}, false
	}
	return Result{Verdict: Waiting, Since: since.time, Reason: "missing: " + strings.Join(words, ", ")}, true
}

// earliest is the earliest of the times added; zero when any of them is not known.
type earliest struct {
	time    time.Time
	unknown bool
}

func (e *earliest) add(t time.Time) {
	e.unknown = e.unknown || t.IsZero()
	switch {
	case e.unknown:
		e.time = time.Time{}
	case e.time.IsZero() || t.Before(e.time):
		e.time = t
	}
}

func (s survey) nothing() (Result, bool) {
	reads, live := false, false
	for _, o := range s.Objects {
		reads, live = reads || !o.Live, live || o.Live
	}
	for range s.all {
		reads = true
		break
	}
	switch {
	case !reads && s.overdue() != nil:
		return Result{Verdict: LeftUnfinished, Since: s.overdue().Since, Reason: s.overdue().Text()}, true
	case !reads && live:
		return Result{Verdict: InStep, Reason: "reads only configuration that it reloads by itself"}, true
	case !reads:
		return Result{Verdict: InStep, Reason: "reads no configuration"}, true
	}
	return Result{}, false
}

func (s survey) empty() (Result, bool) {
	return Result{Verdict: InStep, Reason: "no pods run"}, len(s.pods) == 0
}

func (s survey) held() (Result, bool) {
	if s.Mode != stamp.Roll && s.Mode != stamp.Pin {
		return Result{}, false
	}
	if s.Record != nil && s.Record.Hold != nil {
		h := s.Record.Hold
		return Result{Verdict: Held, Since: h.Since, Reason: sentence("a rollout is held: "+string(h.Reason), s.facts())}, true
	}
	if s.Paused && s.count(behind) > 0 {
		return Result{Verdict: Held, Since: s.changedAt(), Reason: s.facts()}, true
	}
	if s.Paused && len(s.pods) == 0 {
		return s.heldEmpty()
	}
	return Result{}, false
}

// heldEmpty tells of a paused workload without pods whose stamp would be written: no pod shows that, the record does.
func (s survey) heldEmpty() (Result, bool) {
	changed := s.wanted()
	if len(changed) == 0 {
		return Result{}, false
	}
	var since time.Time
	var names []string
	for _, o := range changed {
		x := s.object(o)
		applied := x.Applied.Consumed(x.Use)
		at := trailing(x.Log, x.Use, func(c digest.Content) bool { return c.Consumed(x.Use) == applied })
		if since.IsZero() || !at.IsZero() && at.Before(since) {
			since = at
		}
		names = append(names, o.Relative(s.Namespace))
	}
	return Result{Verdict: Held, Since: since, Reason: sentence("a rollout is wanted for "+strings.Join(names, ", "), s.facts())}, true
}

func (s survey) unpinned() (Result, bool) {
	n, since := s.unmatched()
	if s.Mode != stamp.Pin || n == 0 {
		return Result{}, false
	}
	return Result{Verdict: Unpinned, Since: since, Reason: sentence(s.unmatchedText(), s.facts())}, true
}

// overdue is the rollout that is unfinished for longer than it may be; nil when there is none.
func (s survey) overdue() *Unfinished {
	if u := s.Partial.UnfinishedAt(s.Now); u != nil && u.Overdue {
		return u
	}
	return nil
}

func (s survey) leftUnfinished() (Result, bool) {
	u := s.overdue()
	if u == nil {
		return Result{}, false
	}
	return Result{Verdict: LeftUnfinished, Since: u.Since, Reason: sentence(u.Text(), s.facts())}, true
}

func (s survey) rolledBack() (Result, bool) {
	if s.Record == nil || s.Record.Stamp != s.Stamp || s.running() == 0 {
		return Result{}, false
	}
	if s.differ() || s.partly() || s.count(unsure, recently) > 0 || !s.behindOnPurpose() {
		return Result{}, false
	}
	if len(s.heldBack()) == 0 {
		return Result{}, false
	}
	r := Result{Verdict: RolledBack, Reason: sentence(wentBack, s.facts())}
	if last := s.Record.Last; last != nil {
		r.Since = last.Time
	}
	return r, true
}

const wentBack = "the workload went back to an older revision"

func (s survey) rolling() (Result, bool) {
	begun := s.rolloutBegun()
	if begun.IsZero() || s.Now.Sub(begun) > s.budget() || !s.goesOn() {
		return Result{}, false
	}
	return Result{Verdict: Rolling, Since: begun, Reason: s.facts()}, true
}

// budget is how long a rollout may take: also less than any would by itself, where the workload asks for that.
func (s survey) budget() time.Duration {
	if s.Budget > 0 {
		return s.Budget
	}
	return minBudget
}

func (s survey) split() (Result, bool) {
	if !s.differ() && !s.stalled() {
		return Result{}, false
	}
	return Result{Verdict: Split, Since: s.formed(), Reason: s.facts()}, true
}

func (s survey) dormant() (Result, bool) {
	if n := s.count(behind); n == 0 || n != s.running() || s.partly() {
		return Result{}, false
	}
	return Result{Verdict: Dormant, Since: s.changedAt(), Reason: s.facts()}, true
}

func (s survey) unknown() (Result, bool) {
	if s.running() > 0 && s.count(unsure, recently) == 0 && s.count(behind) == 0 {
		return Result{}, false
	}
	r := Result{Verdict: Unknown, Reason: sentence(s.known(), s.whyUnknown())}
	if hint := s.hint(); hint != "" {
		r.Possibly, r.Reason = Dormant, sentence(s.known(), hint)
	}
	return r, true
}

func (s survey) inStep() Result {
	var since time.Time
	for p, x := range s.all {
		if p.standing != current {
			continue
		}
		since = later(since, p.started())
		since = later(since, trailing(x.object.Log, x.use, func(c digest.Content) bool { return c.Consumed(x.use) == x.Applied }))
	}
	r := Result{Verdict: InStep, Since: since, Reason: s.facts()}
	if s.Record != nil && s.Record.Last != nil && s.Record.Last.Reason == stamp.RolledBack {
		r.Reason = sentence(wentBack, r.Reason)
	}
	return r
}

// behindOnPurpose reports whether pods are behind on nothing but what is held back.
func (s survey) behindOnPurpose() bool {
	held := s.heldBack()
	for _, x := range s.all {
		if x.Behind() && !slices.Contains(held, x.Object) {
			return false
		}
	}
	return true
}

// heldBack lists the objects that a rollback left on an older version on purpose.
func (s survey) heldBack() []workload.Object {
	if s.Record == nil {
		return nil
	}
	var out []workload.Object
	for _, o := range s.Objects {
		if !o.Live && s.Record.Objects[o.Use.Object.Relative(s.Namespace)].HeldBack {
			out = append(out, o.Use.Object)
		}
	}
	return out
}
