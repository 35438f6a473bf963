package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// What happens to pods, nodes and the controller.

func (w *world) exit() bool {
	return w.exitOneOf(func(wire.Start) bool { return true })
}

// exitReader lets a container end that reads the object, if one runs.
func (w *world) exitReader(o *configObject) {
	w.exitOneOf(func(s wire.Start) bool {
		name, _, _ := strings.Cut(s.Pod, "-")
		return len(readings[name+"/"+s.Container][o.String()]) > 0
	})
}

func (w *world) exitOneOf(may func(wire.Start) bool) bool {
	running, err := w.Running(w.t.Context())
	w.must(err)
	running = slices.DeleteFunc(running, func(s wire.Start) bool { return !may(s) })
	if len(running) == 0 {
		return false
	}
	victim := pick(w.random, running)
	who := wire.Selector{Namespace: w.Namespace, PodPrefix: victim.Pod}
	if w.random.IntN(2) == 0 {
		who.Container = victim.Container
	}
	_, err = w.Lab.Exit(w.t.Context(), who, int32(w.random.IntN(2)))
	w.must(err)
	return true
}

// delay makes starts on a node take long, with the environment read early or late.
func (w *world) delay() bool {
	w.must(w.Lab.Delay(w.t.Context(), wire.Delay{
		Selector: wire.Selector{Namespace: w.Namespace, Node: pick(w.random, w.Lab.Nodes())},
		Stage:    pick(w.random, []wire.Stage{wire.BeforeEnvironment, wire.BeforeStart}),
		Duration: time.Second + time.Duration(w.random.IntN(3000))*time.Millisecond,
	}))
	return true
}

func (w *world) endDelays() bool {
	w.must(w.Lab.ClearDelays(w.t.Context()))
	return true
}

func (w *world) deletePod() bool {
	running, err := w.Running(w.t.Context())
	w.must(err)
	if len(running) == 0 {
		return false
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pick(w.random, running).Pod}}
	w.must(ctrlclient.IgnoreNotFound(w.API.Delete(w.t.Context(), pod)))
	return true
}

func (w *world) drain() bool {
	if w.cordoned != "" {
		return false
	}
	w.cordoned = pick(w.random, w.Lab.Nodes())
	_, _, err := w.Lab.Kubectl(w.t.Context(), "drain", w.cordoned, "--ignore-daemonsets", "--force", "--timeout=10s")
	if err != nil {
		w.t.Logf("step %d: %v", w.step, err) // pods that leave slowly are no matter here
	}
	return true
}

func (w *world) uncordon() bool {
	if w.cordoned == "" {
		return false
	}
	_, _, err := w.Lab.Kubectl(w.t.Context(), "uncordon", w.cordoned)
	w.must(err)
	w.cordoned = ""
	return true
}

// cut is a time for which a node was cut off; without an end while it is.
type cut struct {
	node     string
	from, to time.Time
}

// cutNow is the node that is cut off, "" when none is.
func (w *world) cutNow() string {
	if n := len(w.cuts); n > 0 && w.cuts[n-1].to.IsZero() {
		return w.cuts[n-1].node
	}
	return ""
}

func (w *world) cutOff() bool {
	if w.cutNow() != "" {
		return false
	}
	node := pick(w.random, w.Lab.Nodes())
	w.cuts, w.cutSince = append(w.cuts, cut{node: node, from: time.Now()}), w.step
	w.must(w.Lab.Partition(w.t.Context(), node))
	return true
}

func (w *world) heal() bool {
	node := w.cutNow()
	if node == "" {
		return false
	}
	w.must(w.Lab.Heal(w.t.Context(), node))
	w.cuts[len(w.cuts)-1].to = time.Now()
	return true
}

// stale is for how long a kubelet that is connected again may serve what it knew before: so long may it wait, at most,
// before it tries anew to watch an object.
const stale = time.Minute

// wasCutSince reports whether the node was cut off, or served what it knew before it was, at the time or later.
func (w *world) wasCutSince(node string, at time.Time) bool {
	return slices.ContainsFunc(w.cuts, func(c cut) bool {
		return c.node == node && (c.to.IsZero() || at.Before(c.to.Add(stale)))
	})
}

// wasCutAt is wasCutSince at the time only.
func (w *world) wasCutAt(node string, at time.Time) bool {
	return slices.ContainsFunc(w.cuts, func(c cut) bool {
		return c.node == node && at.After(c.from) && (c.to.IsZero() || at.Before(c.to.Add(stale)))
	})
}

func (w *world) workload() string { return pick(w.random, w.workloads) }

func (w *world) scale() bool {
	for {
		if name := w.workload(); !strings.HasPrefix(name, "daemonset/") {
			return w.ask("scale", name, fmt.Sprintf("--replicas=%d", 1+w.random.IntN(3)))
		}
	}
}

// ask asks kubectl, which may refuse: there is not always a revision to go back to.
func (w *world) ask(args ...string) bool {
	_, err := w.Kubectl(w.t.Context(), args...)
	return err == nil
}

// controllerFlags let another controller take over soon, and let rollouts happen as often as they are wanted.
var controllerFlags = []string{"--lease-duration=4s", "--renew-deadline=3s", "--storm-rolls=0"}

func (w *world) start() bool {
	if w.down == 0 && w.controller != nil {
		return false
	}
	c, err := scenario.Start(w.t.Context(), shared.lab, scenario.Program{Binary: shared.binary, Flags: controllerFlags})
	w.must(err)
	w.controller, w.down = c, 0
	return true
}

// stop stops the controller, and starts it at once or after some steps.
func (w *world) stop() bool {
	if w.down != 0 {
		return false
	}
	w.must(w.controller.Stop())
	w.down = w.step + w.random.IntN(8)
	return true
}

func (w *world) kill() bool {
	if w.down != 0 {
		return false
	}
	w.must(w.controller.Kill())
	w.down = w.step + 2 + w.random.IntN(12)
	return true
}
