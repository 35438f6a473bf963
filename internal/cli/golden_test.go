package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with the file of the name in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

var now = time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

const day = 24 * time.Hour

// mailer is the fleet of the incident `lease`: edited in June, split by an upgrade of nodes in August.
func mailer() cluster.Workload {
	config := workload.Object{Kind: workload.ConfigMap, Namespace: "mail", Name: "mailer"}
	smtp := workload.Object{Kind: workload.Secret, Namespace: "mail", Name: "smtp"}
	all := workload.Keys{All: true}
	uses := []workload.Consumption{
		{Object: config, Env: all, Required: true},
		{Object: smtp, Env: workload.Keys{Names: []string{"password"}}, Required: true, RequiredKeys: []string{"password"}},
	}
	edited, restarted := ago(70*day), ago(3*time.Hour)
	before := digest.OfConfigMap("mail", "mailer", map[string]string{"LEASE": "10m", "OLD": "x", "API_TOKEN": "t1"}, nil)
	present := map[string]string{"LEASE": "2m", "NEW": "y", "API_TOKEN": "t2"}
	after := digest.OfConfigMap("mail", "mailer", present, nil)
	key, _ := digest.NewKey(make([]byte, digest.KeySize))
	password := digest.OfSecret(key, "mail", "smtp", map[string][]byte{"password": []byte("MARKER")})
	w := cluster.Workload{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "mail", Name: "mailer"}, UID: "uid-1",
		References: []workload.Reference{
			{Object: config, Source: workload.SourceEnvFrom, Container: "mailer", Role: workload.RoleMain, Prefix: "MAIL_"},
			{Object: smtp, Source: workload.SourceEnv, Container: "mailer", Role: workload.RoleMain, Keys: []string{"password"}, EnvName: "PASSWORD"},
			{Object: workload.Object{Kind: workload.Secret, Namespace: "mail", Name: "registry"}, Source: workload.SourcePullSecret, Optional: true},
		},
		Keys:     map[workload.Object][]string{config: after.Keys(), smtp: {"password"}},
		Values:   map[workload.Object]map[string]string{config: present},
		Problems: []string{`annotation tidemark.dev/rollout-budget: "soon" is no duration and is disregarded; write one such as "10m"`},
		Fleet: fleet.Fleet{
			Now: now, Namespace: "mail", Mode: stamp.Observe, Installed: true, RolloutDone: true, Budget: 10 * time.Minute,
			Record: &stamp.Record{Last: &stamp.Last{
				Time: ago(80 * day), Action: stamp.WriteRecord, Reason: stamp.FirstRecord,
			}},
			Objects: []fleet.Object{
				{Use: uses[0], Applied: &after, LogTo: now, Written: edited, WrittenBy: "kubectl-edit", Log: history.Log{
					Object: config, Versions: []history.Version{
						{Seen: ago(90 * day), Content: before},
						{NotBefore: edited, Seen: edited, Content: after},
					},
					Values: history.Values{"LEASE": {"2m", "10m"}, "NEW": {"y"}, "OLD": nil, "API_TOKEN": nil},
				}},
				{Use: uses[1], Applied: &password, LogTo: now, Written: ago(90 * day), WrittenBy: "helm", Log: history.Log{
					Object: smtp, Versions: []history.Version{{Seen: ago(90 * day), Content: password}},
				}},
			},
		},
	}
	for i, created := range []time.Time{ago(80 * day), ago(80 * day), restarted} {
		w.Fleet.Pods = append(w.Fleet.Pods, fleet.Pod{
			Name: "mailer-7f9-" + string(rune('a'+i)), Node: "node-1", Revision: "7f9", Created: created, Ready: true, Phase: "Running",
			Containers: []fleet.Container{{Name: "mailer", Role: workload.RoleMain, Started: created.Add(time.Second), Uses: uses}},
		})
	}
	return w
}

// calm is a fleet that is in step, and lost one that nothing is known of.
func calm() cluster.Workload {
	return cluster.Workload{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[1], Namespace: "mail", Name: "queue"}, UID: "uid-2",
		Fleet: fleet.Fleet{Now: now, Namespace: "mail", Mode: stamp.Roll, Paused: true, PausedBy: "in the namespace, by ann at noon"},
	}
}

func lost() cluster.Workload {
	return cluster.Workload{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[2], Namespace: "web", Name: "agent"}, UID: "uid-3",
		Fleet: fleet.Fleet{Now: now, Namespace: "web", Mode: stamp.Observe},
		Blind: "missing the right to list pods in namespace web",
	}
}

func sight() *cluster.Sight {
	return &cluster.Sight{
		Now: now, Workloads: []cluster.Workload{mailer(), calm(), lost()},
		Remarks: []string{"missing the right to list pods in namespace web: what runs is unknown"},
	}
}

func statusTo(out, errOut *bytes.Buffer) *statusOptions {
	return &statusOptions{IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, withNamespace: true}
}

func TestStatusPrints(t *testing.T) {
	for _, format := range []string{"", "wide", "fleet", "json", "yaml", "name"} {
		t.Run("as "+format, func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			o := statusTo(out, errOut)
			o.output = format
			s := sight()
			if err := o.print(judge(s.Workloads), []seen{{sight: s, fleets: judge(s.Workloads)}}); err != nil {
				t.Fatal(err)
			}
			golden(t, "status."+map[string]string{"": "txt"}[format]+format, out.String())
			if errOut.Len() > 0 {
				t.Errorf("remarked %q", errOut)
			}
		})
	}
}

func TestExplainPrints(t *testing.T) {
	s, w := sight(), mailer()
	e := explained{judged: judged{Workload: w, Result: w.Judge()}, sight: s, next: fleet.Next(w.Fleet), events: []cluster.Event{
		{Time: ago(time.Hour), Type: "Warning", Reason: "InvalidConfiguration", Message: "a budget that is none", Count: 2},
	}}
	out := &bytes.Buffer{}
	if err := printExplanation(out, e); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.txt", out.String())
	out.Reset()
	if err := printDocument(out, "yaml", e.document()); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.yaml", out.String())
}
