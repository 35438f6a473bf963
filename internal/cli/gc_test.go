package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// pricingCopies is what a run found: a copy for each thing that can become of one.
func pricingCopies() *cleanup.Outcome {
	source := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "pricing"}
	copyOf := func(n int64, action snapshot.Action, reason snapshot.Reason, detail string) cleanup.Item {
		o := source
		o.Name = fmt.Sprintf("pricing-%d", n)
		s := snapshot.Snapshot{
			Object: o, Provenance: snapshot.Provenance{Source: source, Revision: n, Time: ago(day)}, Created: ago(day),
		}
		return cleanup.Item{
			Verdict: snapshot.Verdict{Snapshot: s, Action: action, Reason: reason, Detail: detail}, Done: action != snapshot.Keep,
		}
	}
	waiting := copyOf(6, snapshot.Keep, snapshot.Waiting, "condemned; deleted after 2026-08-20T09:30:00Z unless something needs it again")
	waiting.Condemned, waiting.Until = ago(30*time.Minute), now.Add(30*time.Minute)
	conflict := copyOf(2, snapshot.Delete, snapshot.Superseded, "nothing uses it, and 2 newer of configmap/pricing are kept")
	conflict.Done, conflict.Left = false, "somebody else wrote it meanwhile"
	denied := copyOf(1, snapshot.Delete, snapshot.Superseded, "nothing uses it, and 2 newer of configmap/pricing are kept")
	denied.Done, denied.Err = false, errors.New("missing the right to delete configmaps in namespace shop")
	return &cleanup.Outcome{
		Now: now,
		Items: []cleanup.Item{
			copyOf(9, snapshot.Keep, snapshot.Used, "used by the template of deployment/web"),
			copyOf(8, snapshot.Keep, snapshot.Recent, "among the last 2 of configmap/pricing"),
			copyOf(7, snapshot.Pardon, snapshot.Used, "used by replicaset/web-1, to which a rollback may go back"),
			waiting,
			copyOf(5, snapshot.Condemn, snapshot.Superseded, "nothing uses it, and 2 newer of configmap/pricing are kept"),
			copyOf(4, snapshot.Delete, snapshot.Superseded, "nothing uses it, and 2 newer of configmap/pricing are kept"),
			conflict, denied,
		},
		Quotas:  []cleanup.Quota{{Namespace: "shop", Name: "objects", Resource: "configmaps", Used: 95, Hard: 100}},
		Remarks: []string{"missing the right to get namespaces/tidemark-system of the cluster: whether everything is paused is not known"},
	}
}

func gcTo(out, errOut *bytes.Buffer, output string, dryRun bool) *gcOptions {
	return &gcOptions{
		IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, output: output, withNamespace: output == "wide",
		cleanup: cleanup.Round{Namespace: "shop", DryRun: dryRun, Retention: snapshot.Retention{History: 2, MinAge: time.Hour}},
	}
}

func TestGCPrints(t *testing.T) {
	for _, output := range []string{"", "wide", "json", "yaml", "name"} {
		t.Run("as "+output, func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			if err := gcTo(out, errOut, output, false).print(pricingCopies()); err != nil {
				t.Fatal(err)
			}
			golden(t, "gc."+map[string]string{"": "txt"}[output]+output, out.String()+"---\n"+errOut.String())
		})
	}
}

func TestGCPrintsADryRun(t *testing.T) {
	c := pricingCopies()
	c.Quotas, c.Remarks = nil, nil
	for i := range c.Items {
		c.Items[i].Done, c.Items[i].Err = false, nil
	}
	for _, output := range []string{"", "name"} {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		if err := gcTo(out, errOut, output, true).print(c); err != nil {
			t.Fatal(err)
		}
		golden(t, "gc.dry-run"+output+".txt", out.String()+"---\n"+errOut.String())
	}
}

func TestGCSaysThatThereIsNothing(t *testing.T) {
	for want, o := range map[string]*gcOptions{
		"No snapshots found in namespace shop.":                  gcTo(nil, nil, "", false),
		"No snapshots found in any namespace.":                   {},
		"No objects left by release app found in any namespace.": {release: "app"},
	} {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		o.Out, o.ErrOut = out, errOut
		if err := o.print(&cleanup.Outcome{}); err != nil || errOut.String() != want+"\n" || out.Len() > 0 {
			t.Errorf("error %v, printed %q and %q, want %q", err, out, errOut, want)
		}
	}
}

func TestGCIsCalledRight(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--history", "0"}, "--history: 0: want 1 or more"},
		{[]string{"--history", "-3"}, "--history: -3"},
		{[]string{"--history", "0", "--helm-release", "app"}, "--history: 0"},
		{[]string{"--min-age", "0s"}, "--min-age: 0s: want 1s or more"},
		{[]string{"--min-age", "-1h", "--helm-release", "app"}, "--min-age: -1h0m0s: want 0s or more"},
		{[]string{"-A", "--helm-release", "app"}, "--all-namespaces does not go with --helm-release"},
		{[]string{"--helm-release", "App"}, `--helm-release: "App" is no name`},
		{[]string{"-o", "table"}, "--output"},
		{[]string{"pricing"}, "unexpected argument"},
	} {
		errOut := &bytes.Buffer{}
		code := Run(t.Context(), Config{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: errOut}}, append([]string{"gc"}, tc.args...))
		if code != exitError || !strings.Contains(errOut.String(), tc.want) {
			t.Errorf("gc %q: exit status %d, said %q, want %q", tc.args, code, errOut, tc.want)
		}
	}
}
