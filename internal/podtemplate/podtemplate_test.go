package podtemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestAPodTellsItsRevisionByItsLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"one of a Deployment":        {map[string]string{"app": "web", "pod-template-hash": "5d6"}, "5d6"},
		"one of a StatefulSet":       {map[string]string{"controller-revision-hash": "db-77"}, "db-77"},
		"one of a Rollout":           {map[string]string{"rollouts-pod-template-hash": "f1"}, "f1"},
		"one that nobody controls":   {map[string]string{"app": "web"}, ""},
		"one whose hash is not said": {map[string]string{"pod-template-hash": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Hash(tc.labels); got != tc.want {
				t.Errorf("revision %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhichTemplatesAreTheSame(t *testing.T) {
	const written = "metadata: {labels: {app: web}}\nspec: {containers: [{name: app, image: 'web:1'}]}"
	for name, tc := range map[string]struct {
		there                      string
		deployment, apply, rollout bool // that it is the same to each
	}{
		"the same":            {written, true, true, true},
		"with a hash":         {"metadata: {labels: {app: web, pod-template-hash: 5d6}}\nspec: {containers: [{name: app, image: 'web:1'}]}", true, true, false},
		"with an annotation":  {"metadata: {labels: {app: web}, annotations: {a: b}}\nspec: {containers: [{name: app, image: 'web:1'}]}", false, true, false},
		"with a default":      {"metadata: {labels: {app: web}}\nspec: {dnsPolicy: ClusterFirst, containers: [{name: app, image: 'web:1'}]}", false, true, true},
		"with another image":  {"metadata: {labels: {app: web}}\nspec: {containers: [{name: app, image: 'web:2'}]}", false, false, false},
		"with another label":  {"metadata: {labels: {app: db}}\nspec: {containers: [{name: app, image: 'web:1'}]}", false, false, false},
		"with a label missed": {"spec: {containers: [{name: app, image: 'web:1'}]}", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			there, applied := readTemplate(t, tc.there), readTemplate(t, written)
			if got := Same(there, applied); got != tc.deployment {
				t.Errorf("to a Deployment it is the same: %t, want %t", got, tc.deployment)
			}
			if got := Leaves(there, applied); got != tc.apply {
				t.Errorf("an apply leaves it: %t, want %t", got, tc.apply)
			}
			if got := SameCompleted(there, applied); got != tc.rollout {
				t.Errorf("to a Rollout it is the same: %t, want %t", got, tc.rollout)
			}
		})
	}
}

func TestTheTemplateOfAReplicaSetIsWithoutWhatItsControllerAdded(t *testing.T) {
	for name, tc := range map[string]struct{ set, hash, want string }{
		"of a Deployment": {
			set: `
spec:
  template:
    metadata: {labels: {app: web, pod-template-hash: 5d6}}
    spec: {containers: [{name: app, tomorrow: field}]}`,
			hash: "pod-template-hash",
			want: `{metadata: {labels: {app: web}}, spec: {containers: [{name: app, tomorrow: field}]}}`,
		},
		"of a Rollout": {
			set: `
metadata: {annotations: {rollout.argoproj.io/ephemeral-metadata: '{"labels":{"role":"canary"},"annotations":{"team":"a"}}'}}
spec:
  template:
    metadata: {labels: {app: web, role: canary, rollouts-pod-template-hash: f1}, annotations: {team: a}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: host, labelSelector: {matchExpressions: [{key: rollouts-pod-template-hash, operator: In, values: [f0]}]}}
      containers: [{name: app}]`,
			hash: LabelRolloutHash,
			want: `{metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}}`,
		},
		"of a Rollout with a rule of its own": {
			set: `
spec:
  template:
    metadata: {labels: {rollouts-pod-template-hash: f1}}
    spec:
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {podAffinityTerm: {topologyKey: host, labelSelector: {matchExpressions: [{key: rollouts-pod-template-hash, operator: In}]}}}
          - {podAffinityTerm: {topologyKey: zone}}
      containers: [{name: app}]`,
			hash: LabelRolloutHash,
			want: `
metadata: {}
spec:
  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {topologyKey: zone}}]}}
  containers: [{name: app}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, want := &unstructured.Unstructured{}, map[string]any{}
			for text, into := range map[string]*map[string]any{tc.set: &u.Object, tc.want: &want} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, OfReplicaSet(u, tc.hash)); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			left, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("the ReplicaSet's own (-want +got):\n%s", diff)
			}
		})
	}
}
