package acceptance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func TestPolicyIsTheFunctionOfTheRewritePackage(t *testing.T) {
	s := openRewriting(t, "same-function")
	t.Run("on random pods", func(t *testing.T) { s.within(t).comparesRandomPods() })
	t.Run("on what it takes for pins", func(t *testing.T) { s.within(t).comparesTexts() })
	t.Run("on large pods", func(t *testing.T) { s.within(t).comparesLargePods() })
}

// comparesRandomPods compares what the API server makes of pods with what the function does.
func (s *scene) comparesRandomPods() {
	s.t.Helper()
	const pods = 60
	changed := 0
	for i := range pods {
		g := &podMaker{Rand: rand.New(rand.NewPCG(7, uint64(i)))}
		spec, text := g.spec(), g.pins(s.Namespace)
		pins, err := snapshot.ParsePins(s.Namespace, text)
		s.must(err)
		want, err := s.tried(pinnedPod("none", spec))
		s.must(err)
		got, err := s.tried(pinnedPod(text, spec))
		s.must(err)
		if rewrite.Pod(&want.Spec, pins, s.Namespace) {
			changed++
		}
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			s.t.Fatalf("pins %q: the function -, the policy +\n%s", text, diff)
		}
		again, err := s.tried(pinnedPod(text, got.Spec))
		s.must(err)
		if diff := cmp.Diff(got.Spec, again.Spec); diff != "" {
			s.t.Fatalf("pins %q: a pod that is rewritten already was changed\n%s", text, diff)
		}
	}
	if changed < pods/2 {
		s.t.Errorf("only %d of %d pods had anything to rewrite", changed, pods)
	}
}

// comparesTexts compares which texts the two understand.
func (s *scene) comparesTexts() {
	s.t.Helper()
	longest := strings.Repeat("a", 253)
	for _, text := range []string{
		"", "configmap/web=web-1", "secret/door=door-1,configmap/web=web-1", "configmap/a.b-c=d.e-f", "configmap/0=1",
		"configmap/web=absent.tidemark.dev", "configmap/a=b,configmap/b=a", "configmap/a=a", "configmap/web=x,secret/web=y",
		"configmap/kube-root-ca.crt=x", "configmap/" + longest + "=web", "secret/web=" + longest, "configmap/" + longest + "=" + longest,

		"configmap/web", "configmap/web=", "configmap/=web", "=", ",", "/", "web=web-1", "configmap=web", "configmaps/web=web-1",
		"Configmap/web=web-1", "ConfigMap/web=web-1", "pod/web=web-1", "configmap/Web=web", "configmap/web=Web", "configmap/we_b=web",
		"configmap/web=web-1,", ",configmap/web=web-1", "configmap/web=web-1,,secret/a=b", "configmap/web=web-1, secret/a=b",
		" configmap/web=web-1", "configmap/web=web-1 ", "configmap/web=web-1\n", "configmap/web=web-1;secret/a=b",
		"configmap/web=web=web", "configmap/web=-web", "configmap/web=web-", "configmap/web=.web", "configmap/web=we..b",
		"configmap/shop/web=web", "configmap/same-function/web=web", "configmap/web=a/b", "configmap/wéb=web",
		"configmap/" + longest + "a=web", "secret/web=" + longest + "a", "configmap/web=web-1,configmap/b=" + longest + "a",
		"configmap/web=a,configmap/web=b", "configmap/web=a,configmap/web=a", "secret/web=a,configmap/web=a,secret/web=b",
	} {
		_, misread := snapshot.ParsePins(s.Namespace, text)
		// A pod that reads nothing: whether pins are understood must not depend on that.
		_, err := s.tried(pinnedPod(text, corev1.PodSpec{Containers: []corev1.Container{readerOf("app")}}))
		if (err == nil) != (misread == nil) {
			s.t.Errorf("pins %.80q: the package says %v, the policy %v", text, misread, err)
			continue
		}
		if err == nil {
			continue
		}
		what := v1.AnnotationPins
		if strings.Contains(misread.Error(), "twice") {
			what = "web already exists"
		}
		if wrong := refusedBy(err, v1.PolicyPin, what); wrong != nil || !apierrors.IsInvalid(err) {
			s.t.Errorf("pins %.80q: %v, %v", text, wrong, err)
		}
	}
}

// comparesLargePods holds the policy to what the API server lets an expression cost.
func (s *scene) comparesLargePods() {
	s.t.Helper()
	for name, c := range map[string]struct{ containers, references, objects int }{
		"13 containers with 1,880 references": {13, 1880, 20},
		"200 pins":                            {2, 400, 200},
		"13 containers with 1,880 references to 200 pins": {13, 1880, 200},
	} {
		pod := largePod(c.containers, c.references, c.objects)
		if n := len(referenced(s.Namespace, pod)); n != c.references {
			s.t.Fatalf("%s: the pod has %d references", name, n)
		}
		got, err := s.tried(pod)
		if err != nil {
			s.t.Errorf("%s: %.2000v", name, err)
			continue
		}
		pins, err := snapshot.ParsePins(s.Namespace, pod.Annotations[v1.AnnotationPins])
		s.must(err)
		rewrite.Pod(&pod.Spec, pins, s.Namespace)
		if diff := cmp.Diff(referenced(s.Namespace, pod), referenced(s.Namespace, got)); diff != "" {
			s.t.Errorf("%s: the function -, the policy +\n%.4000s", name, diff)
		}
	}
}

// largePod reads objects, each of which is pinned, in every way and from every container.
func largePod(containers, references, objects int) *corev1.Pod {
	name := func(i int) string { return fmt.Sprintf("settings-of-the-shop-%03d", i%objects) }
	local := func(i int) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name(i)} }
	var pins []string
	for i := range objects {
		pins = append(pins, "configmap/"+name(i)+"="+name(i)+"-x7k2m9abcd")
	}
	spec := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}}
	for i := range containers {
		spec.Containers = append(spec.Containers, readerOf(fmt.Sprint("c", i), fromConfigMap(name(i))))
		spec.Volumes[0].Projected.Sources = append(spec.Volumes[0].Projected.Sources, corev1.VolumeProjection{
			ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local(i), Items: []corev1.KeyToPath{{Key: "a", Path: fmt.Sprint(i)}}},
		})
	}
	for i := range references - 2*containers {
		c := &spec.Containers[i%containers]
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(i), Key: "a"},
		}})
	}
	return pinnedPod(strings.Join(pins, ","), spec)
}

// referenced lists what a pod references.
func referenced(namespace string, pod *corev1.Pod) []string {
	var out []string
	for _, r := range workload.References(namespace, &corev1.PodTemplateSpec{Spec: pod.Spec}) {
		out = append(out, fmt.Sprintf("%s %s %s %s", r.Container, r.Source, r.EnvName, r.Object.Relative(namespace)))
	}
	return out
}

// podMaker makes pods that the API takes, out of few names, so that pins, snapshots and references meet in every way.
type podMaker struct {
	*rand.Rand
	made int
}

func (g *podMaker) unique(prefix string) string {
	g.made++
	return fmt.Sprint(prefix, g.made)
}

func (g *podMaker) object() corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: g.of("a", "b", "c", "d", "e", "kube-root-ca.crt")}
}

func (g *podMaker) of(words ...string) string { return words[g.IntN(len(words))] }

func (g *podMaker) optional() *bool { return []*bool{nil, new(false), new(true)}[g.IntN(3)] }

func several[T any](g *podMaker, from, to int, one func() T) []T {
	var out []T
	for range from + g.IntN(to-from+1) {
		out = append(out, one())
	}
	return out
}

func (g *podMaker) pins(namespace string) string {
	pins := snapshot.Pins{}
	for range g.IntN(7) {
		kind := []workload.ObjectKind{workload.ConfigMap, workload.Secret}[g.IntN(2)]
		pins[workload.Object{Kind: kind, Namespace: namespace, Name: g.of("a", "b", "c", "d", "kube-root-ca.crt")}] =
			g.of("a-1", "b-1", "b", "c", v1.AbsentName)
	}
	text := strings.Split(pins.String(), ",")
	g.Shuffle(len(text), func(i, k int) { text[i], text[k] = text[k], text[i] })
	return strings.Join(text, ",")
}

func (g *podMaker) spec() corev1.PodSpec {
	spec := corev1.PodSpec{
		Containers: several(g, 1, 3, g.container), InitContainers: several(g, 0, 3, g.container),
		ImagePullSecrets: several(g, 0, 1, g.object), Volumes: several(g, 0, 5, g.volume),
	}
	for i := range spec.InitContainers {
		if g.IntN(2) == 0 {
			spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
	}
	for i := range spec.Containers {
		for _, v := range spec.Volumes {
			if g.IntN(2) == 0 {
				spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts,
					corev1.VolumeMount{Name: v.Name, MountPath: "/" + g.unique("m"), SubPath: g.of("", "a", "b")})
			}
		}
	}
	return spec
}

func (g *podMaker) container() corev1.Container {
	return corev1.Container{Name: g.unique("c"), Image: "x", Env: several(g, 0, 4, g.env), EnvFrom: several(g, 0, 3, g.envFrom)}
}

func (g *podMaker) env() corev1.EnvVar {
	e := corev1.EnvVar{Name: g.unique("E")}
	switch g.IntN(5) {
	case 0:
		e.Value = "a"
	case 1:
		e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	case 2:
		e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: g.object(), Key: "a", Optional: g.optional()}}
	default:
		e.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: g.object(), Key: "a", Optional: g.optional()}}
	}
	return e
}

func (g *podMaker) envFrom() corev1.EnvFromSource {
	if g.IntN(2) == 0 {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: g.object(), Optional: g.optional()}}
	}
	return corev1.EnvFromSource{Prefix: g.of("", "a"), ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: g.object(), Optional: g.optional()}}
}

func (g *podMaker) items() []corev1.KeyToPath {
	return several(g, 0, 2, func() corev1.KeyToPath { return corev1.KeyToPath{Key: g.of("a", "b"), Path: g.unique("p")} })
}

func (g *podMaker) volume() corev1.Volume {
	v := corev1.Volume{Name: g.unique("v")}
	switch g.IntN(6) {
	case 0:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case 1:
		v.CSI = &corev1.CSIVolumeSource{Driver: "example.org", NodePublishSecretRef: new(g.object())}
	case 2:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: g.object(), Items: g.items(), Optional: g.optional()}
	case 3:
		v.Secret = &corev1.SecretVolumeSource{SecretName: g.object().Name, Items: g.items(), Optional: g.optional()}
	default:
		v.Projected = &corev1.ProjectedVolumeSource{Sources: slices.Concat(
			several(g, 0, 2, func() corev1.VolumeProjection {
				return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: g.object(), Items: g.items(), Optional: g.optional()}}
			}),
			several(g, 0, 1, func() corev1.VolumeProjection {
				return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: g.unique("t")}}
			}),
			several(g, 0, 2, func() corev1.VolumeProjection {
				return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: g.object(), Items: g.items(), Optional: g.optional()}}
			}),
		)}
	}
	return v
}
