package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/release"
)

const (
	// pagingSource is the name of the set of what holds of Helm releases.
	pagingSource = "releases"
	// silentKey is that of the one message for guards that fell silent together.
	silentKey = "releases/silent"
	// cancelledFor is for how long it is told that a deploy was cancelled, once, after it ended.
	cancelledFor = 24 * time.Hour
)

// cancelledLately reports whether a lease is of a deploy that was cancelled, within the time in which people are told.
func cancelledLately(l *release.Lease, now time.Time) bool {
	return l.Cancelled() && now.Sub(l.Finished.Time) < cancelledFor
}

// tellPeople tells whoever started a deploy what became of it. What could not be read in this look neither begins nor ends.
func (d *deploys) tellPeople(all []deploy, incomplete bool) {
	var holds []notify.Message
	for _, one := range all {
		if m, once := one.message(); once {
			m.Once = true
			d.Notifier.Notify(m)
		} else if m.Key != "" {
			holds = append(holds, m)
		}
		for _, m := range one.overdue() {
			m.Once = true
			d.Notifier.Notify(m)
		}
	}
	if m := silentTogether(all); m.Key != "" {
		holds = append(holds, m)
	}
	d.Notifier.Sync(pagingSource, holds, func(key string) bool {
		return incomplete || slices.ContainsFunc(all, func(one deploy) bool { return one.keeps(key) })
	})
}

// silentTogether is the one message for guards that fell silent together; its Key is "" when none did. It dates from the last write of
// the first of them, which every leader reads alike: that tells this incident from the next one under the same key.
func silentTogether(all []deploy) notify.Message {
	together := 0
	var since time.Time
	for _, one := range all {
		if one.together <= staleTogether {
			continue
		}
		together = max(together, one.together)
		if at := one.Lease.Written; !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	if together == 0 {
		return notify.Message{}
	}
	return notify.Message{
		Key: silentKey, Alert: "TidemarkGuardsSilent", Severity: notify.Page, Since: since, Runbook: runbooks + "TidemarkGuardsSilent.md",
		Title: fmt.Sprintf("%d guards of deploys fell silent together: one failure of the cluster, or of what runs the jobs; nothing is recovered", together),
	}
}

// keeps reports whether it is not known now if what holds under the key still does. So it is while a guard is watched, and so with what
// an earlier deploy left while a newer one is at work: its guard may refuse, and put everything back.
func (d deploy) keeps(key string) bool {
	switch {
	case d.watched:
		return key == silentKey || strings.HasPrefix(key, d.prefix())
	case d.verdict.Busy:
		return strings.HasPrefix(key, d.key("abandoned", "")) && key != d.abandoned()
	}
	return false
}

// message is what people are told of one release; its Key is "" for nothing, and once says that it happened and is over.
func (d deploy) message() (m notify.Message, once bool) {
	m = d.about(d.Teller(d.verdict))
	newest := d.verdict.Newest
	switch {
	case d.together > staleTogether: // one message for all of them
		return notify.Message{}, false
	case d.verdict.State == release.Abandoned:
		m.Key, m.Alert, m.Severity = d.abandoned(), "TidemarkReleaseAbandoned", notify.Page
		m.Title = fmt.Sprintf("The deploy of release %s left revision %d %s and cannot come back: %s", d.Name, newest.Number, newest.Status, ending(d.Lease, d.Life))
		m.Facts = append(m.Facts, notify.Fact{Name: "remedy", Value: d.remedy()})
	case d.verdict.Left:
		m.Key, m.Alert, m.Severity = d.abandoned(), "TidemarkReleaseAbandoned", notify.Page
		m.Title = fmt.Sprintf("The deploy of release %s probably left revision %d %s: %s", d.Name, newest.Number, newest.Status, ending(d.Lease, d.Life))
		m.Facts = append(m.Facts, notify.Fact{Name: "remedy", Value: "find out that nothing of its job runs any more, then " + d.remedy()})
	case d.plan.Action == release.DoReport:
		m.Key, m.Alert = d.key("pending", strconv.FormatInt(newest.Number, 10)), "TidemarkReleasePending"
		m.Title = fmt.Sprintf("Release %s needs a person: revision %d is %s, state %s", d.Name, newest.Number, newest.Status, d.verdict.State)
		if newest.Number == 0 {
			m.Title = fmt.Sprintf("Release %s needs a person: no record tells its revision, state %s", d.Name, d.verdict.State)
		}
	case d.silentLately(), d.verdict.Operation == release.NoOperation && cancelledLately(d.Lease, d.Now):
		return d.end(d.Lease), true
	}
	if m.Key == "" {
		return notify.Message{}, false
	}
	m.Runbook = runbooks + m.Alert + ".md"
	return m, false
}

// silentLately reports whether the guard fell silent, and left nothing pending, within the time in which people are told.
func (d deploy) silentLately() bool {
	if d.verdict.State != release.Outrun && d.verdict.State != release.Silent {
		return false
	}
	return d.Lease.Written.IsZero() || d.Now.Sub(d.Lease.Written) < cancelledFor
}

// overdue are the ends of deploys whose lease another guard took, which is to be told once that one's own work is done.
func (d deploy) overdue() []notify.Message {
	var out []notify.Message
	switch d.verdict.State {
	case release.Healthy, release.Residue, release.Outrun, release.Silent:
		for _, f := range d.Formers {
			out = append(out, d.end(&f.Lease))
		}
	case release.Live, release.Overdue, release.Abandoned, release.Unguarded, release.Unknown: // not yet
	}
	return out
}

// end tells that a deploy ended before its time, and what the release is in since. It has one key for each deploy, however that was
// found out.
func (d deploy) end(l *release.Lease) notify.Message {
	m := d.about(l)
	m.Key, m.Alert = d.key("ended", l.Deploy), "TidemarkDeployCancelled"
	how := "ended without a word"
	if l.Cancelled() {
		how = "was cancelled"
	}
	m.Title = fmt.Sprintf("The deploy of release %s %s: %s; %s", d.Name, how, ending(l, release.LifeUnknown), standing(l, d.verdict.Newest))
	m.Runbook = runbooks + m.Alert + ".md"
	return m
}

// about is a message about the release, to whoever started the deploy.
func (d deploy) about(l *release.Lease) notify.Message {
	m := notify.Message{
		Severity: notify.Note, Since: d.verdict.Since, Labels: map[string]string{"kind": "Release", "namespace": d.Namespace, "name": d.Name},
		Facts: []notify.Fact{{Name: "release", Value: d.Name + " in namespace " + d.Namespace}, {Name: "why", Value: d.plan.Why}},
	}
	if l == nil {
		return m
	}
	m.Person = l.Starter
	podEnd := ""
	if l == d.Lease { // it is of no deploy before
		podEnd = d.PodEnd
	}
	for _, f := range []notify.Fact{{Name: "started by", Value: l.Starter}, {Name: "job", Value: l.Job}, {Name: "its pod was ended by", Value: podEnd}} {
		if f.Value != "" {
			m.Facts = append(m.Facts, f)
		}
	}
	return m
}

// remedy is the command that a person runs about what is under way.
func (d deploy) remedy() string {
	if d.verdict.Operation == release.Uninstall {
		return fmt.Sprintf("helm uninstall %s -n %s", d.Name, d.Namespace)
	}
	return fmt.Sprintf("tidemark releases recover %s -n %s", d.Name, d.Namespace)
}

// abandoned is the key of the message that the deploy of the lease left the release pending.
func (d deploy) abandoned() string { return d.key("abandoned", d.Lease.Deploy) }

func (d deploy) key(what, which string) string {
	return d.prefix() + what + "/" + which
}

// prefix is that of the keys of all messages about the release.
func (d deploy) prefix() string { return fmt.Sprintf("release/%s/%s/", d.Namespace, d.Name) }

// ending says what ended the command of a deploy, as far as that is known.
func ending(l *release.Lease, life release.Life) string {
	switch {
	case l.Finished == nil && life == release.Dead:
		return "its guard fell silent and its job's pod is gone"
	case l.Finished == nil:
		return "its guard fell silent"
	default:
		return prompted(l) + exit(l.Finished)
	}
}

// prompted says what came before the end of the command, and probably led to it; "" where nothing is known of that.
func prompted(l *release.Lease) string {
	switch {
	case l.Signal != "" && l.Signalled.IsZero():
		return "its guard got " + l.Signal + ", and "
	case l.Signal != "":
		return fmt.Sprintf("its guard got %s at %s, and ", l.Signal, l.Signalled.UTC().Format(time.RFC3339))
	case l.Finished.Stopped == release.StoppedAtTimeout:
		return "its guard stopped it at its timeout, and "
	case l.Finished.Stopped == release.StoppedInSilence:
		return "its guard could not renew its lease and stopped it, and "
	}
	return ""
}

func exit(o *release.Outcome) string {
	if n := o.Signal(); n > 0 {
		return fmt.Sprintf("signal %d (%s) ended its command", n, syscall.Signal(n))
	}
	return fmt.Sprintf("its command ended with exit status %d", o.ExitStatus)
}

// standing says what the release is in after a deploy.
func standing(l *release.Lease, newest release.Revision) string {
	switch {
	case newest.Number == 0:
		return "no record of the release is in the cluster"
	case l.Revision > 0 && l.Revision < newest.Number:
		return fmt.Sprintf("revision %d has replaced its revision %d, and is %s", newest.Number, l.Revision, newest.Status)
	}
	return fmt.Sprintf("revision %d is %s", newest.Number, newest.Status)
}
