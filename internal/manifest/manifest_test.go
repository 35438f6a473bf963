package manifest_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/internal/yamltree"
)

func read(t *testing.T, text string) *manifest.Set {
	t.Helper()
	s := &manifest.Set{Kinds: manifest.Kinds(), Rendered: true}
	if err := s.Read("in.yaml", text); err != nil {
		t.Fatal(err)
	}
	return s
}

const stream = `# A comment before the first document.
---
# Source: web/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
data:
  A: "1"
  app.yaml: |
    x: 1
    ---
    y: 2
binaryData:
  logo: AAE=
immutable: true
--- # the next one
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: broken: [
---
apiVersion: v1
kind: Secret
metadata: {name: db}
data:
  user: bWU=
stringData:
  pass: word
---
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
 "spec": {"template": {"spec": {"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}}}
---
replicas: 3
`

func TestReadAStream(t *testing.T) {
	t.Parallel()
	s := read(t, stream)
	c := s.Configs[workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "settings"}]
	if c == nil {
		t.Fatal("the ConfigMap was not read")
	}
	if got := fmt.Sprintln(c.Line, c.Source, c.At("app.yaml").Line, c.At("logo").Line, c.At("none").Line, c.Immutable, c.Keys()); got != "4 web/templates/config.yaml 11 16 4 true [A app.yaml logo]\n" {
		t.Error(got)
	}
	if c.Data["app.yaml"] != "x: 1\n---\ny: 2\n" {
		t.Errorf("a marker inside a block cuts it: %q", c.Data["app.yaml"])
	}
	db := s.Configs[workload.Object{Kind: workload.Secret, Name: "db"}]
	if db.Data["user"] != "me" || db.Data["pass"] != "word" {
		t.Error("a Secret's data is not decoded, or its stringData is not there")
	}
	if len(s.Workloads) != 1 || s.Workloads[0].String() != "deployment/web" || len(s.Workloads[0].References()) != 1 || s.Workloads[0].Line != 32 {
		t.Errorf("workloads: %v", s.Workloads)
	}
	if s.Objects != 4 || len(s.Remarks) != 1 || !strings.Contains(s.Remarks[0], "in.yaml:35 has no apiVersion and kind") {
		t.Errorf("%d objects, remarks %q", s.Objects, s.Remarks)
	}
}

func TestReadJSONOneValueAfterTheOther(t *testing.T) {
	t.Parallel()
	text := "\n{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",\n \"metadata\": {\"name\": \"a\"},\n \"data\": {\"k\": \"{\"}}\n\n" +
		"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}},\n" +
		" {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"c\"}, \"stringData\": {\"x\": \"1\"}}]}"
	s := read(t, text)
	var got []string
	for _, c := range s.Sorted() {
		got = append(got, fmt.Sprintf("%s at %d", c.Name, c.Line))
	}
	if want := "[a at 2 b at 7 c at 8]"; fmt.Sprint(got) != want || s.Configs[workload.Object{Kind: workload.ConfigMap, Name: "a"}].At("k").Line != 4 {
		t.Errorf("got %v, want %s", got, want)
	}
	for name, text := range map[string]string{"a value that is no object": "{}\n[1]", "one that is broken": "{}\n{\"a\": "} {
		if err := (&manifest.Set{}).Read("in.json", text); !errors.Is(err, yamltree.ErrSyntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One reader of everything that a List holds, and of what objects may have that are seldom.
func TestReadLists(t *testing.T) {
	t.Parallel()
	s := read(t, `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: a}
  data: {both: b2xk, kept: b2xk, wrapped: "b2\n xk"}
  stringData: {both: new, number: 1}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: b}
    data: {on: "true"}
- apiVersion: batch/v1
  kind: Job
  metadata: {generateName: migrate-}
  spec: {template: {spec: {containers: [{name: app}]}}}
- apiVersion: v1
  kind: Secret
  metadata: {name: broken}
  data: {MARKER: "!"}
`)
	a := s.Configs[workload.Object{Kind: workload.Secret, Name: "a"}]
	if a == nil || a.Data["both"] != "new" || a.Data["kept"] != "old" || a.Data["wrapped"] != "old" || a.Data["number"] != "1" {
		t.Errorf("the Secret is %v", a)
	}
	if s.Configs[workload.Object{Kind: workload.ConfigMap, Name: "b"}] == nil {
		t.Error("a List within a List is not read")
	}
	if len(s.Workloads) != 1 || s.Workloads[0].String() != "job/migrate-*" || s.Workloads[0].Line != 16 {
		t.Errorf("workloads: %v", s.Workloads)
	}
	if want := []string{
		"in.yaml:8: a value of secret/a is no string, so the API would refuse it: quote it", "in.yaml:23: a value of secret/broken is not base64, so the API would refuse it",
	}; fmt.Sprint(s.Remarks) != fmt.Sprint(want) {
		t.Errorf("remarks %q", s.Remarks)
	}
}

func TestOriginOfKustomizeIsTheSource(t *testing.T) {
	t.Parallel()
	s := read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/origin: |\n      path: base/config.yaml\n")
	for _, c := range s.Configs {
		if c.Source != "base/config.yaml" || len(c.Annotations) > 0 {
			t.Errorf("source %q, annotations %v", c.Source, c.Annotations)
		}
	}
}

// What is committed stands in the file that it is committed in, whatever rendered it.
func TestAFileByItselfHasNoSource(t *testing.T) {
	t.Parallel()
	s := &manifest.Set{Kinds: manifest.Kinds()}
	text := "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  annotations:\n    config.kubernetes.io/origin: |\n      path: base/config.yaml\n"
	if err := s.Read("in.yaml", text); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"in.yaml:3", "in.yaml:8"} {
		if c := s.Sorted()[i]; c.Source != "" || c.Position.String() != want || len(c.Annotations) > 0 {
			t.Errorf("%s is at %s, with annotations %v", c.Name, c.Position, c.Annotations)
		}
	}
}

// Text of an object is no comment of helm's.
func TestSourceStandsBeforeTheObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ head, want string }{
		"first":              {"# Source: web/a.yaml\n", "web/a.yaml"},
		"after comments":     {"\n# note\n\n# Source: web/a.yaml\r\n", "web/a.yaml"},
		"with blanks in it":  {"# Source: MARKER and more\n", ""},
		"within the object":  {"metadata: {name: a}\n# Source: MARKER\n", ""},
		"in a quoted scalar": {"data: {a: \"x\n# Source: MARKER\n\"}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, config := range read(t, c.head+"apiVersion: v1\nkind: ConfigMap\n").Sorted() {
				if config.Source != c.want {
					t.Errorf("source %q, want %q", config.Source, c.want)
				}
			}
		})
	}
}

// Items of a list of one kind need not name their own, as kubectl takes them.
func TestReadListsOfOneKind(t *testing.T) {
	t.Parallel()
	s := read(t, "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n---\napiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: web}\n"+
		"  spec: {template: {spec: {containers: [{name: app}]}}}\n")
	if len(s.Configs) != 1 || len(s.Workloads) != 1 || s.Workloads[0].String() != "deployment/web" || s.Objects != 2 {
		t.Errorf("%v and %v of %d objects", s.Configs, s.Workloads, s.Objects)
	}
}

// What is silent otherwise: of two alike only one comes to be, and what the API refuses never does.
func TestRemarks(t *testing.T) {
	t.Parallel()
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: NAME}]}}}\n"
	const reads = "template: {spec: {containers: [{name: a, envFrom: [{configMapRef: {name: c}}]}]}}"
	for name, c := range map[string]struct{ text, want string }{
		"a workload that is there twice":   {strings.Replace(deployment, "NAME", "a", 1) + "---\n" + deployment, "[in.yaml:6: deployment/web is there twice, and the last one counts]"},
		"jobs whose names are completed":   {strings.Repeat("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: a-}\nspec: {template: {spec: {containers: [{}]}}}\n---\n", 2), "[]"},
		"a number in a ConfigMap":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  MARKER: 1\n  b: on\n  c: ~\n  d: 'on'\n", "[in.yaml:5: a value of configmap/a is no string, so the API would refuse it: quote it in.yaml:6: a value of configmap/a is no string, so the API would refuse it: quote it]"},
		"a list in its place":              {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: [MARKER]\n", "[in.yaml:1: stringData of secret/a is no map, so the API would refuse it]"},
		"a kind that is not known":         {"apiVersion: serving.knative.dev/v1\nkind: Service\nspec:\n  " + reads, "[what objects of kind Service read is not looked at: name the kind by --kind serving.knative.dev/v1/Service=spec.template]"},
		"one of no group, in a List":       {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ReplicationController, spec: {" + reads + "}}]", "[what objects of kind ReplicationController read is not looked at: name the kind by --kind /v1/ReplicationController=spec.template]"},
		"one whose template is far down":   {"apiVersion: a.io/v1\nkind: Fleet\nspec: {roles: {front: {" + reads + "}}}", "[what objects of kind Fleet read is not looked at: name the kind by --kind a.io/v1/Fleet=spec.roles.front.template]"},
		"one whose containers are its own": {"apiVersion: a.io/v1\nkind: Fleet\nspec: {containers: [{envFrom: [{configMapRef: {name: c}}]}]}", "[]"},
		"the definition of one":            {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {properties: {" + reads + "}}", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := read(t, c.text)
			if got := fmt.Sprint(s.Remarks); got != c.want || len(s.Workloads) == 1 && name == "jobs whose names are completed" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if name == "a workload that is there twice" && (len(s.Workloads) != 1 || s.Workloads[0].Template.Spec.Containers[0].Name != "NAME") {
				t.Errorf("the workloads are %v", s.Workloads)
			}
		})
	}
}

// The readers of Kubernetes' tools take such manifests, and so may any chart's output be.
func TestManifestsAreReadAsKubernetesToolsReadThem(t *testing.T) {
	t.Parallel()
	s := read(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
immutable: yes
data:
  LEVEL: info
  LEVEL: debug
  MODE: "yes"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, app: web}
spec:
  template:
    spec:
      containers:
      - name: app
        envFrom: [{configMapRef: {name: web, optional: yes}}]
`)
	if len(s.Configs) != 1 || len(s.Workloads) != 1 {
		t.Fatalf("read %v, %v", s.Configs, s.Workloads)
	}
	for _, c := range s.Configs {
		if fmt.Sprint(c.Data) != "map[LEVEL:debug MODE:yes]" || !c.Immutable {
			t.Errorf("it holds %v, immutable %t", c.Data, c.Immutable)
		}
	}
	if o := s.Workloads[0].Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Optional; o == nil || !*o {
		t.Errorf("optional is %v", o)
	}
	if want := "[in.yaml:8: a key is there twice, and the last one counts in.yaml:15: a key is there twice, and the last one counts]"; fmt.Sprint(s.Remarks) != want {
		t.Errorf("remarked %v, want %s", s.Remarks, want)
	}
}

func TestErrorsNameTheLineAndNothingOfTheText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"broken YAML":               {"a: 1\n---\napiVersion: v1\nkind: Secret\nstringData:\n  MARKER: 'x\n", "in.yaml:6: not valid YAML"},
		"a template of other types": {"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: MARKER\n", "in.yaml:2: deployment/web has a pod template that the API would refuse: spec.containers is of another type there"},
		"a file that is no text":    {"---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: \"\xff\"\n", "in.yaml:5: not valid YAML: it is no UTF-8, or has control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &manifest.Set{Kinds: manifest.Kinds()}
			if err := s.Read("in.yaml", c.text); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestHostileInputIsRefusedSoon(t *testing.T) {
	bomb := "apiVersion: v1\nkind: ConfigMap\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"aliases that expand":                 {bomb, yamltree.ErrAliases},
		"of a kind that nobody asks for":      {strings.Replace(bomb, "ConfigMap", "Widget", 1), yamltree.ErrAliases},
		"deep nesting":                        {"kind: ConfigMap\na: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), yamltree.ErrDeep},
		"deeper than the parser takes":        {"kind: ConfigMap\na: " + strings.Repeat("[", 1_000_000), yamltree.ErrDeep},
		"10,000 deep":                         {"kind: ConfigMap\na: " + strings.Repeat("{a: ", 10_000) + strings.Repeat("}", 10_000), yamltree.ErrDeep},
		"JSON that is 10,000 deep":            {"{\"kind\": \"ConfigMap\", \"a\": " + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "}", yamltree.ErrDeep},
		"a List of Lists that is 10,000 deep": {strings.Repeat("{kind: List, apiVersion: v1, items: [", 10_000) + strings.Repeat("]}", 10_000), yamltree.ErrDeep},
		"100 MB":                              {strings.Repeat("a: bcdefg\n", 10<<20), manifest.ErrLarge},
		"a merge of itself":                   {"a: &a\n  <<: *a\n", yamltree.ErrDeep},
		"an indentation that goes on and on":  {"kind: ConfigMap\n" + steps(1_000), yamltree.ErrDeep},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			s := &manifest.Set{Kinds: manifest.Kinds()}
			err := s.Read("in.yaml", c.text)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if took, used := time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>20; took > 20*time.Second || used > 1024 {
				t.Errorf("took %v and %d MiB", took, used)
			}
		})
	}
}

func steps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d:\n", strings.Repeat(" ", i), i)
	}
	return b.String()
}

// large is about n bytes of rendered manifests as big charts have them: many workloads, ConfigMaps with files, CRDs.
func large(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\ndata:\n  app.yaml: |\n", i)
		for j := range 60 {
			fmt.Fprintf(&b, "    section%d:\n      setting: value-%d\n      other: %d\n", j, i, j)
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s%d\ndata:\n  key: %s\n", i, base64.StdEncoding.EncodeToString(make([]byte, 1000)))
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w%d\nspec:\n  template:\n    spec:\n      containers:\n        - name: app\n          envFrom:\n            - configMapRef:\n                name: c%d\n          env:\n", i, i)
		for j := range 20 {
			fmt.Fprintf(&b, "            - name: V%d\n              value: x\n", j)
		}
		b.WriteString("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: x\nspec:\n")
		for j := range 100 {
			fmt.Fprintf(&b, "  property%d:\n    type: string\n    description: some words about what it is for\n", j)
		}
	}
	return b.String()
}

func BenchmarkRead10MB(b *testing.B) {
	text := large(10 << 20)
	b.ReportAllocs()
	for b.Loop() {
		s := &manifest.Set{Kinds: manifest.Kinds()}
		if err := s.Read("in.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

// A script is parsed, so it is bounded before that.
func TestHostileScriptsAreReadSoon(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"parentheses":    strings.Repeat("(", 60_000),
		"substitutions":  strings.Repeat("$(", 30_000),
		"conditions":     strings.Repeat("if ", 10_000),
		"braces":         strings.Repeat("{ ", 30_000),
		"backquotes":     strings.Repeat("`", 60_000),
		"quotes":         strings.Repeat("sh -c '\"", 8_000),
		"here-documents": strings.Repeat("cat <<A\n", 8_000),
		"a large script": strings.Repeat("kubectl get pods\n", 1<<14),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(map[string]any{
				"on": "push", "concurrency": map[string]any{"cancel-in-progress": true}, "jobs": map[string]any{"a": map[string]any{"steps": []any{map[string]any{"run": script}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			s := &manifest.Set{}
			if err := s.Read("in.yaml", string(text)); err != nil || len(s.Pipelines) != 1 || len(s.Pipelines[0].Deploys) != 0 {
				t.Errorf("%v: %+v", err, s.Pipelines)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// FuzzRead reads whatever; it must end, and errors have a place.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		stream, "", "---\n---", "kind: List\napiVersion: v1\nitems: [null, {kind: Pod, apiVersion: v1, spec: {containers: [{}]}}, *x]",
		"on: push\nconcurrency: {cancel-in-progress: true}\njobs:\n  a:\n    steps: [{run: \"if x; then sh -c 'helm -n a \\\\\n upgrade'; fi # $(${{ y }})\"}]\n  # tidemark\n  b: {steps: [{run: \"`helm\"}]}\nenv: x\n",
		"on: push\njobs:\n  a: {concurrency: {cancel-in-progress: true}, steps: [{run: kubectl apply}]}\n", "stages: []\nd: {interruptible: true, script: [[helm upgrade]]}",
		"kind: ConfigMap\napiVersion: v1\nmetadata: []\ndata: {a: [b], c: 1}\nbinaryData: x\n", "kind: Secret\napiVersion: v1\ndata: {a: '!'}\nmetadata: {annotations: {config.kubernetes.io/origin: 'path: x'}}",
		"kind: Deployment\napiVersion: apps/v1\nspec: &a {template: *a}", "\ufeffkind: Pod\r\napiVersion: v1\r\n", "--- {kind: Namespace, apiVersion: v1}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &manifest.Set{Kinds: manifest.Kinds()}
		if err := s.Read("in.yaml", text); err != nil {
			var placed *manifest.Error
			if !errors.As(err, &placed) || placed.File == "" {
				t.Errorf("an error without a place: %v", err)
			}
		}
		for _, w := range s.Workloads {
			_, _ = w.References(), w.String()
		}
	})
}
