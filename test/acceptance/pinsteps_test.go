package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// TestSoakEveryContainerReadsWhatItsRevisionPins lets things happen at random to pinned workloads, their configuration, their
// pods and nodes, and the controller, with clean-up running all the while at its shortest age. By the lab's record no
// container may start with another content of a versioned object than its revision's, and no copy may go that a retained
// revision needs. TIDEMARK_SEED chooses what happens, TIDEMARK_STEPS for how long.
func TestSoakEveryContainerReadsWhatItsRevisionPins(t *testing.T) {
	steps := 200
	if os.Getenv("TIDEMARK_SOAK") != "" {
		steps = 5000
	}
	if n := number(t, "TIDEMARK_STEPS"); n > 0 {
		steps = int(n)
	}
	seed := number(t, "TIDEMARK_SEED")
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("TIDEMARK_SEED=%d TIDEMARK_STEPS=%d", seed, steps)

	v := alonePinned(t)
	w := &pinWorld{scene: v.open("pins", v1.ModePin), venue: v, random: rand.New(rand.NewPCG(seed, 0))}
	w.begin()
	j := newPinJudge(w)
	for step := 1; step <= steps; step++ {
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
	j.report(steps)
}

// pinWorld is the scene of the random steps.
type pinWorld struct {
	*scene
	venue    venue
	random   *rand.Rand
	program  *scenario.Controller // nil while none runs
	rollouts *client.Rollouts
	past     []string
	cordoned string
	values   int
}

// The workloads read the ConfigMap web into their environment and the ConfigMap files as files. The Rollout's canary stops at its
// first step.
var (
	ownKinds        = []string{"deployment/api", "deployment/job", "statefulset/db", "daemonset/agent"}
	pinnedWorkloads = append(slices.Clone(ownKinds), canary)
)

const canary = "rollout/canary"

// pinFlags make rollouts happen as often as they are wanted, and clean-up at once.
var pinFlags = []string{"--storm-rolls=0", "--settle=300ms", "--gc-interval=2s", "--gc-min-age=1s", "--gc-history=1"}

const readsBoth = sample + `envFrom: [{configMapRef: {name: web}}]
volumeMounts: [{name: files, mountPath: /files}, {name: files, mountPath: /sub/conf, subPath: conf}]
`

func (w *pinWorld) begin() {
	w.t.Helper()
	_, err := w.Lab.StartArgoRollouts(w.t.Context())
	w.must(err)
	w.rollouts, err = w.Lab.Rollouts(w.Namespace)
	w.must(err)
	w.program = w.venue.control(pinFlags...)
	manifest := webConfig + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {conf: start}\n"
	manifestOf := func(object string) string {
		return program(object, 2, readsBoth, "volumes: [{name: files, configMap: {name: files}}]", "terminationGracePeriodSeconds: 1")
	}
	for _, object := range ownKinds {
		manifest += manifestOf(object)
	}
	manifest += asRollout(manifestOf("deployment/canary"), canarySteps)
	w.apply(manifest)
	for _, object := range pinnedWorkloads {
		w.pinned(object, "web", "")
		w.kubectl("patch", object, "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":3}}`)
	}
	w.rolledOut(ownKinds...)
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
		{"promote", 2, w.canary((*client.Rollouts).Promote)}, {"abort", 2, w.canary((*client.Rollouts).Abort)},
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
	name, key := "web", "MODE"
	if w.random.IntN(2) == 0 {
		name, key = "files", "conf"
	}
	value := fmt.Sprint("value-", w.values)
	w.set(name, key, value)
	return name + " " + value
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
	object, image := w.any(), fmt.Sprint("app=tidemark-sample:", w.random.IntN(3))
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
	w.program = w.venue.control(pinFlags...)
	return ""
}
