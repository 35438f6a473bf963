package release

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy says what may be done about an abandoned operation.
type Policy string

// The policies.
const (
	// PolicyReport only tells people.
	PolicyReport Policy = "report"
	// PolicyForward marks the pending revision failed and touches no workload, so that the next upgrade is accepted.
	PolicyForward Policy = "forward"
	// PolicyRollback rolls back to the highest deployed revision.
	PolicyRollback Policy = "rollback"
	// PolicyUninstall uninstalls a first install.
	PolicyUninstall Policy = "uninstall"
)

// Policies are all policies, the weakest first.
func Policies() []Policy {
	return []Policy{PolicyReport, PolicyForward, PolicyRollback, PolicyUninstall}
}

// ParsePolicy reads a policy.
func ParsePolicy(text string) (Policy, error) {
	if slices.Contains(Policies(), Policy(text)) {
		return Policy(text), nil
	}
	var names []string
	for _, p := range Policies() {
		names = append(names, string(p))
	}
	return "", fmt.Errorf("%q is no policy: write one of %s", text, strings.Join(names, ", "))
}

// Weakened is the policy where a deploy's lease allows no more than the other: a lease may weaken what is configured, never
// strengthen it. Rollback and uninstall are not more or less than each other, so where they differ nothing is allowed.
func (p Policy) Weakened(allowed Policy) Policy {
	acts := func(p Policy) bool { return p == PolicyRollback || p == PolicyUninstall }
	switch {
	case allowed == "" || allowed == p:
		return p
	case !slices.Contains(Policies(), allowed), acts(p) && acts(allowed):
		return PolicyReport
	}
	return Policies()[min(slices.Index(Policies(), p), slices.Index(Policies(), allowed))]
}

// Actor is who would act.
type Actor string

// The actors.
const (
	// ByController acts by itself, with rights in the whole cluster.
	ByController Actor = "controller"
	// ByPreflight acts before a guarded command, with the rights of who started it.
	ByPreflight Actor = "preflight"
	// ByPerson was told to act on this one release.
	ByPerson Actor = "person"
)

// Action is what happens next.
type Action string

// The actions.
const (
	DoNothing   Action = "none"
	DoReport    Action = "report"
	DoForward   Action = "forward"
	DoRollback  Action = "rollback"
	DoUninstall Action = "uninstall"
)

// Writes reports whether the action changes anything.
func (a Action) Writes() bool { return a == DoForward || a == DoRollback || a == DoUninstall }

// Request is who would act, and how far they may go.
type Request struct {
	Now    time.Time
	Actor  Actor
	Policy Policy
	// ReportAfter is for how long an operation that lives may be under way before it is reported. Default 30m; 0 never.
	ReportAfter time.Duration
	// UnguardedAfter is the age from which a preflight treats an unguarded operation as abandoned; 0 for never.
	UnguardedAfter time.Duration
	// Foreign names another tool that owns the release and recovers it by its own rules, such as Flux; "" for none.
	Foreign string
}

// Plan is what happens next about a release.
type Plan struct {
	Action Action
	// To is the revision of a rollback, or the one that is marked failed.
	To int64
	// Why is a sentence for people.
	Why string
}

// Decide says what the actor does about a release. In doubt it reports.
func Decide(v Verdict, q Request) Plan {
	switch v.State {
	case Healthy, Residue, Outrun, Silent:
		return Plan{Action: DoNothing, Why: v.Reason}
	case Live, Overdue, Unknown:
		return watch(v, q)
	case Abandoned:
		return recovery(v, q)
	case Unguarded:
		if why := q.unguarded(v); why != "" {
			p := watch(v, q)
			p.Why = v.Reason + "; " + why
			return p
		}
		return recovery(v, q)
	}
	return Plan{Action: DoReport, Why: v.Reason}
}

// watch reports what may be alive when it has gone on for long, is past its own timeout, or was probably left.
func watch(v Verdict, q Request) Plan {
	late := q.ReportAfter > 0 && v.Age(q.Now) > q.ReportAfter
	if v.State == Overdue || v.State == Unknown && v.Operation == NoOperation || late || v.Left {
		return Plan{Action: DoReport, Why: v.Reason}
	}
	return Plan{Action: DoNothing, Why: v.Reason}
}

// unguarded says why the actor may not touch an unguarded operation; "" when it may.
func (q Request) unguarded(v Verdict) string {
	switch q.Actor {
	case ByPerson:
		return ""
	case ByPreflight:
		switch {
		case q.UnguardedAfter <= 0:
			return "it may be alive: find out who started it, then run tidemark releases recover"
		case v.Since.IsZero() || v.Age(q.Now) < q.UnguardedAfter:
			return "it is younger than " + q.UnguardedAfter.String()
		}
		return ""
	case ByController:
	}
	return "nobody but a person can know whether it is alive: tidemark releases recover"
}

// recovery is what is done about an operation that is taken for dead.
func recovery(v Verdict, q Request) Plan {
	report := func(why string) Plan { return Plan{Action: DoReport, Why: v.Reason + "; " + why} }
	policy := q.Policy.Weakened(v.Allowed)
	switch {
	case v.Busy:
		return report("a guard is at work on the release")
	case v.Operation == Uninstall:
		return report("what was uninstalled is not known, so a person must finish it: helm uninstall")
	case q.Foreign != "":
		return report(q.Foreign + " owns the release and recovers it")
	case q.Actor == ByController && policy != PolicyReport && policy != PolicyForward:
		return report("the controller never does a " + string(policy))
	}
	switch policy {
	case PolicyForward:
		return Plan{Action: DoForward, To: v.Newest.Number, Why: v.Reason}
	case PolicyRollback:
		if v.Good == 0 {
			return report("there is no deployed revision to roll back to")
		}
		return Plan{Action: DoRollback, To: v.Good, Why: v.Reason}
	case PolicyUninstall:
		if v.Operation != Install || !v.First {
			return report("only a first install is ever uninstalled")
		}
		return Plan{Action: DoUninstall, To: v.Newest.Number, Why: v.Reason}
	case PolicyReport:
	}
	return report("policy report leaves it to a person: tidemark releases recover")
}
