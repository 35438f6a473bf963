package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// TestSoakEveryContainerReadsWhatItsRevisionPins lets things happen at random to pinned workloads, their configuration, their
// pods and nodes, and the controller, with clean-up running all the while at its shortest age. By the lab's record no
// container may start with another content of a versioned object than its revision's, and no copy may go that a retained
// revision needs.
func TestSoakEveryContainerReadsWhatItsRevisionPins(t *testing.T) {
	course := courseOf(t, 200, 5000)
	v := alonePinned(t)
	w := &pinWorld{scene: v.open("pins", v1.ModePin), random: rand.New(rand.NewPCG(course.seed, 0)), hooked: course.seed%2 == 0}
	w.control = func() *scenario.Controller { return v.control(pinFlags...) }
	if w.hooked {
		h := v.webhooks(workloadWebhook)
		w.control = func() *scenario.Controller { return h.serve(pinFlags...) }
	}
	j := newPinJudge(w)
	w.begin()
	step := 0
	for course.goesOn(t, step) {
		step++
		what := w.advance()
		w.past = append(w.past, fmt.Sprintf("%s step %d: %s", time.Now().UTC().Format(time.StampMilli), step, what))
		if w.random.IntN(3) == 0 {
			time.Sleep(time.Duration(w.random.IntN(1500)) * time.Millisecond)
		}
		j.look()
		if t.Failed() {
			t.Fatalf("what happened last:\n%s", strings.Join(w.past[max(0, len(w.past)-40):], "\n"))
		}
	}
	w.calm()
	j.look()
	j.superfluous()
	j.report(step)
}

// pinWorld is the scene of the random steps.
type pinWorld struct {
	*scene
	random *rand.Rand
	// hooked says that a controller serves the webhook on workloads while it runs; control starts one.
	hooked bool
	// passed is what the webhook said of workloads that were made while it was too slow to decide, as on a busy machine.
	passed   string
	control  func() *scenario.Controller
	program  *scenario.Controller // nil while none runs
	rollouts *client.Rollouts
	past     []string
	cordoned string
	values   int
	jobs     int
	// maybe says that the optional ConfigMap is there.
	maybe bool
}

// The workloads read as pinReadings says. The Rollout's canary stops at its first step.
var (
	ownKinds        = []string{"deployment/api", "deployment/job", "statefulset/db", "daemonset/agent"}
	pinnedWorkloads = append(slices.Clone(ownKinds), canary)
)

const (
	canary  = "rollout/canary"
	nightly = "cronjob/nightly"
)

// pinFlags make rollouts happen as often as they are wanted, and clean-up at once.
var pinFlags = []string{"--storm-rolls=0", "--settle=300ms", "--gc-interval=2s", "--gc-min-age=1s", "--gc-history=1"}

// pinReading is what a container of the random steps reads of what is versioned, from a variable of its environment or a file.
type pinReading struct {
	container, env, file string
	kind                 workload.ObjectKind
	object, key          string
}

var pinReadings = []pinReading{
	{"app", "MODE", "", workload.ConfigMap, "web", "MODE"},
	{"app", "DOOR", "", workload.Secret, "door", "KEY"},
	{"app", "MAYBE_KEY", "", workload.ConfigMap, "maybe", "KEY"},
	{"app", "", "/files/conf", workload.ConfigMap, "files", "conf"},
	{"app", "", "/sub/conf", workload.ConfigMap, "files", "conf"},
	{"app", "", "/all/conf", workload.ConfigMap, "files", "conf"},
	{"app", "", "/all/key", workload.Secret, "door", "KEY"},
	{"app", "", "/all/maybe", workload.ConfigMap, "maybe", "KEY"},
	{"first", "MODE", "", workload.ConfigMap, "web", "MODE"},
	{"first", "DOOR", "", workload.Secret, "door", "KEY"},
	{"first", "MAYBE", "", workload.ConfigMap, "maybe", "KEY"},
	{"first", "", "/all/conf", workload.ConfigMap, "files", "conf"},
	{"first", "", "/all/key", workload.Secret, "door", "KEY"},
	{"first", "", "/all/maybe", workload.ConfigMap, "maybe", "KEY"},
}

// pinReadingsOfJobs come on top in the CronJob's Jobs. Nobody else reads it, so no other revision keeps its copies.
var pinReadingsOfJobs = []pinReading{{"app", "OWN_KEY", "", workload.ConfigMap, "own", "KEY"}}

// What pinReadings says, as manifests.
const (
	pinReads = sample + `env: [{name: DOOR, valueFrom: {secretKeyRef: {name: door, key: KEY}}}]
envFrom: [{configMapRef: {name: web}}, {prefix: MAYBE_, configMapRef: {name: maybe, optional: true}}]
volumeMounts: [{name: files, mountPath: /files}, {name: files, mountPath: /sub/conf, subPath: conf}, {name: all, mountPath: /all}]
`
	pinReadsPod = `terminationGracePeriodSeconds: 1
initContainers:
- name: first
  image: tidemark-sample
  command: [/sample]
  args: [--require=MODE, --exit-after=1ms]
  env:
  - {name: DOOR, valueFrom: {secretKeyRef: {name: door, key: KEY}}}
  - {name: MAYBE, valueFrom: {configMapKeyRef: {name: maybe, key: KEY, optional: true}}}
  envFrom: [{configMapRef: {name: web}}]
  volumeMounts: [{name: all, mountPath: /all}]
volumes:
- {name: files, configMap: {name: files}}
- name: all
  projected:
    sources:
    - {configMap: {name: files}}
    - {secret: {name: door, items: [{key: KEY, path: key}]}}
    - {configMap: {name: maybe, optional: true, items: [{key: KEY, path: maybe}]}}
`
	pinObjects = webConfig + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data: {conf: start}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own}
data: {KEY: start}
---
apiVersion: v1
kind: Secret
metadata: {name: door, annotations: {` + v1.AnnotationTreatAs + `: versioned}}
stringData: {KEY: start}
`
)

func (w *pinWorld) begin() {
	w.t.Helper()
	w.must(scenario.AwaitAdmission(w.t.Context(), w.Lab, scenario.PodsRewritten))
	_, err := w.Lab.StartArgoRollouts(w.t.Context())
	w.must(err)
	w.rollouts, err = w.Lab.Rollouts(w.Namespace)
	w.must(err)
	w.program = w.control()
	manifest := pinObjects
	for _, object := range ownKinds {
		manifest += program(object, 2, pinReads, pinReadsPod)
	}
	manifest += asRollout(program("deployment/canary", 2, pinReads, pinReadsPod), canarySteps)
	// Jobs end after a while, or are tried again in the same pod.
	manifest += strings.NewReplacer("restartPolicy: Never", "restartPolicy: OnFailure", "--require=MODE]", "--require=MODE, --exit-after=15s]",
		"{prefix: MAYBE_,", "{prefix: OWN_, configMapRef: {name: own}}, {prefix: MAYBE_,",
		"    spec:\n      template:", "    spec:\n      ttlSecondsAfterFinished: 2\n      template:",
	).Replace(cronJob("nightly", false, pinReads, pinReadsPod))
	w.apply(manifest)
	for _, object := range append(slices.Clone(pinnedWorkloads), nightly) {
		w.pinned(object, "web", "")
	}
	w.passed = about(w.program.Log(), "Could not decide")
	for _, object := range pinnedWorkloads {
		w.kubectl("patch", object, "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":3}}`)
	}
	w.rolledOut(ownKinds...)
}

// calm brings everything up that the steps have taken down.
func (w *pinWorld) calm() {
	w.t.Helper()
	w.uncordon()
	w.start()
}

func (w *pinWorld) advance() string {
	steps := []struct {
		name   string
		weight int
		do     func() string
	}{
		{"edit", 5, w.edit}, {"edit back", 1, w.editBack}, {"undo", 4, w.undo}, {"restart", 1, w.restart}, {"image", 2, w.image},
		{"scale", 2, w.scale}, {"scale while paused", 1, w.scalePaused}, {"exit", 4, w.exit}, {"delete pod", 3, w.deletePod},
		{"drain", 1, w.drain}, {"uncordon", 2, w.uncordon}, {"kill controller", 1, w.kill}, {"start controller", 2, w.start},
		{"job", 3, w.job}, {"promote", 2, w.canary((*client.Rollouts).Promote)}, {"abort", 2, w.canary((*client.Rollouts).Abort)},
		{"retry", 1, w.canary((*client.Rollouts).Retry)}, {"cut off", 1, w.cutOff},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := w.random.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			return s.name + " " + s.do()
		}
	}
	return ""
}

func (w *pinWorld) any() string { return pick(w.random, pinnedWorkloads) }

func (w *pinWorld) edit() string {
	w.values++
	value := fmt.Sprint("value-", w.values)
	switch w.random.IntN(5) {
	case 0:
		w.set("files", "conf", value)
		return "files " + value
	case 1:
		w.setSecret("door", "KEY", value)
		return "door " + value
	case 2:
		return "maybe " + w.editMaybe(value)
	}
	w.set("web", "MODE", value)
	return "web " + value
}

// editMaybe lets the optional ConfigMap come, change or go.
func (w *pinWorld) editMaybe(value string) string {
	switch {
	case !w.maybe:
		w.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: maybe}\ndata: {KEY: " + value + "}\n")
		w.maybe = true
	case w.random.IntN(2) == 0:
		w.kubectl("delete", "configmap", "maybe")
		w.maybe = false
		return "goes"
	default:
		w.set("maybe", "KEY", value)
	}
	return value
}

func (w *pinWorld) editBack() string {
	w.set("web", "MODE", "one")
	return "web one"
}

func (w *pinWorld) undo() string {
	object := w.any()
	var err error
	if object == canary {
		err = w.rollouts.Undo(w.t.Context(), "canary", 0)
	} else {
		_, err = w.Kubectl(w.t.Context(), "rollout", "undo", object)
	}
	if err != nil {
		return object + " refused" // there is not always a revision to go back to, and a paused one cannot
	}
	return object
}

func (w *pinWorld) restart() string {
	object := pick(w.random, ownKinds)
	w.kubectl("rollout", "restart", object)
	return object
}

func (w *pinWorld) image() string {
	object, image := pick(w.random, append(slices.Clone(pinnedWorkloads), nightly)), fmt.Sprint("app=tidemark-sample:", w.random.IntN(3))
	if object == canary {
		_, image, _ := strings.Cut(image, "=")
		w.kubectl("patch", object, "--type=json", "-p", `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "`+image+`"}]`)
		return object + " " + image
	}
	w.kubectl("set", "image", object, image)
	return object + " " + image
}

func (w *pinWorld) scalable() string {
	return pick(w.random, append(slices.Clone(ownKinds[:3]), canary))
}

func (w *pinWorld) scale() string {
	object, n := w.scalable(), 1+w.random.IntN(4)
	w.kubectl("scale", object, fmt.Sprint("--replicas=", n))
	return fmt.Sprint(object, " ", n)
}

// scalePaused scales a Deployment out in the middle of a rollout, which scales its old ReplicaSets too.
func (w *pinWorld) scalePaused() string {
	const object = "deployment/api"
	w.kubectl("rollout", "restart", object)
	w.kubectl("rollout", "pause", object)
	w.kubectl("scale", object, fmt.Sprint("--replicas=", 3+w.random.IntN(3)))
	time.Sleep(time.Second)
	w.kubectl("rollout", "resume", object)
	return object
}

// job starts a Job of the CronJob. What no other workload reads moves on twice while the Job runs, so that nothing but the Job names
// the copy that it reads.
func (w *pinWorld) job() string {
	w.jobs++
	name := fmt.Sprint("nightly-", w.jobs)
	w.kubectl("create", "job", name, "--from="+nightly)
	for range 2 {
		w.values++
		w.set("own", "KEY", fmt.Sprint("value-", w.values))
		time.Sleep(time.Second)
	}
	return name
}

func (w *pinWorld) exit() string {
	running, err := w.Running(w.t.Context())
	w.must(err)
	if len(running) == 0 {
		return "nobody"
	}
	victim := pick(w.random, running)
	_, err = w.Lab.Exit(w.t.Context(), wire.Selector{Namespace: w.Namespace, PodPrefix: victim.Pod}, 1)
	w.must(err)
	return victim.Pod
}

func (w *pinWorld) deletePod() string {
	running, err := w.Running(w.t.Context())
	w.must(err)
	if len(running) == 0 {
		return "none"
	}
	victim := pick(w.random, running).Pod
	w.must(ctrlclient.IgnoreNotFound(w.API.Delete(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: victim}})))
	return victim
}

func (w *pinWorld) drain() string {
	if w.cordoned != "" {
		return "not again"
	}
	w.cordoned = pick(w.random, w.Lab.Nodes())
	_, _, err := w.Lab.Kubectl(w.t.Context(), "drain", w.cordoned, "--ignore-daemonsets", "--force", "--timeout=20s")
	if err != nil {
		return w.cordoned + ", slowly" // pods that leave slowly are no matter here
	}
	return w.cordoned
}

func (w *pinWorld) uncordon() string {
	if w.cordoned == "" {
		return "none"
	}
	_, _, err := w.Lab.Kubectl(w.t.Context(), "uncordon", w.cordoned)
	w.must(err)
	node := w.cordoned
	w.cordoned = ""
	return node
}

// canary does something to the Rollout; not at every moment there is something to do.
func (w *pinWorld) canary(do func(*client.Rollouts, context.Context, string) error) func() string {
	return func() string {
		if err := do(w.rollouts, w.t.Context(), "canary"); err != nil {
			return "refused"
		}
		return ""
	}
}

// cutOff cuts a node off the API server for a while, in which configuration changes and containers end: it starts them again with
// what it knows.
func (w *pinWorld) cutOff() string {
	node := pick(w.random, w.Lab.Nodes())
	w.must(w.Lab.Partition(w.t.Context(), node))
	edited := w.edit()
	for range 3 {
		w.exit()
	}
	time.Sleep(time.Duration(1000+w.random.IntN(2000)) * time.Millisecond)
	w.must(w.Lab.Heal(w.t.Context(), node))
	return node + ", " + edited
}

func (w *pinWorld) kill() string {
	if w.program == nil {
		return "it is down"
	}
	w.must(w.program.Kill())
	w.program = nil
	return ""
}

func (w *pinWorld) start() string {
	if w.program != nil {
		return "it runs"
	}
	w.program = w.control()
	return ""
}
