package revision

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func template(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	out := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func edits(t *testing.T, from, to string) []string {
	t.Helper()
	value := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	var out []string
	for _, e := range Edits(template(t, from), template(t, to)) {
		out = append(out, fmt.Sprintf("%s: %s > %s", e.Path, value(e.From), value(e.To)))
	}
	return out
}

func TestEditsListsWhatDiffersByPath(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"equal templates": {"spec: {containers: [{name: app}]}", "spec: {containers: [{name: app}]}", nil},
		"what controllers and Tidemark add, and images": {
			"spec: {containers: [{name: app, image: a}]}",
			`
metadata:
  labels: {pod-template-hash: x, rollouts-pod-template-hash: y}
  annotations: {tidemark.dev/config-hash: s, tidemark.dev/pins: configmap/a=b}
spec: {containers: [{name: app, image: b}]}`, nil},
		"annotations that users set, Tidemark's too": {
			"spec: {containers: [{name: app}]}",
			"{metadata: {annotations: {tidemark.dev/mode: pin, note: x}}, spec: {containers: [{name: app}]}}",
			[]string{"metadata.annotations.note: - > x", "metadata.annotations[tidemark.dev/mode]: - > pin"},
		},
		"a field of a container": {
			"spec: {containers: [{name: app, resources: {limits: {memory: 1Gi}}}, {name: side}]}",
			"spec: {containers: [{name: side}, {name: app, resources: {limits: {memory: 2Gi}}}]}",
			[]string{
				"spec.containers (order): app, side > side, app",
				"spec.containers[app].resources.limits.memory: 1Gi > 2Gi",
			},
		},
		"variables by their names": {
			"spec: {containers: [{name: app, env: [{name: A, value: '1'}, {name: B, value: x}]}]}",
			"spec: {containers: [{name: app, env: [{name: B, value: 'y'}, {name: C, valueFrom: {configMapKeyRef: {name: m, key: k}}}]}]}",
			[]string{
				"spec.containers[app].env[A].value: 1 > -",
				"spec.containers[app].env[B].value: x > y",
				"spec.containers[app].env[C].valueFrom.configMapKeyRef.key: - > k",
				"spec.containers[app].env[C].valueFrom.configMapKeyRef.name: - > m",
			},
		},
		"arguments mean something together": {
			"spec: {containers: [{name: app, args: [--a, '1']}]}",
			"spec: {containers: [{name: app, args: [--a, '2']}]}",
			[]string{`spec.containers[app].args: ["--a","1"] > ["--a","2"]`},
		},
		"items without names by their place": {
			"spec: {containers: [{name: app, envFrom: [{configMapRef: {name: a}}]}]}",
			"spec: {containers: [{name: app, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: b}}]}]}",
			[]string{"spec.containers[app].envFrom[1].secretRef.name: - > b"},
		},
		"an empty volume that comes": {
			"spec: {containers: [{name: app}]}",
			"spec: {containers: [{name: app}], volumes: [{name: tmp, emptyDir: {}}]}",
			[]string{"spec.volumes[tmp].emptyDir: - > {}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, edits(t, tc.from, tc.to)); diff != "" {
				t.Errorf("edits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEditsLeaveTheTemplatesAsTheyAre(t *testing.T) {
	text := "{metadata: {labels: {pod-template-hash: x}}, spec: {containers: [{name: app, image: a}]}}"
	before := template(t, text)
	Edits(before, template(t, "spec: {containers: [{name: other}]}"))
	if diff := cmp.Diff(template(t, text), before); diff != "" {
		t.Error(diff)
	}
}
