package rewrite_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// TestRandomPods rewrites pods that are put together at random out of few names, so that pins, snapshots and references meet
// in every way.
func TestRandomPods(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		g := generator{random}
		check(t, corev1.PodSpec{
			InitContainers: some(g, g.container), Containers: some(g, g.container),
			EphemeralContainers: some(g, func() corev1.EphemeralContainer {
				return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container())}
			}),
			Volumes:          some(g, g.volume),
			ImagePullSecrets: some(g, g.name),
		}, g.pins())
		if t.Failed() {
			return
		}
	}
}

// FuzzPod rewrites whatever decodes into a spec, by whatever is understood as pins.
func FuzzPod(f *testing.F) {
	f.Add([]byte(`{}`), "")
	f.Add([]byte(`{"containers":[{"name":"a","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}],
		"envFrom":[{"configMapRef":{"name":"c"}},{"secretRef":{"name":"d"}}],"volumeMounts":[{"name":"v","mountPath":"/v","subPath":"c"}]}],
		"volumes":[{"name":"v","configMap":{"name":"c"}},{"name":"p","projected":{"sources":[{"secret":{"name":"c"}},{"configMap":{"name":"d"}}]}}]}`),
		"configmap/c=d,configmap/d=e,secret/c=absent.tidemark.dev")
	f.Add([]byte(`{"containers":[{"envFrom":[{"configMapRef":{"name":"kube-root-ca.crt"}}],"env":[{"valueFrom":{}}]}],"volumes":[{"projected":{"sources":[{}]}}]}`),
		"configmap/kube-root-ca.crt=x")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		var s corev1.PodSpec
		p, err := snapshot.ParsePins(namespace, text)
		if err != nil || json.Unmarshal(data, &s) != nil {
			t.Skip()
		}
		check(t, s, p)
	})
}

// check rewrites a spec, and compares with what internal/workload reads from it before and afterwards.
func check(t *testing.T, before corev1.PodSpec, p snapshot.Pins) {
	t.Helper()
	after := before.DeepCopy()
	changed := rewrite.Pod(after, p, namespace)

	var want []workload.Reference
	for _, r := range references(&before) {
		// An ephemeral container that mounts a volume of the pod sees what the pod's other containers do.
		if r.Source.Rolls() || r.Source == workload.SourceEphemeral && r.Volume != "" {
			r.Object.Name = expected(r.Object, p)
		}
		if r.Object.Kind == workload.Secret || r.Object.Name != "kube-root-ca.crt" { // which is no reference
			want = append(want, r)
		}
	}
	if got := references(after); !reflect.DeepEqual(got, want) {
		t.Errorf("pins %q: references (want -, got +)\n%s", p, cmp.Diff(want, got))
	}
	if left := differences("", canonical(t, &before), canonical(t, after)); len(left) > 0 {
		t.Errorf("more than names of config objects is changed: %v", left)
	}
	if changed == cmp.Equal(&before, after) {
		t.Errorf("pins %q: it says changed=%v", p, changed)
	}
	if again := after.DeepCopy(); rewrite.Pod(again, p, namespace) || !cmp.Equal(again, after) {
		t.Errorf("pins %q: the second pass is not idle", p)
	}
	if changed != (len(mismatches(before, p)) > 0) {
		t.Errorf("pins %q: it says changed=%v, and before there were %v", p, changed, mismatches(before, p))
	}
	if left := mismatches(*after, p); len(left) > 0 {
		t.Errorf("pins %q: after rewriting there are %v", p, left)
	}
}

func mismatches(spec corev1.PodSpec, p snapshot.Pins) []rewrite.Mismatch {
	return rewrite.Mismatches(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}, p)
}

func references(spec *corev1.PodSpec) []workload.Reference {
	return workload.References(namespace, &corev1.PodTemplateSpec{Spec: *spec})
}

// expected is the name that a reference to the object has to have after rewriting.
func expected(o workload.Object, p snapshot.Pins) string {
	for other, name := range p {
		trust := other.Kind == workload.ConfigMap && other.Name == "kube-root-ca.crt"
		if other.Kind == o.Kind && name == o.Name && !trust {
			return o.Name // it is a snapshot
		}
	}
	if name, pinned := p[o]; pinned {
		return name
	}
	return o.Name
}

// objectName says by the field above it which field is the name of a config object.
var objectName = map[string]string{
	"configMap": "name", "secret": "secretName", "configMapRef": "name", "secretRef": "name", "configMapKeyRef": "name", "secretKeyRef": "name",
}

// differences lists the places where two values differ, but for the names of config objects.
func differences(under string, a, b any) []string {
	left, isMap := a.(map[string]any)
	right, both := b.(map[string]any)
	if isMap && both {
		var found []string
		for key := range left {
			named := objectName[under] == key || under == "secret" && key == "name"
			if !named || right[key] == nil {
				found = append(found, differences(key, left[key], right[key])...)
			}
		}
		if len(left) != len(right) {
			found = append(found, under)
		}
		return found
	}
	first, isList := a.([]any)
	second, both := b.([]any)
	if isList && both && len(first) == len(second) {
		var found []string
		for i := range first {
			found = append(found, differences(under, first[i], second[i])...)
		}
		return found
	}
	if !reflect.DeepEqual(a, b) {
		return []string{fmt.Sprintf("%s: %v, %v", under, a, b)}
	}
	return nil
}

type generator struct{ *rand.Rand }

func some[T any](g generator, one func() T) []T {
	var out []T
	for range g.IntN(4) {
		out = append(out, one())
	}
	return out
}

func (g generator) of(words ...string) string { return words[g.IntN(len(words))] }

func (g generator) optional() *bool { return []*bool{nil, new(false), new(true)}[g.IntN(3)] }

func (g generator) name() corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: g.of("a", "b", "c", "d", "kube-root-ca.crt", "", "a/b")}
}

func (g generator) pins() snapshot.Pins {
	p := snapshot.Pins{}
	for range g.IntN(6) {
		o := workload.Object{Kind: workload.ConfigMap, Namespace: namespace, Name: g.of("a", "b", "c", "d", "e", "kube-root-ca.crt")}
		if g.IntN(2) == 0 {
			o.Kind = workload.Secret
		}
		p[o] = g.of("a-1", "b-1", "c", "d", "absent.tidemark.dev", "kube-root-ca.crt")
	}
	return p
}

func (g generator) container() corev1.Container {
	c := corev1.Container{
		Name: g.of("app", "proxy", "a"),
		Env: some(g, func() corev1.EnvVar {
			e := corev1.EnvVar{Name: g.of("a", "E")}
			switch g.IntN(4) {
			case 0:
				e.Value = "a"
			case 1:
				e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
			case 2:
				e.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: g.name(), Key: "a", Optional: g.optional()}}
			case 3:
				e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: g.name(), Key: "a", Optional: g.optional()}}
			}
			return e
		}),
		EnvFrom: some(g, func() corev1.EnvFromSource {
			if g.IntN(2) == 0 {
				return corev1.EnvFromSource{Prefix: g.of("", "a"), ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: g.name(), Optional: g.optional()}}
			}
			return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: g.name(), Optional: g.optional()}}
		}),
		VolumeMounts: some(g, func() corev1.VolumeMount {
			return corev1.VolumeMount{Name: g.of("v", "w", "a"), SubPath: g.of("", "a", "b"), MountPath: g.of("/a", "/b")}
		}),
	}
	if g.IntN(2) == 0 {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

func (g generator) items() []corev1.KeyToPath {
	return some(g, func() corev1.KeyToPath { return corev1.KeyToPath{Key: g.of("a", "b"), Path: g.of("a", "b/c")} })
}

func (g generator) volume() corev1.Volume {
	v := corev1.Volume{Name: g.of("v", "w", "a")}
	switch g.IntN(6) {
	case 0:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()}
	case 1:
		v.Secret = &corev1.SecretVolumeSource{SecretName: g.name().Name, Items: g.items(), Optional: g.optional()}
	case 2:
		v.CSI = &corev1.CSIVolumeSource{NodePublishSecretRef: new(g.name())}
	case 3:
		v.AzureFile = &corev1.AzureFileVolumeSource{SecretName: g.name().Name}
	case 4:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: some(g, func() corev1.VolumeProjection {
			if g.IntN(2) == 0 {
				return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()}}
			}
			return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()}}
		})}
	}
	return v
}
