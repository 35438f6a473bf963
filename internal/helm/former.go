package helm

import (
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/release"
)

// Former is a deploy that did not end by itself, and whose Lease another guard has taken since.
type Former struct {
	// Lease has what is kept of it: Deploy, Revision, Starter, Job, Signal and Finished.
	Lease release.Lease
	// Taken is when the other took the Lease, by the API server's clock.
	Taken time.Time
}

const (
	// formersKept is for how long a former deploy is kept on the Lease, and with it the time in which its starter can be told.
	formersKept = 24 * time.Hour
	// maxFormers bounds how many are kept; the oldest goes first.
	maxFormers = 5
)

// Formers are the deploys before that of the Lease whose starters are to be told what became of them, the oldest first. What cannot
// be read is none: it is for people alone.
func Formers(l *coordinationv1.Lease, now time.Time) []Former {
	var kept []v1.FormerDeploy
	if json.Unmarshal([]byte(l.Annotations[v1.AnnotationDeployBefore]), &kept) != nil {
		return nil
	}
	var out []Former
	for _, k := range kept {
		if k.ID == "" || now.Sub(k.Taken) >= formersKept {
			continue
		}
		f := Former{release.Lease{Deploy: k.ID, Revision: k.Revision, Starter: k.Starter, Job: k.Job, Signal: k.Signal}, k.Taken}
		if k.ExitStatus != nil {
			f.Lease.Finished = &release.Outcome{Time: k.Ended, ExitStatus: *k.ExitStatus, Stopped: release.Stop(k.Stopped)}
		}
		out = append(out, f)
	}
	return out
}

// EncodeFormers is the annotation for a guard that takes a Lease at now, by the API server's clock: what that kept, and its own
// deploy unless it ended by itself, or so long ago that its starter was told. It is "" for none.
func EncodeFormers(l *coordinationv1.Lease, now time.Time) string {
	formers := Formers(l, now)
	lease, err := DecodeLease(l, now)
	if err == nil && lease.Deploy != "" && lease.Unchanged < formersKept && (lease.Finished == nil || lease.Cancelled()) {
		formers = append(formers, Former{*lease, now})
	}
	formers = slices.Clone(formers[max(0, len(formers)-maxFormers):])
	if len(formers) == 0 {
		return ""
	}
	var kept []v1.FormerDeploy
	for _, f := range formers {
		kept = append(kept, f.document())
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "" // cannot be: text, numbers and times
	}
	return string(text)
}

func (f Former) document() v1.FormerDeploy {
	l := f.Lease
	out := v1.FormerDeploy{Taken: f.Taken.UTC().Truncate(time.Second)}
	out.ID, out.Revision, out.Starter, out.Job, out.Signal = l.Deploy, l.Revision, l.Starter, l.Job, l.Signal
	if l.Finished != nil {
		out.Ended, out.ExitStatus, out.Stopped = l.Finished.Time.UTC(), &l.Finished.ExitStatus, string(l.Finished.Stopped)
	}
	return out
}
