package cluster

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

func TestPauseAndResume(t *testing.T) {
	web := StopWorkload(Target{BuiltinKinds()[0], "shop", "web"})
	for name, s := range map[string]Stop{"workload": web, "namespace": StopNamespace("shop")} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, "testdata/shop.yaml")
			marks := func() (annotation, by, label string) {
				m := MetadataOf(s.GVK)
				if err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, m); err != nil {
					t.Fatal(err)
				}
				return m.Annotations[v1.AnnotationPaused], m.Annotations[v1.AnnotationPausedBy], m.Labels[v1.LabelPaused]
			}
			wantLabel := map[string]string{"workload": "true"}[name]
			steps := []struct {
				what    string
				do      func() (Pausing, error)
				changed bool
				paused  string
				by      string
			}{
				{"resume what is not paused", func() (Pausing, error) { return Resume(t.Context(), a, s, false) }, false, "", ""},
				{"pause", func() (Pausing, error) { return Pause(t.Context(), a, s, "ann", false) }, true, "true", "ann"},
				{"pause again", func() (Pausing, error) { return Pause(t.Context(), a, s, "bob", false) }, false, "true", "ann"},
				{"resume", func() (Pausing, error) { return Resume(t.Context(), a, s, false) }, true, "", ""},
			}
			for _, step := range steps {
				p, err := step.do()
				if err != nil || p.Changed != step.changed {
					t.Fatalf("%s: changed %v, error %v; want %v", step.what, p.Changed, err, step.changed)
				}
				annotation, by, label := marks()
				if annotation != step.paused || by != step.by || step.paused != "" && label != wantLabel || step.paused == "" && label != "" {
					t.Errorf("%s: paused %q by %q, label %q", step.what, annotation, by, label)
				}
			}
		})
	}
}

func TestAPauseThatLostItsAnnotationIsPutBack(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml")
	s := StopWorkload(Target{BuiltinKinds()[0], "shop", "web"})
	if _, err := Pause(t.Context(), a, s, "ann", false); err != nil {
		t.Fatal(err)
	}
	m, err := s.get(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	before := m.DeepCopy()
	m.Annotations = nil // as a rollback of a Deployment leaves it
	if err := a.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if by := PausedBy(m.Annotations, m.Labels, nil, nil); by != "on the workload" {
		t.Errorf("paused %q, want it paused by its label", by)
	}
	if p, err := Pause(t.Context(), a, s, "bob", false); err != nil || !p.Changed {
		t.Errorf("changed %v, %v", p.Changed, err)
	}
}

func TestPauseOfWhatDoesNotExist(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml")
	if _, err := Pause(t.Context(), a, StopNamespace("nothere"), "ann", false); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestPausedBy(t *testing.T) {
	paused := func(by string) map[string]string {
		return map[string]string{v1.AnnotationPaused: "true", v1.AnnotationPausedBy: by}
	}
	for name, tc := range map[string]struct {
		annotations, labels, namespace, system map[string]string
		want                                   string
	}{
		"nobody":                   {annotations: map[string]string{v1.AnnotationPaused: "false"}},
		"the workload":             {annotations: paused("ann"), namespace: paused("bob"), want: "on the workload, by ann"},
		"its label":                {labels: map[string]string{v1.LabelPaused: "true"}, want: "on the workload"},
		"everything":               {namespace: paused("bob"), system: paused("eve"), want: "everywhere, by eve"},
		"the namespace":            {namespace: paused("bob"), want: "in the namespace, by bob"},
		"the namespace, by no one": {namespace: map[string]string{v1.AnnotationPaused: "true"}, want: "in the namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PausedBy(tc.annotations, tc.labels, tc.namespace, tc.system); got != tc.want {
				t.Errorf("paused %q, want %q", got, tc.want)
			}
		})
	}
	if got := PausedByText("ann", noon, "load test"); got != "ann at "+noon.Format(time.RFC3339)+": load test" {
		t.Errorf("text %q", got)
	}
}
