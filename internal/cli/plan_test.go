package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/stamp"
)

// planFor plans the manifests against a cluster, and gives what it prints.
func planFor(t *testing.T, c *cluster.Connection, given, format string) (out, errOut string, err error) {
	t.Helper()
	return planAt(t, c, render.Source{Files: []string{render.Stdin}, In: strings.NewReader(given)}, "", format)
}

// planAt is planFor what a source has at a revision of Git, or in the working tree.
func planAt(t *testing.T, c *cluster.Connection, source render.Source, revision, format string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	options := &planOptions{
		IOStreams: genericiooptions.IOStreams{Out: &o, ErrOut: &e}, output: format, system: "tidemark", exitCode: true,
		checkInput: checkInput{
			source: source, to: revision, namespace: "shop",
			kinds: manifestKinds(cluster.BuiltinKinds()), clusterKinds: cluster.BuiltinKinds(), defaultMode: stamp.Observe,
			connect: func() (*cluster.Connection, error) { return c, nil },
		},
	}
	err = options.run(t.Context())
	return o.String(), e.String(), err
}

// plannedShop has a workload of each kind and strategy, all of which read one ConfigMap.
const plannedShop = `apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {tidemark.dev/owner: shop-team}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {LEVEL: info, RATE: "1", UNREAD: a}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
data: {CODE: TUFSS0VS}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}}
status: {disruptionsAllowed: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: web-uid, annotations: {tidemark.dev/owner: web-team}}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "web:1", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: door}}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alone, uid: alone-uid, ownerReferences: [{apiVersion: example.org/v1, kind: Shop, name: main, uid: shop-uid, controller: true}]}
spec:
  replicas: 3
  strategy: {type: Recreate}
  selector: {matchLabels: {app: alone}}
  template:
    metadata: {labels: {app: alone}}
    spec: {containers: [{name: app, image: "alone:1", env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: LEVEL}}}]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, uid: db-uid}
spec:
  replicas: 3
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: app, image: "db:1", envFrom: [{configMapRef: {name: settings}}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, uid: agent-uid}
spec:
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: app, image: "agent:1", envFrom: [{configMapRef: {name: settings}}]}]}
status: {desiredNumberScheduled: 4}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, uid: report-uid}
spec:
  schedule: "0 0 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "report:1", envFrom: [{configMapRef: {name: settings}}]}]}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unread, uid: unread-uid}
spec:
  selector: {matchLabels: {app: unread}}
  template:
    metadata: {labels: {app: unread}}
    spec: {containers: [{name: app, image: "unread:1", env: [{name: RATE, valueFrom: {configMapKeyRef: {name: settings, key: RATE}}}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: elsewhere, uid: elsewhere-uid}
spec:
  selector: {matchLabels: {app: elsewhere}}
  template:
    metadata: {labels: {app: elsewhere}}
    spec: {containers: [{name: app, image: "elsewhere:1"}]}`

const editedSettings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {LEVEL: debug, RATE: "1", UNREAD: b}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {CODE: MARKER}
`

// followed puts the records on the workloads that a controller would have left.
func followed(t *testing.T, shop string, mode stamp.Mode) string {
	t.Helper()
	text := strings.Replace(shop, "{name: shop,", "{name: shop, labels: {tidemark.dev/mode: "+string(mode)+"},", 1)
	c := fakeCluster(t, text)
	for _, name := range []string{"web", "alone", "db", "agent", "report", "unread"} {
		for _, k := range cluster.BuiltinKinds() {
			record, sum := recordOf(t, c, k, name)
			if record == "" {
				continue
			}
			marks := "labels: {" + v1.LabelRecordSum + ": \"" + sum + "\"}, annotations: {" + v1.AnnotationRecord + ": '" + record + "'"
			if name == "web" {
				text = strings.Replace(text, "uid: web-uid, annotations: {", "uid: web-uid, "+marks+", ", 1)
				continue
			}
			text = strings.Replace(text, "uid: "+name+"-uid", "uid: "+name+"-uid, "+marks+"}", 1)
		}
	}
	return text
}

// recordOf is what a controller leaves on a workload that it sees for the first time.
func recordOf(t *testing.T, c *cluster.Connection, k cluster.Kind, name string) (record, sum string) {
	t.Helper()
	obj := k.NewObject()
	err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return "", ""
	}
	key, keyErr := digest.RandomKey()
	if err := errors.Join(err, keyErr); err != nil {
		t.Fatal(err)
	}
	l := &cluster.Live{Copier: &cluster.Copier{Client: c.Client, Key: key}, Namespace: "tidemark", Secrets: true}
	f, err := l.Look(t.Context(), k, obj)
	if err == nil {
		err = l.Consumed(t.Context(), &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stamp.Encode(stamp.Decide(f.State).Record)
}

func TestPlanPrints(t *testing.T) {
	for name, shop := range map[string]string{"observe": plannedShop, "roll": followed(t, plannedShop, stamp.Roll)} {
		t.Run("in mode "+name, func(t *testing.T) {
			out, errOut, err := planFor(t, fakeCluster(t, shop), editedSettings, "wide")
			if errOut != "" || errors.Is(err, errRolls) != (name == "roll") || err != nil && !errors.Is(err, errRolls) {
				t.Errorf("%v: %s", err, errOut)
			}
			golden(t, "plan-"+name+".wide", out)
		})
	}
	for _, format := range []string{"json", "yaml", ""} {
		out, errOut, _ := planFor(t, fakeCluster(t, plannedShop), editedSettings, format)
		if strings.Contains(out+errOut, "MARKER") || strings.Contains(out+errOut, "debug") {
			t.Errorf("a value is shown: %s%s", out, errOut)
		}
		if format == "json" {
			golden(t, "plan.json", out)
		}
	}
}

// forecasts of the workloads by their names.
func forecasts(t *testing.T, out string) map[string]v1.PlannedWorkload {
	t.Helper()
	var p v1.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.PlannedWorkload{}
	for _, w := range p.Workloads {
		all[w.Workload] = w
	}
	return all
}

func TestPlanForecasts(t *testing.T) {
	roll := followed(t, plannedShop, stamp.Roll)
	deployment := `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "web:1", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: door}}]}]}
`
	for name, c := range map[string]struct {
		shop, given, workload string
		forbidden             []string
		forecast, why         string
	}{
		"the same again":                    {roll, deployment, "deployment/web", nil, "stays", "nothing that it reads changes"},
		"another image":                     {plannedShop, strings.Replace(deployment, "web:1", "web:2", 1), "deployment/web", nil, "rolls", "its template changes"},
		"another image and content":         {roll, editedSettings + "---\n" + strings.Replace(deployment, "web:1", "web:2", 1), "deployment/web", nil, "rolls", "its template changes, and what it reads"},
		"a workload that is new":            {plannedShop, strings.ReplaceAll(deployment, "web", "fresh"), "deployment/fresh", nil, "new", "it is not there yet"},
		"a key that is read goes":           {roll, strings.Replace(editedSettings, "LEVEL: debug, ", "", 1), "deployment/alone", nil, "waiting", "key LEVEL of configmap/shop/settings would not be there, and its pods require it"},
		"a key that is read goes, observed": {plannedShop, strings.Replace(editedSettings, "LEVEL: debug, ", "", 1), "deployment/alone", nil, "dormant", "in mode observe nothing rolls"},
		"only a key that is not read":       {roll, editedSettings, "deployment/unread", nil, "stays", "nothing that it reads changes"},
		"a paused namespace":                {strings.Replace(roll, "{tidemark.dev/owner: shop-team}", "{tidemark.dev/paused: \"true\", tidemark.dev/owner: shop-team}", 1), editedSettings, "deployment/web", nil, "held", "what it reads changes; paused: "},
		"a paused namespace, other image":   {strings.Replace(roll, "{tidemark.dev/owner: shop-team}", "{tidemark.dev/paused: \"true\", tidemark.dev/owner: shop-team}", 1), strings.Replace(deployment, "web:1", "web:2", 1), "deployment/web", nil, "rolls", "its template changes"},
		"a paused Deployment":               {strings.Replace(roll, "  replicas: 8", "  paused: true\n  replicas: 8", 1), editedSettings, "deployment/web", nil, "held", "spec.paused is set: it rolls when it is resumed"},
		"what the program reloads":          {roll, strings.Replace(editedSettings, "{name: settings}", "{name: settings, annotations: {tidemark.dev/treat-as: live}}", 1), "deployment/web", nil, "stays", "its program reloads what changes"},
		"a mode that comes with it":         {plannedShop, editedSettings + "---\n" + strings.Replace(deployment, "{name: web}", "{name: web, annotations: {tidemark.dev/mode: pin}}", 1), "deployment/web", nil, "rolls", "mode pin is new to it"},
		"Secrets that may not be read":      {roll, editedSettings, "deployment/web", []string{"get Secret"}, "unknown", "missing a right: "},
		"a workload that may not be read":   {roll, deployment, "deployment/web", []string{"get Deployment"}, "unknown", "missing the right to get deployments in namespace shop"},
		"a mode that nothing looks after":   {strings.Replace(plannedShop, "{name: shop,", "{name: shop, labels: {tidemark.dev/mode: roll},", 1), editedSettings, "deployment/web", nil, "dormant", "FirstRecord"},
		"a workload that reads none of it":  {plannedShop, editedSettings, "deployment/elsewhere", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := planFor(t, fakeCluster(t, c.shop, c.forbidden...), c.given, "json")
			if err != nil && !errors.Is(err, errRolls) {
				t.Fatal(err, errOut)
			}
			got := forecasts(t, out)[c.workload]
			if got.Forecast != c.forecast || !strings.Contains(got.Why, c.why) {
				t.Errorf("it %s: %s", got.Forecast, got.Why)
			}
		})
	}
}

// How a workload rolls is told by what is applied; what that does not say stays as it is.
func TestPlanOfAnotherStrategy(t *testing.T) {
	web := `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "web:2", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: door}}]}]}
`
	db := strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "web", "db", ", {secretRef: {name: door}}", "").Replace(web)
	paused := strings.Replace(plannedShop, "  replicas: 8", "  paused: true\n  replicas: 8", 1)
	for name, c := range map[string]struct {
		shop, given, spec, workload, forecast string
		replaced                              int
		pace                                  string
	}{
		"as it is":               {plannedShop, web, "", "deployment/web", "rolls", 8, "at most 2 unavailable, 2 extra"},
		"other replicas":         {plannedShop, web, "replicas: 4", "deployment/web", "rolls", 4, "at most 1 unavailable, 1 extra"},
		"Recreate":               {plannedShop, web, "strategy: {type: Recreate}", "deployment/web", "rolls", 8, "Recreate: "},
		"paused":                 {plannedShop, web, "paused: true", "deployment/web", "held", 0, ""},
		"no more paused":         {paused, web, "paused: false", "deployment/web", "rolls", 8, ""},
		"paused, and stays so":   {paused, web, "", "deployment/web", "held", 0, ""},
		"a partition that stays": {plannedShop, db, "", "statefulset/db", "rolls", 1, "partition 2"},
		"no partition":           {plannedShop, db, "updateStrategy: {rollingUpdate: {partition: 0}}", "statefulset/db", "rolls", 3, "at most 1 unavailable, 0 extra"},
		"OnDelete":               {plannedShop, db, "updateStrategy: {type: OnDelete}", "statefulset/db", "held", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			given := strings.Replace(c.given, "spec:\n", "spec:\n  "+c.spec+"\n", 1)
			out, errOut, err := planFor(t, fakeCluster(t, c.shop), given, "json")
			if err != nil && !errors.Is(err, errRolls) {
				t.Fatal(err, errOut)
			}
			got := forecasts(t, out)[c.workload]
			if got.Forecast != c.forecast || got.Replaced != c.replaced || !strings.Contains(got.Pace, c.pace) {
				t.Errorf("it %s, %d pods, %s", got.Forecast, got.Replaced, got.Pace)
			}
		})
	}
	if _, _, err := planFor(t, fakeCluster(t, plannedShop), strings.Replace(web, "spec:\n", "spec:\n  replicas: MARKER\n", 1), "json"); err == nil || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("replicas that are no number: %v", err)
	}
}

// What is missing keeps Tidemark from a rollout, and Kubernetes from none.
func TestPlanOfATemplateThatNeedsWhatIsNotThere(t *testing.T) {
	given := strings.Replace(editedSettings, "LEVEL: debug, ", "", 1) + `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alone}
spec:
  replicas: 3
  strategy: {type: Recreate}
  selector: {matchLabels: {app: alone}}
  template:
    metadata: {labels: {app: alone}}
    spec: {containers: [{name: app, image: "alone:2", env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: LEVEL}}}]}]}
`
	for _, shop := range []string{plannedShop, followed(t, plannedShop, stamp.Roll)} {
		out, errOut, err := planFor(t, fakeCluster(t, shop), given, "json")
		if !errors.Is(err, errRolls) {
			t.Fatal(err, errOut)
		}
		got := forecasts(t, out)["deployment/alone"]
		if got.Forecast != "rolls" || got.Replaced != 3 || !strings.Contains(strings.Join(got.Notes, ""), "key LEVEL of configmap/shop/settings would not be there") {
			t.Errorf("it %s, %d pods, with notes %q", got.Forecast, got.Replaced, got.Notes)
		}
	}
}

// A program that reloads its files takes what changes, wherever nothing rolls; the controller rolls it all the same, and so does plan.
func TestPlanOfARevision(t *testing.T) {
	for name, source := range map[string]render.Source{
		"files":                  {Files: []string{"settings.yaml"}},
		"a kustomization":        {Kustomize: "."},
		"what a command renders": {Command: "cat settings.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			commit(t, map[string]string{"kustomization.yaml": "resources: [settings.yaml]\n", "settings.yaml": editedSettings}, "v1")
			file(t, ".", "settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
			for revision, want := range map[string]string{"v1": "dormant", "": ""} {
				out, errOut, err := planAt(t, fakeCluster(t, plannedShop), source, revision, "json")
				if got := forecasts(t, out)["deployment/web"].Forecast; err != nil || got != want {
					t.Errorf("at %q web would be %q, want %q: %v %s", revision, got, want, err, errOut)
				}
			}
		})
	}
}

func TestPlanOfAProgramThatReloads(t *testing.T) {
	reader := func(annotations, container string) string {
		return `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {tidemark.dev/mode: MODE}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {app.yaml: "a: 1", LEVEL: info}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: web-uid, annotations: {` + annotations + `}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "web:1", ` + container + `}], volumes: [{name: files, configMap: {name: settings}}]}`
	}
	const (
		files    = `volumeMounts: [{name: files, mountPath: /etc/app}]`
		variable = files + `, env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: LEVEL}}}]`
		subPath  = `volumeMounts: [{name: files, mountPath: /etc/app/app.yaml, subPath: app.yaml}]`
		reloads  = `tidemark.dev/reloads: "true"`
	)
	for name, c := range map[string]struct{ shop, mode, forecast, why, note string }{
		"in mode observe, from files":            {reader(reloads, files), "observe", "stays", "its program reloads what changes", ""},
		"in mode observe, from a variable":       {reader(reloads, variable), "observe", "dormant", "in mode observe nothing rolls", ""},
		"in mode observe, from a subPath":        {reader(reloads, subPath), "observe", "dormant", "in mode observe nothing rolls", ""},
		"in mode observe, without saying so":     {reader("", files), "observe", "dormant", "in mode observe nothing rolls", ""},
		"in mode roll":                           {followedWeb(t, reader(reloads, files)), "roll", "rolls", "what it reads changes", "tidemark.dev/treat-as: live on the object keeps it from that"},
		"in mode roll, from a variable":          {followedWeb(t, reader(reloads, variable)), "roll", "rolls", "what it reads changes", ""},
		"in mode roll, before its first record":  {reader(reloads, files), "roll", "stays", "its program reloads what changes", ""},
		"in mode observe, not switched properly": {reader(`tidemark.dev/reloads: "yes"`, files), "observe", "dormant", "in mode observe nothing rolls", ""},
	} {
		t.Run(name, func(t *testing.T) {
			const edited = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {app.yaml: \"a: 2\", LEVEL: debug}\n"
			out, errOut, err := planFor(t, fakeCluster(t, strings.Replace(c.shop, "MODE", c.mode, 1)), edited, "json")
			if err != nil && !errors.Is(err, errRolls) {
				t.Fatal(err, errOut)
			}
			got := forecasts(t, out)["deployment/web"]
			notes := strings.Join(got.Notes, "")
			if got.Forecast != c.forecast || !strings.Contains(got.Why, c.why) || !strings.Contains(notes, c.note) || (c.note == "") != (notes == "") {
				t.Errorf("it %s: %s; %q", got.Forecast, got.Why, notes)
			}
		})
	}
}

// followedWeb puts the record on the Deployment that a controller would have left in mode roll.
func followedWeb(t *testing.T, shop string) string {
	t.Helper()
	for _, k := range cluster.BuiltinKinds() {
		record, sum := recordOf(t, fakeCluster(t, strings.Replace(shop, "MODE", "roll", 1)), k, "web")
		if record != "" {
			return strings.Replace(shop, "annotations: {", "labels: {"+v1.LabelRecordSum+": \""+sum+"\"}, annotations: {"+v1.AnnotationRecord+": '"+record+"', ", 1)
		}
	}
	t.Fatal("nothing has a record")
	return ""
}

// An Argo Rollout is replaced the way that its strategy says.
func TestPlanOfARollout(t *testing.T) {
	for strategy, want := range map[string]string{
		`canary: {steps: [{setWeight: 20}, {pause: {duration: 10m}}, {setWeight: 50}, {pause: {duration: 5m}}, {pause: {}}]}`: "canary in 5 steps, which pause for 15m0s at least; 1 of them until it is promoted",
		`canary: {steps: [{setWeight: 20}, {pause: {}}]}`:                                                                     "canary in 2 steps; 1 of them until it is promoted",
		`canary: {maxSurge: 2, maxUnavailable: 0}`:                                                                            "at most 0 unavailable, 2 extra",
		`blueGreen: {activeService: web}`:                                                                                     "blue-green: all new ones beside all old ones",
	} {
		t.Run(want, func(t *testing.T) {
			rollout := func(image string) string {
				return `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, uid: web-uid}
spec:
  replicas: 5
  strategy: {` + strategy + `}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "` + image + `"}]}
`
			}
			out, errOut, err := planFor(t, fakeCluster(t, strings.Replace(rollout("web:1"), "replicas: 5", "replicas: 3", 1)), rollout("web:2"), "json")
			if !errors.Is(err, errRolls) {
				t.Fatal(err, errOut)
			}
			got := forecasts(t, out)["rollout/web"]
			if got.Forecast != "rolls" || got.Replicas != 5 || got.Replaced != 5 || got.Pace != want {
				t.Errorf("it %s, %d of %d pods, %q, want %q", got.Forecast, got.Replaced, got.Replicas, got.Pace, want)
			}
		})
	}
}

func TestPlanRemarksOnWhatItMayNotRead(t *testing.T) {
	_, errOut, err := planFor(t, fakeCluster(t, plannedShop, "list PodDisruptionBudget", "list StatefulSet"), editedSettings, "")
	if err != nil || strings.Count(errOut, "remark: ") != 2 || !strings.Contains(errOut, "poddisruptionbudgets") || !strings.Contains(errOut, "statefulsets") {
		t.Errorf("%v: %s", err, errOut)
	}
}

func TestPlanIsCalledWrongly(t *testing.T) {
	for args, want := range map[string]string{
		"plan": "name what to check: -f FILE, -k DIR or --render COMMAND", "plan -f a -k b": "do not go together", "plan -f a -o sarif": "write one of wide, json, yaml",
		"plan deployment/web -f a": "unexpected argument", "plan -f - --to v1": "the standard input is of no revision", "plan -f a --to=": "it is empty",
	} {
		if code, out, errOut := run(t, false, strings.Fields(args)...); code != exitError || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit status %d, printed %q, said %q", args, code, out, errOut)
		}
	}
}

func TestAPlanHasThoseThatReadFromAnotherNamespace(t *testing.T) {
	shop := plannedShop + `
---
apiVersion: v1
kind: Namespace
metadata: {name: office}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ledger, namespace: office, uid: ledger-uid, annotations: {tidemark.dev/extra-configmaps: shop/settings}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec: {containers: [{name: app, image: "ledger:1"}]}`
	out, errOut, err := planFor(t, fakeCluster(t, shop), editedSettings, "json")
	if err != nil || errOut != "" {
		t.Fatalf("%v: %s", err, errOut)
	}
	var p v1.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	for _, l := range p.Workloads {
		if l.Namespace == "office" && l.Workload == "deployment/ledger" && len(l.Reads) > 0 {
			return
		}
	}
	t.Errorf("deployment/ledger in office, which reads shop's settings, is not in it with what it reads:\n%s", out)
}

func TestAPlanSaysHowMuchItKnows(t *testing.T) {
	roll := followed(t, plannedShop, stamp.Roll)
	for name, tc := range map[string]struct {
		forbidden []string
		want      string
	}{
		"all": {nil, "\n3 of 6 workloads roll, and 12 pods are replaced.\n"},
		"not a kind that may not be listed": {
			[]string{"list StatefulSet"}, "\n2 of 5 workloads roll, and 11 pods are replaced, as far as may be read.\n",
		},
		"not what may not be read": {[]string{"get StatefulSet"}, "\n2 of 6 workloads roll, 1 unknown, and 11 pods are replaced.\n"},
		"nothing": {
			[]string{"list Deployment", "list StatefulSet", "list DaemonSet", "list CronJob", "list Job"},
			"No workload is given, and none uses what is, as far as may be read.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, _ := planFor(t, fakeCluster(t, roll, tc.forbidden...), editedSettings, "")
			if !strings.HasSuffix(out, tc.want) {
				t.Errorf("it ends with %q, want %q", out[max(0, len(out)-120):], tc.want)
			}
		})
	}
}
