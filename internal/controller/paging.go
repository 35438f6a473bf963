package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	v1 "tidemark.dev/tidemark/api/v1"
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

	// signalled is from which exit status on a signal ended the command: 128 and its number.
	signalled = 128
)

// cancelledLately reports whether a lease is of a deploy that a signal ended, within the time in which people are told.
func cancelledLately(l *coordinationv1.Lease, now time.Time) bool {
	status, err := strconv.Atoi(l.Annotations[v1.AnnotationDeployExitStatus])
	ended, timeErr := time.Parse(time.RFC3339, l.Annotations[v1.AnnotationDeployEnded])
	return err == nil && timeErr == nil && status > signalled && now.Sub(ended) < cancelledFor
}

// tellPeople tells whoever started a deploy what became of it. What could not be read in this look neither begins nor ends.
func (d *deploys) tellPeople(all []deploy, incomplete bool) {
	var holds []notify.Message
	together := 0
	for _, one := range all {
		together = max(together, one.together)
		if m, once := one.message(); once {
			m.Once = true
			d.Notifier.Notify(m)
		} else if m.Key != "" {
			holds = append(holds, m)
		}
	}
	if together > staleTogether {
		holds = append(holds, notify.Message{
			Key: silentKey, Alert: "TidemarkGuardsSilent", Severity: notify.Page, Runbook: runbooks + "TidemarkGuardsSilent.md",
			Title: fmt.Sprintf("%d guards of deploys fell silent together: one failure of the cluster, or of what runs the jobs; nothing is recovered", together),
		})
	}
	d.Notifier.Sync(pagingSource, holds, func(key string) bool {
		return incomplete || slices.ContainsFunc(all, func(one deploy) bool {
			return one.watched && (key == silentKey || strings.HasPrefix(key, one.prefix()))
		})
	})
}

// message is what people are told of one release; its Key is "" for nothing, and once says that it happened and is over.
func (d deploy) message() (m notify.Message, once bool) {
	m = notify.Message{
		Severity: notify.Note, Since: d.verdict.Since, Labels: map[string]string{"kind": "Release", "namespace": d.Namespace, "name": d.Name},
		Facts: []notify.Fact{{Name: "release", Value: d.Name + " in namespace " + d.Namespace}, {Name: "why", Value: d.plan.Why}},
	}
	deployID := ""
	if l := d.Lease; l != nil {
		deployID, m.Person = l.Deploy, l.Starter
		for _, f := range []notify.Fact{{Name: "started by", Value: l.Starter}, {Name: "job", Value: l.Job}} {
			if f.Value != "" {
				m.Facts = append(m.Facts, f)
			}
		}
	}
	newest := d.verdict.Newest
	switch cancelled := d.Lease != nil && d.Lease.Finished != nil && d.Lease.Finished.ExitStatus > signalled; {
	case d.together > staleTogether: // one message for all of them
		return notify.Message{}, false
	case d.verdict.State == release.Abandoned:
		m.Key, m.Alert, m.Severity = d.key("abandoned", deployID), "TidemarkReleaseAbandoned", notify.Page
		m.Title = fmt.Sprintf("The deploy of release %s left revision %d %s and cannot come back: %s", d.Name, newest.Number, newest.Status, d.ending())
		m.Facts = append(m.Facts, notify.Fact{Name: "remedy", Value: fmt.Sprintf("tidemark releases recover %s -n %s", d.Name, d.Namespace)})
	case d.plan.Action == release.DoReport:
		m.Key, m.Alert = d.key("pending", strconv.FormatInt(newest.Number, 10)), "TidemarkReleasePending"
		m.Title = fmt.Sprintf("Release %s needs a person: revision %d is %s, state %s", d.Name, newest.Number, newest.Status, d.verdict.State)
	case d.verdict.State == release.Outrun:
		m.Key, m.Alert, once = d.key("superseded", deployID), "TidemarkDeployCancelled", true
		m.Title = fmt.Sprintf("The deploy of release %s ended without a word; revision %d has replaced its own since", d.Name, newest.Number)
	case cancelled && d.verdict.Operation == release.NoOperation && newest.Number <= d.Lease.Revision:
		m.Key, m.Alert, once = d.key("cancelled", deployID), "TidemarkDeployCancelled", true
		m.Title = fmt.Sprintf("The deploy of release %s was cancelled: %s; revision %d is %s", d.Name, d.ending(), newest.Number, newest.Status)
	}
	if m.Key == "" {
		return notify.Message{}, false
	}
	m.Runbook = runbooks + m.Alert + ".md"
	return m, once
}

func (d deploy) key(what, which string) string {
	return d.prefix() + what + "/" + which
}

// prefix is that of the keys of all messages about the release.
func (d deploy) prefix() string { return fmt.Sprintf("release/%s/%s/", d.Namespace, d.Name) }

// ending says what ended the command, as far as that is known.
func (d deploy) ending() string {
	switch l := d.Lease; {
	case l == nil:
		return "nobody knows what ended it"
	case l.Finished == nil && d.Life == release.Dead:
		return "its guard fell silent and its job's pod is gone"
	case l.Finished == nil:
		return "its guard fell silent"
	case l.Finished.ExitStatus > signalled:
		signal := syscall.Signal(l.Finished.ExitStatus - signalled)
		return fmt.Sprintf("signal %d (%s) ended its command", int(signal), signal)
	default:
		return fmt.Sprintf("its command ended with exit status %d", l.Finished.ExitStatus)
	}
}
