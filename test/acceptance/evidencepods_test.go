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
)

// What happens to pods.

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
