package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

func TestWrongCallsOfTheVerbsOfRevisionsSayWhatToWrite(t *testing.T) {
	for args, want := range map[string]string{
		"history":                                    "name one workload",
		"history deployment":                         "name one workload",
		"history deployment/a deployment/b":          "unexpected argument",
		"history deployment/a -o xml":                "write one of wide, json, yaml, name",
		"diff":                                       "name one workload",
		"diff deployment/a 1 2 3":                    "unexpected argument",
		"diff deployment a 1 2 3":                    "unexpected argument",
		"rollback":                                   "name one workload",
		"rollback deployment/a 3":                    "unexpected argument",
		"rollback deployment/a --to-revision 0":      "is no number of a revision",
		"rollback deployment/a --dry-run=maybe":      "is none of none, client and server",
		"rollback deployment/a --dry-run --wait":     "--wait does not go with --dry-run",
		"rollback deployment/a -o wide":              "is no format",
		"rollback deployment/a --timeout 1m":         "--timeout is for --wait",
		"rollback deployment/a --wait --timeout=-1s": "is negative",
	} {
		t.Run(args, func(t *testing.T) {
			code, out, errOut := run(t, true, strings.Fields(args)...)
			if code != exitError || out != "" || !strings.Contains(errOut, want) || !strings.Contains(errOut, "See 'kubectl tidemark ") {
				t.Errorf("exit status %d, printed %q, said %q; want %q in it", code, out, errOut, want)
			}
		})
	}
}

func TestARollbackIsPlanned(t *testing.T) {
	for name, tc := range map[string]struct {
		number int64
		change func(*revisions.History)
		want   []string // "error: …", or the revision, what changes, and remarks
	}{
		"the newest revision that was available": {0, nil, []string{
			"4", "image of app: pricing:2.0 → pricing:1.1", "configmap/extra: copy extra-cccccccccc → absent",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → copy pricing-aaaaaaaaaa (3)", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: revision 5 is passed over: nothing shows that a pod of it was ever available; --to-revision 5 goes there all the same",
		}},
		"a revision by its number": {5, nil, []string{
			"5", "configmap/extra: copy extra-cccccccccc → absent",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → copy pricing-aaaaaaaaaa (3)", "secret/door: copy door-dddddddddd (1) → applied",
		}},
		"the current one":           {6, nil, []string{"6 nothing"}},
		"one that is not there":     {9, nil, []string{"error: deployment/pricing: there is no revision 9; there are 2, 3, 4, 5, 6"}},
		"one that has a new number": {1, nil, []string{"error: it is revision 4 now"}},
		"one whose copy is gone": {3, nil, []string{
			"error: configmap/pricing: its copy is gone (configmap/pricing-zzzzzzzzzz does not exist); those that can be are 4, 5",
		}},
		"a paused Deployment": {4, func(h *revisions.History) { h.Paused = true },
			[]string{"error: resume it first with `kubectl rollout resume deployment/pricing`"}},
		"the current one of a paused Deployment": {6, func(h *revisions.History) { h.Paused = true }, []string{"6 nothing"}},
		"one that is not pinned, of which nothing is noted": {2, nil, []string{
			"2", "image of app: pricing:2.0 → pricing:0.9", "configmap/extra: copy extra-cccccccccc → applied",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → applied", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: revision 2 does not pin configmap/extra, configmap/pricing, so its pods read what is applied; " +
				"whether that is what it was released with is not known",
		}},
		"one that is not pinned, with what is noted": {2, noted("v1-stamp-0.9", "old"), []string{
			"2", "image of app: pricing:2.0 → pricing:0.9", "configmap/extra: copy extra-cccccccccc → applied",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → applied", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: revision 2 does not pin configmap/extra, configmap/pricing, so its pods read what is applied; " +
				"not what it was released with: configmap/pricing",
		}},
		"one that is not pinned, and nothing changed": {2, noted("v1-stamp-0.9", "new"), []string{
			"2", "image of app: pricing:2.0 → pricing:0.9", "configmap/extra: copy extra-cccccccccc → applied",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → applied", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: revision 2 does not pin configmap/extra, configmap/pricing, so its pods read what is applied, which is what it was released with",
		}},
		"what others may put back": {5, func(h *revisions.History) { h.Owner, h.Manager = "shop/front", "Argo CD" }, []string{
			"5", "configmap/extra: copy extra-cccccccccc → absent",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → copy pricing-aaaaaaaaaa (3)", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: shop/front controls deployment/pricing, and may put its own template back",
			"remark: Argo CD manages deployment/pricing, and may put the template back that it knows",
		}},
		"where nothing is known of any": {0, func(h *revisions.History) { h.Revisions[2].Availability = revision.Unknown }, []string{
			"5", "configmap/extra: copy extra-cccccccccc → absent",
			"configmap/pricing: copy pricing-bbbbbbbbbb (4) → copy pricing-aaaaaaaaaa (3)", "secret/door: copy door-dddddddddd (1) → applied",
			"remark: nothing shows that a pod of revision 5 was ever available: nothing tells",
		}},
		"where no other ever had a pod": {0, func(h *revisions.History) {
			for i := range h.Revisions[:4] {
				h.Revisions[i].Availability = revision.Never
			}
		}, []string{"error: no other revision of deployment/pricing ever had a pod"}},
		"a workload with one revision": {0, func(h *revisions.History) { h.Revisions = h.Revisions[4:] },
			[]string{"error: deployment/pricing has no other revision to go back to"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := pricing(t)
			if tc.change != nil {
				tc.change(h)
			}
			p, err := planRollback(h, tc.number)
			if part, is := strings.CutPrefix(tc.want[0], "error: "); is {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q", err, part)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{p.to.Text()}
			if p.nothing {
				got[0] += " nothing"
			}
			got = append(got, p.changes...)
			for _, r := range p.remarks {
				got = append(got, "remark: "+r)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// noted gives the workload a record that knows what an earlier stamp stood for, of the ConfigMap pricing by its content.
func noted(text, pricing string) func(*revisions.History) {
	sum := func(content string) digest.Digest {
		return digest.OfConfigMap("shop", "pricing", map[string]string{"a": content}, nil).Whole(object(workload.ConfigMap, "pricing"))
	}
	return func(h *revisions.History) {
		h.Record = &stamp.Record{
			Stamp: "v1-stamp-2.0",
			Objects: map[string]stamp.ObjectRecord{
				"configmap/pricing": {Stamped: sum("new")}, "configmap/extra": {Stamped: sum("extra")},
			},
			Earlier: []stamp.EarlierStamp{{Stamp: text, Objects: map[string]digest.Digest{
				"configmap/pricing": sum(pricing), "configmap/extra": sum("extra"),
			}}},
		}
	}
}

// impatient is a clock on which each pause is over as soon as it begins.
type impatient struct{ *clocktesting.FakeClock }

func (c impatient) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d == beat {
		c.Step(d)
	}
	return timer
}

// follow lets a rollback wait for a rollout that goes through the looks; the last one stays.
func follow(t *testing.T, timeout time.Duration, looks ...any) (out, errOut string, err error) {
	t.Helper()
	o, e := &bytes.Buffer{}, &bytes.Buffer{}
	wait := &rollbackOptions{clock: impatient{clocktesting.NewFakeClock(now)}, timeout: timeout}
	wait.Out, wait.ErrOut = o, e
	n := 0
	err = wait.await(t.Context(), "deployment/web", func(context.Context) (revisions.Progress, error) {
		look := looks[min(n, len(looks)-1)]
		n++
		if failure, is := look.(error); is {
			return revisions.Progress{}, failure
		}
		p, _ := look.(revisions.Progress)
		return p, nil
	})
	return o.String(), e.String(), err
}

func TestARollbackWaits(t *testing.T) {
	one, two := revisions.Progress{Text: "1 of 2"}, revisions.Progress{Text: "2 of 2", Done: true}
	for name, tc := range map[string]struct {
		timeout          time.Duration
		looks            []any
		out, errOut, err string
	}{
		"until it is done": {time.Hour, []any{one, one, two}, "deployment/web is rolled out: 2 of 2\n", "deployment/web: 1 of 2\n", ""},
		"without end":      {0, []any{one, two}, "deployment/web is rolled out: 2 of 2\n", "deployment/web: 1 of 2\n", ""},
		"through failures of the API": {time.Hour, []any{errors.New("lost"), one, two}, "deployment/web is rolled out: 2 of 2\n",
			"deployment/web: lost: trying again\ndeployment/web: 1 of 2\n", ""},
		"until it fails": {time.Hour, []any{one, revisions.Progress{Text: "1 of 2", Failed: "no progress"}}, "", "deployment/web: 1 of 2\n",
			"its rollout failed: 1 of 2: no progress"},
		"until the time is over": {3 * time.Second, []any{one}, "", "deployment/web: 1 of 2\n", "was not done within 3s: 1 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := follow(t, tc.timeout, tc.looks...)
			if out != tc.out || errOut != tc.errOut {
				t.Errorf("printed %q, said %q; want %q, %q", out, errOut, tc.out, tc.errOut)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}
