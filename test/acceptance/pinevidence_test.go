package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// nowhere makes status look for Tidemark where it is not, so that it has no history.
var nowhere = []string{"--tidemark-namespace", "nowhere"}

func TestWhatPinnedPodsLoadedIsKnownWithoutAHistory(t *testing.T) {
	turn(t)
	if err := shared.pins.open(shared.binary); err != nil {
		t.Fatal(err)
	}
	s := venue{t, shared.pins.lab}.open("pin-evidence", v1.ModeObserve) // nothing but this test pins
	const pods = 3
	s.apply(webConfig)
	one := s.copied("web")
	s.apply(pinnedProgram("deployment/web", pods, "configmap/web="+one))
	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{"one": pods})
	s.allPinned(s.verdict("deployment/web", "in-step", nowhere...), one, pods)

	s.set("web", "MODE", "two")
	status := s.verdict("deployment/web", "dormant", nowhere...)
	s.allPinned(status, one, pods)
	s.agreesWithRecord(status, mode)
	s.kubectl("delete", "pod", "-l", "app=web", "--wait=false")
	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{"one": pods}) // a pod that comes later reads its copy too
	s.allPinned(s.verdict("deployment/web", "dormant", nowhere...), one, pods)

	two := s.copied("web")
	s.apply(pinnedProgram("deployment/web", pods, "configmap/web="+two))
	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{"two": pods})
	s.allPinned(s.verdict("deployment/web", "in-step", nowhere...), two, pods)

	explained, err := s.Tidemark(t.Context(), "explain", "deployment/web")
	s.must(err)
	for _, want := range []string{"Pinned (", two, "pinned"} {
		if !strings.Contains(explained, want) {
			t.Errorf("explain does not say %q:\n%s", want, explained)
		}
	}

	// The copy that pods run on is lost: what they loaded cannot be told, and none could start again.
	s.kubectl("delete", "configmap", two)
	s.verdict("deployment/web", "waiting", nowhere...)
}

func TestPodsThatDoNotReadWhatTheirPinsSayAreUnpinned(t *testing.T) {
	turn(t)
	if err := shared.pins.open(shared.binary); err != nil {
		t.Fatal(err)
	}
	s := venue{t, shared.pins.lab}.open("unpinned", "")
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	one := s.copied("web")
	// As if they had been created with it while nothing heeded it.
	s.kubectl("annotate", "pod", "-l", "app=web", v1.AnnotationPins+"=configmap/web="+one)

	status := s.verdict("deployment/web", "unpinned", "--default-mode", v1.ModePin)
	if status.InStep || !strings.Contains(status.Reason, "2 of 2 pods do not read what their pins say of configmap/web") {
		t.Errorf("in step %v: %s", status.InStep, status.Reason)
	}
	for _, p := range status.Pods {
		if len(p.Unmatched) != 1 || p.Containers[0].Loaded[0].Evidence == "pinned" {
			t.Errorf("pod %+v", p)
		}
	}
}

// copied makes a snapshot of a ConfigMap by hand, and returns its name.
func (s *scene) copied(configMap string) string {
	s.t.Helper()
	o := workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: configMap}
	cm := &corev1.ConfigMap{}
	s.must(s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: o.Namespace, Name: o.Name}, cm))
	name := snapshot.Name(o, cluster.ContentOfConfigMap(cm).Whole(o), 0)
	s.must(s.API.Create(s.t.Context(), snapshot.OfConfigMap(cm, name, snapshot.Provenance{
		Source: o, SourceUID: string(cm.UID), SourceVersion: cm.ResourceVersion, Revision: 1, Time: time.Now(),
	})))
	return name
}

// pinnedProgram is the manifest of a workload that reads the ConfigMap web, and whose template carries pins.
func pinnedProgram(object string, replicas int, pins string) string {
	return strings.Replace(program(object, replicas, readsWeb), "template:\n    metadata: {",
		fmt.Sprintf("template:\n    metadata: {annotations: {%s: %q}, ", v1.AnnotationPins, pins), 1)
}

// allPinned fails the test unless status says of each pod that it reads the copy.
func (s *scene) allPinned(f v1.Fleet, name string, pods int) {
	s.t.Helper()
	n := 0
	for _, p := range f.Pods {
		for _, l := range p.Containers[0].Loaded {
			if l.Evidence == "pinned" && l.Snapshot == name && l.Digest != "" {
				n++
			}
		}
	}
	if n != pods || len(f.Pods) != pods {
		s.t.Errorf("%d of %d pods are said to read %s, want %d: %+v", n, len(f.Pods), name, pods, f.Pods)
	}
}
