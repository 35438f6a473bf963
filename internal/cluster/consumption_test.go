package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

func readsLevel(annotations map[string]string) *corev1.PodTemplateSpec {
	ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}, Key: "level"}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main",
			Env:  []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}},
		}}},
	}
}

func TestConsumptionOf(t *testing.T) {
	app := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "app"}
	rules := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "rules"}
	level := workload.Keys{Names: []string{"level"}}
	level1 := workload.Consumption{Object: app, Env: level, Required: true, RequiredKeys: []string{"level"}, RequiredEnv: []string{"level"}}
	all := workload.Keys{All: true}
	named := workload.Consumption{Object: rules, Files: all, Named: true}
	for name, tc := range map[string]struct {
		annotations, template map[string]string
		want                  []workload.Consumption
		errs                  int
	}{
		"the template's references": {want: []workload.Consumption{level1}},
		"an object named on the workload": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "rules"},
			want:        []workload.Consumption{level1, named},
		},
		"an object named on the template": {
			template: map[string]string{v1.AnnotationExtraConfigMaps: "rules"},
			want:     []workload.Consumption{level1, named},
		},
		"an object named on both counts once": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "rules"},
			template:    map[string]string{v1.WaveExtraConfigMaps: "rules"},
			want:        []workload.Consumption{level1, named},
		},
		"every key of each object": {
			template: map[string]string{v1.AnnotationWholeObject: "true"},
			want:     []workload.Consumption{level1.Whole()},
		},
		"the workload's switch wins over the template's": {
			annotations: map[string]string{v1.AnnotationWholeObject: "false"},
			template:    map[string]string{v1.AnnotationWholeObject: "true"},
			want:        []workload.Consumption{level1},
		},
		"annotations that cannot be read hinder nothing": {
			annotations: map[string]string{v1.AnnotationExtraConfigMaps: "rules, Not A Name", v1.AnnotationWholeObject: "si"},
			want:        []workload.Consumption{level1, named},
			errs:        2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, uses, errs := ConsumptionOf("shop", tc.annotations, readsLevel(tc.template))
			if diff := cmp.Diff(tc.want, uses); diff != "" {
				t.Errorf("consumption (-want +got):\n%s", diff)
			}
			if len(errs) != tc.errs {
				t.Errorf("errors %v, want %d", errs, tc.errs)
			}
		})
	}
}

func TestHeededLeavesOutIgnoredObjects(t *testing.T) {
	_, uses, _ := ConsumptionOf("shop", nil, readsLevel(nil))
	if got := Heeded(uses, func(o workload.Object) bool { return o.Name == "app" }); len(got) != 0 {
		t.Errorf("heeded %v, want none", got)
	}
	if len(uses) != 1 {
		t.Error("the consumption handed in was changed")
	}
}
