package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// judgedRelease is a release with its verdict, and with what happens next.
type judgedRelease struct {
	helm.Release
	verdict release.Verdict
	plan    release.Plan
}

func judgeReleases(all []helm.Release, q release.Request) []judgedRelease {
	out := make([]judgedRelease, 0, len(all))
	for _, r := range all {
		v := release.Judge(r.Input)
		q.Now, q.Foreign = r.Now, r.Foreign
		out = append(out, judgedRelease{r, v, release.Decide(v, q)})
	}
	return out
}

const none = "<none>"

func printReleases(out io.Writer, all []judgedRelease, withNamespace, wide, headers bool) error {
	w := printers.GetNewTabWriter(out)
	line := func(namespace string, columns ...string) {
		if withNamespace {
			columns = append([]string{namespace}, columns...)
		}
		fmt.Fprintln(w, strings.Join(columns, "\t"))
	}
	columns := []string{"NAME", "REVISION", "STATUS", "AGE", "STATE", "STARTED-BY", "HEARTBEAT", "NEXT"}
	if wide {
		columns = append(columns, "JOB", "WHY")
	}
	if headers {
		line("NAMESPACE", columns...)
	}
	for _, r := range all {
		starter, heartbeat, job := r.deployText()
		columns = []string{
			r.Name, r.revisionText(), cmp.Or(string(r.verdict.Newest.Status), "<unknown>"), r.ageText(), string(r.verdict.State),
			starter, heartbeat, string(r.plan.Action),
		}
		if wide {
			columns = append(columns, job, r.plan.Why)
		}
		line(r.Namespace, columns...)
	}
	return w.Flush()
}

func (r judgedRelease) revisionText() string {
	if r.verdict.Newest.Number == 0 {
		return "<unknown>"
	}
	return strconv.FormatInt(r.verdict.Newest.Number, 10)
}

// ageText is the age of the newest revision, which is that of the operation where one is under way.
func (r judgedRelease) ageText() string {
	if r.verdict.Newest.Created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(0, r.Now.Sub(r.verdict.Newest.Created)))
}

// deployText tells of the deploy of the release's lease, where what is under way may be that one's.
func (r judgedRelease) deployText() (starter, heartbeat, job string) {
	switch l := r.Teller(r.verdict); {
	case r.LeaseProblem != "":
		return "<unknown>", "<unknown>", "<unknown>"
	case l == nil:
		return none, none, none
	case l.Finished != nil:
		return cmp.Or(l.Starter, none), "ended", cmp.Or(l.Job, none)
	default:
		return cmp.Or(l.Starter, none), duration.HumanDuration(l.Unchanged), cmp.Or(l.Job, none)
	}
}

func releasesDocument(all []judgedRelease, sight *helm.Sight) v1.ReleaseList {
	out := v1.ReleaseList{
		APIVersion: v1.APIVersion, Kind: v1.KindReleaseList, Time: seconds(sight.Now), Items: []v1.Release{}, Remarks: sight.Remarks,
	}
	for _, r := range all {
		out.Items = append(out.Items, r.document())
	}
	return out
}

func (r judgedRelease) document() v1.Release {
	v := r.verdict
	return v1.Release{
		Namespace: r.Namespace, Name: r.Name, Revision: v.Newest.Number, Status: string(v.Newest.Status), Updated: seconds(v.Newest.Created),
		State: string(v.State), Reason: v.Reason, Operation: string(v.Operation), PendingSince: seconds(v.Since), Deployed: v.Good,
		Residue: v.Residue, Deploy: deployDocument(r.Teller(v)), Next: string(r.plan.Action), Why: r.plan.Why,
	}
}

func deployDocument(l *release.Lease) *v1.Deploy {
	if l == nil {
		return nil
	}
	out := &v1.Deploy{
		ID: l.Deploy, Revision: l.Revision, Holder: l.Holder, Starter: l.Starter, Job: l.Job, Began: seconds(l.Began), Heartbeat: seconds(l.Renewed),
		Signal: l.Signal,
	}
	if l.Timeout > 0 {
		out.Timeout = l.Timeout.String()
	}
	if l.Finished != nil {
		out.Ended, out.ExitStatus = l.Finished.Time.UTC().Truncate(time.Second), &l.Finished.ExitStatus
		out.Stopped = string(l.Finished.Stopped)
	}
	return out
}
