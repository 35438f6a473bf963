package acceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/test/scenario"
)

// open starts the lab with mode pin, and its controller, when the first test needs them.
func (e *estate) open(binary string) error {
	e.start.Do(func() {
		ctx := context.Background() // it outlives the test
		if e.lab, e.err = client.Start(ctx, labOptions); e.err != nil {
			return
		}
		if e.err = scenario.InstallPin(ctx, e.lab); e.err != nil {
			return
		}
		if e.program, e.err = scenario.Start(ctx, e.lab, scenario.Program{Binary: binary, Flags: []string{"--rollout-interval=1s"}}); e.err == nil {
			e.err = e.program.HasWatched(ctx)
		}
	})
	return e.err
}

func (e *estate) end() error {
	var errs []error
	if e.program != nil {
		errs = append(errs, e.program.Stop())
	}
	if e.lab != nil {
		errs = append(errs, e.lab.Stop())
	}
	return errors.Join(errs...)
}

// openPinned makes a namespace in mode pin on the lab that tests of that mode share. The test must have its turn.
func openPinned(t *testing.T, namespace string) *scene {
	t.Helper()
	if err := shared.pins.open(shared.binary); err != nil {
		t.Fatal(err)
	}
	s := venue{t, shared.pins.lab}.open(namespace, v1.ModePin)
	s.controller = shared.pins.program
	return s
}

// pinsOf reads the pins on an object's pod template.
func (s *scene) pinsOf(object string) snapshot.Pins {
	s.t.Helper()
	text, _, err := unstructured.NestedString(s.get(object).Object, append(templatePath(object), "metadata", "annotations", v1.AnnotationPins)...)
	s.must(err)
	pins, err := snapshot.ParsePins(s.Namespace, text)
	s.must(err)
	return pins
}

// pinned waits until an object is pinned on the workload's template to another snapshot than the one given, and returns it.
func (s *scene) pinned(object, configMap, before string) string {
	s.t.Helper()
	o := workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: configMap}
	var name string
	s.eventually("a new pin of "+configMap+" on "+object, func() error {
		if name = s.pinsOf(object)[o]; name == before {
			return fmt.Errorf("it is still %q", name)
		}
		return nil
	})
	return name
}

// snapshots lists the names of the snapshots of a ConfigMap.
func (s *scene) snapshots(configMap string) []string {
	s.t.Helper()
	list := &corev1.ConfigMapList{}
	s.must(s.API.List(s.t.Context(), list, ctrlclient.InNamespace(s.Namespace), ctrlclient.MatchingLabels{v1.LabelSnapshot: v1.True}))
	var names []string
	for i := range list.Items {
		if c, ok := snapshot.Read(workload.ConfigMap, &list.Items[i]); ok && c.Source.Name == configMap {
			names = append(names, c.Object.Name)
		}
	}
	return names
}

// holds fails the test unless a snapshot has the data, and is immutable.
func (s *scene) holds(name string, data map[string]string) {
	s.t.Helper()
	cm := &corev1.ConfigMap{}
	s.must(s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: name}, cm))
	if !maps.Equal(cm.Data, data) || cm.Immutable == nil || !*cm.Immutable {
		s.t.Errorf("snapshot %s holds %v, immutable %v; want %v, immutable", name, cm.Data, cm.Immutable, data)
	}
}

func TestARollbackPassesOverARevisionThatNeverHadAPod(t *testing.T) {
	turn(t)
	s := openPinned(t, "seen-available")
	const web = "deployment/web"
	s.apply(webConfig + program(web, 2, ofImage("1")))
	s.pinned(web, "web", "")
	s.rolledOut(web)
	hash := func() string {
		return s.kubectl("get", "pod", "-l", "app=web", "--sort-by=.metadata.creationTimestamp", "-o", `jsonpath={.items[-1:].metadata.labels.pod-template-hash}`)
	}
	first := hash()
	s.eventually("the revision to be noted", func() error {
		if noted := s.get(web).GetAnnotations()[v1.AnnotationSeenAvailable]; !strings.Contains(noted, first) {
			return fmt.Errorf("noted is %q, want %s in it", noted, first)
		}
		return nil
	})

	s.apply(program(web, 2, ofImage("2"), noNode))
	s.eventually("the revision that no node takes", func() error {
		for _, r := range s.listed(web) {
			if r.Images[0].Image == "tidemark-sample:2" {
				return nil
			}
		}
		return errors.New("it is not there")
	})
	s.apply(program(web, 2, ofImage("3")))
	s.rolledOut(web)

	s.does("rollback "+web+" --wait", "is passed over")
	if now := hash(); now != first {
		t.Errorf("its pods are of revision %s, want %s", now, first)
	}
}
