package workload_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/workload"
)

// FuzzReferences walks whatever decodes into a pod template, and checks that references and their sum agree.
func FuzzReferences(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"spec":null}`,
		`{"spec":{"containers":[null],"volumes":[null],"initContainers":[null],"ephemeralContainers":[null],"imagePullSecrets":[null]}}`,
		`{"spec":{"containers":[{"name":"a","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}},
			{"name":"F","valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}],
			"envFrom":[{"prefix":"P_","configMapRef":{"name":"c"}},{"secretRef":{"name":"s"}}]}]}}`,
		`{"spec":{"initContainers":[{"name":"i","restartPolicy":"Always","volumeMounts":[{"name":"v","mountPath":"/m","subPath":"a/"}]}],
			"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/m","subPathExpr":"$(X)"},{"name":"w","mountPath":"/n","subPath":"..data/x"}]}],
			"ephemeralContainers":[{"name":"e","volumeMounts":[{"name":"w","mountPath":"/m"}]}],
			"volumes":[{"name":"v","configMap":{"name":"c","items":[{"key":"k","path":"a/b"},{"key":"","path":""}]}},
			{"name":"w","projected":{"sources":[{"secret":{"name":"s"}},{"configMap":{"name":"kube-root-ca.crt"}},{"serviceAccountToken":{"path":"t"}}]}},
			{"name":"x","csi":{"driver":"d","nodePublishSecretRef":{"name":"n"}}},{"name":"y","azureFile":{"secretName":"z","shareName":"s"}}],
			"imagePullSecrets":[{"name":"r"}]}}`,
		`{"spec":{"containers":[{"envFrom":[{"configMapRef":{"name":"../x"}},{"configMapRef":{"name":"a/b"}}]}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var template corev1.PodTemplateSpec
		if json.Unmarshal(data, &template) != nil {
			t.Skip()
		}
		checkTemplate(t, &template)
	})
}

// TestRandomTemplates checks the same of templates that are put together at random out of few names, so that containers,
// volumes and objects meet in every way.
func TestRandomTemplates(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		g := generator{random}
		checkTemplate(t, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: some(g, g.container), Containers: some(g, g.container),
			EphemeralContainers: some(g, func() corev1.EphemeralContainer {
				return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(g.container())}
			}),
			Volumes:          some(g, g.volume),
			ImagePullSecrets: some(g, g.name),
		}})
		if t.Failed() {
			return
		}
	}
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
	return corev1.LocalObjectReference{Name: g.of("a", "b", "kube-root-ca.crt", "", "a/b", "A")}
}

func (g generator) container() corev1.Container {
	c := corev1.Container{
		Name: g.of("app", "proxy", ""),
		Env: some(g, func() corev1.EnvVar {
			return corev1.EnvVar{Name: "E", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: g.name(), Key: g.of("k", "l", ""), Optional: g.optional()},
			}}
		}),
		EnvFrom: some(g, func() corev1.EnvFromSource {
			return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: g.name(), Optional: g.optional()}}
		}),
		VolumeMounts: some(g, func() corev1.VolumeMount {
			return corev1.VolumeMount{
				Name: g.of("v", "w", "gone"), SubPath: g.of("", "", "k", "d", "d/k/", "..data/d", "..", ".", "/k"), SubPathExpr: g.of("", "", "$(X)"),
			}
		}),
	}
	if g.IntN(2) == 0 {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

func (g generator) items() []corev1.KeyToPath {
	return some(g, func() corev1.KeyToPath {
		return corev1.KeyToPath{Key: g.of("k", "l", "m", ""), Path: g.of("k", "d/k", "./d//l/", "d", "")}
	})
}

func (g generator) volume() corev1.Volume {
	v := corev1.Volume{Name: g.of("v", "w", "x")}
	switch g.IntN(5) {
	case 0:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()}
	case 1:
		v.Secret = &corev1.SecretVolumeSource{SecretName: g.name().Name, Items: g.items(), Optional: g.optional()}
	case 2:
		v.CSI = &corev1.CSIVolumeSource{NodePublishSecretRef: new(g.name())}
	case 3:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: some(g, func() corev1.VolumeProjection {
			return corev1.VolumeProjection{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()},
				Secret:    &corev1.SecretProjection{LocalObjectReference: g.name(), Items: g.items(), Optional: g.optional()},
			}
		})}
	}
	return v
}

func checkTemplate(t *testing.T, template *corev1.PodTemplateSpec) {
	t.Helper()
	refs := workload.References(namespace, template)
	for i := range refs {
		checkReference(t, refs[i])
	}
	if again := workload.References(namespace, template); !reflect.DeepEqual(refs, again) {
		t.Errorf("two walks differ: %v, %v", refs, again)
	}
	uses := workload.Consumed(refs)
	checkConsumed(t, refs, uses)
	slices.Reverse(refs)
	if again := workload.Consumed(refs); !reflect.DeepEqual(uses, again) {
		t.Errorf("the order of references matters: %v, %v", uses, again)
	}
}

func checkReference(t *testing.T, r workload.Reference) {
	t.Helper()
	for _, text := range []string{r.Object.String(), r.Object.Relative(namespace)} {
		if o, err := workload.ParseObject(text, namespace); err != nil || o != r.Object {
			t.Errorf("object %v is written %q and read as %v, %v", r.Object, text, o, err)
		}
	}
	if r.Object.Kind == workload.ConfigMap && r.Object.Name == "kube-root-ca.crt" {
		t.Error("kube-root-ca.crt is taken for configuration")
	}
	for _, keys := range [][]string{r.Keys, r.Required} {
		if !strictlySorted(keys) {
			t.Errorf("keys %q are not sorted, each once", keys)
		}
	}
	if r.Optional && len(r.Required) > 0 {
		t.Errorf("%s is optional and requires keys", describe(r))
	}
}

// checkConsumed checks that the consumptions are exactly what the references that roll come to.
func checkConsumed(t *testing.T, refs []workload.Reference, uses []workload.Consumption) {
	t.Helper()
	byObject := map[workload.Object]workload.Consumption{}
	for _, u := range uses {
		byObject[u.Object] = u
		for _, keys := range [][]string{u.Env.Names, u.Files.Names, u.RequiredKeys, u.RequiredEnv} {
			if !strictlySorted(keys) {
				t.Errorf("keys %q are not sorted, each once", keys)
			}
		}
	}
	if len(byObject) != len(uses) {
		t.Errorf("an object is consumed twice: %v", uses)
	}
	seen := map[workload.Object]bool{}
	for _, r := range refs {
		if !r.Source.Rolls() {
			continue
		}
		u, ok := byObject[r.Object]
		if !ok {
			t.Fatalf("%s is in no consumption", describe(r))
		}
		seen[r.Object] = true
		checkCovered(t, r, u)
	}
	for o := range byObject {
		if !seen[o] {
			t.Errorf("%v is consumed by no reference that rolls", o)
		}
	}
}

func checkCovered(t *testing.T, r workload.Reference, u workload.Consumption) {
	t.Helper()
	keys := u.Files
	if r.Source == workload.SourceEnv || r.Source == workload.SourceEnvFrom {
		keys = u.Env
	}
	if r.Keys == nil && !keys.All {
		t.Errorf("%s reads all keys, and its consumption does not: %s", describe(r), describeUse(u))
	}
	for _, k := range r.Keys {
		if !keys.Has(k) {
			t.Errorf("%s reads %q, and its consumption does not: %s", describe(r), k, describeUse(u))
		}
	}
	for _, k := range r.Required {
		if !slices.Contains(u.RequiredKeys, k) {
			t.Errorf("%s requires %q, and its consumption does not: %s", describe(r), k, describeUse(u))
		}
	}
	if !r.Optional && !u.Required {
		t.Errorf("%s is required, and its consumption is not", describe(r))
	}
}

func strictlySorted(keys []string) bool {
	return slices.IsSorted(keys) && len(slices.Compact(slices.Clone(keys))) == len(keys)
}
