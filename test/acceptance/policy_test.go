package acceptance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// policies applies a directory of deploy/policy as it ships, until the test ends.
func (v venue) policies(part string) {
	v.t.Helper()
	root, err := scenario.Root()
	if err != nil {
		v.t.Fatal(err)
	}
	directory := filepath.Join(root, "deploy", "policy", part)
	labtest.Kubectl(v.t, v.lab, "apply", "-k", directory)
	afterwards(v.t, func(ctx context.Context) error {
		_, _, err := v.lab.Kubectl(ctx, "delete", "-k", directory)
		return err
	})
}

// afterwards does something when the test has ended, whose own context is over then.
func afterwards(t *testing.T, do func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Error(err)
		}
	})
}

// within is the scene for a part of its test.
func (s *scene) within(t *testing.T) *scene {
	part := *s
	part.t = t
	return &part
}

// openRewriting makes a namespace on a lab whose API server rewrites pods by deploy/policy.
func openRewriting(t *testing.T, namespace string) *scene {
	t.Helper()
	v := alone(t)
	v.policies("") // all of it
	s := v.open(namespace, "")
	// The API server takes a policy up a moment after it was written.
	s.eventually("the policy to rewrite pods", func() error {
		pod, err := s.tried(pinnedPod("configmap/web=web-1", corev1.PodSpec{Containers: []corev1.Container{readerOf("app", fromConfigMap("web"))}}))
		if err == nil {
			err = labtest.Equal("the reference", pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name, "web-1")
		}
		return err
	})
	return s
}

// pinnedPod is a pod with pins, unless they are "none".
func pinnedPod(pins string, spec corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: spec}
	if pins != "none" {
		pod.Annotations = map[string]string{v1.AnnotationPins: pins}
	}
	pod.Spec.AutomountServiceAccountToken = new(false) // the name of its volume is random
	return pod
}

func readerOf(name string, from ...corev1.EnvFromSource) corev1.Container {
	return corev1.Container{Name: name, Image: "tidemark-sample", EnvFrom: from}
}

func fromConfigMap(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func fromSecret(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// tried is what the API makes of a pod, which it does not keep.
func (s *scene) tried(pod *corev1.Pod) (*corev1.Pod, error) {
	out := pod.DeepCopy()
	out.Namespace = s.Namespace
	return out, s.API.Create(s.t.Context(), out, ctrlclient.DryRunAll)
}

// sourcesAndSnapshots has configuration of which pods may read the snapshots only.
const sourcesAndSnapshots = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {MODE: live, OTHER: live}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-1}
data: {MODE: pinned, OTHER: pinned}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: maybe}
data: {MODE: live}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {KEY: live}
---
apiVersion: v1
kind: Secret
metadata: {name: door-1}
stringData: {KEY: pinned}
---
apiVersion: v1
kind: Secret
metadata: {name: perhaps}
stringData: {KEY: live}
`

// everyKind is a pod with every kind of reference, pinned.
const everyKind = `
apiVersion: v1
kind: Pod
metadata:
  name: every
  annotations: {tidemark.dev/pins: "configmap/maybe=absent.tidemark.dev,configmap/web=web-1,secret/door=door-1,secret/perhaps=absent.tidemark.dev"}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: first
    image: tidemark-sample
    command: [/sample]
    args: [--exit-after=1ms]
    envFrom: [{prefix: WEB_, configMapRef: {name: web}}, {secretRef: {name: door}}]
  - name: beside
    image: tidemark-sample
    restartPolicy: Always
    env: [{name: MODE, valueFrom: {configMapKeyRef: {name: web, key: MODE}}}]
    volumeMounts: [{name: both, mountPath: /both}]
  containers:
  - name: app
    image: tidemark-sample
    envFrom:
    - {prefix: WEB_, configMapRef: {name: web}}
    - {prefix: DOOR_, secretRef: {name: door}}
    - {prefix: MAYBE_, configMapRef: {name: maybe, optional: true}}
    - {prefix: PERHAPS_, secretRef: {name: perhaps, optional: true}}
    env:
    - {name: MODE, valueFrom: {configMapKeyRef: {name: web, key: MODE}}}
    - {name: KEY, valueFrom: {secretKeyRef: {name: door, key: KEY}}}
    - {name: MAYBE, valueFrom: {configMapKeyRef: {name: maybe, key: MODE, optional: true}}}
    - {name: PERHAPS, valueFrom: {secretKeyRef: {name: perhaps, key: KEY, optional: true}}}
    volumeMounts:
    - {name: web, mountPath: /web}
    - {name: items, mountPath: /items}
    - {name: door, mountPath: /door}
    - {name: both, mountPath: /both}
    - {name: web, mountPath: /one/MODE, subPath: MODE}
    - {name: maybe, mountPath: /maybe}
    - {name: perhaps, mountPath: /perhaps}
  volumes:
  - {name: web, configMap: {name: web}}
  - {name: items, configMap: {name: web, items: [{key: OTHER, path: deep/er}]}}
  - {name: door, secret: {secretName: door}}
  - {name: both, projected: {sources: [{configMap: {name: web, items: [{key: MODE, path: MODE}]}}, {secret: {name: door}}, {configMap: {name: maybe, optional: true}}]}}
  - {name: maybe, configMap: {name: maybe, optional: true}}
  - {name: perhaps, secret: {secretName: perhaps, optional: true}}
`

// wholePod is what each container of that pod has to read of its configuration.
var wholePod = map[string][]string{
	"first":  {"env KEY", "env WEB_MODE", "env WEB_OTHER"},
	"beside": {"env MODE", "file /both/KEY", "file /both/MODE"},
	"app": {
		"env DOOR_KEY", "env KEY", "env MODE", "env WEB_MODE", "env WEB_OTHER", "file /both/KEY", "file /both/MODE", "file /door/KEY",
		"file /items/deep/er", "file /one/MODE", "file /web/MODE", "file /web/OTHER",
	},
}

func TestPolicyMakesContainersReadTheSnapshots(t *testing.T) {
	s := openRewriting(t, "snapshots-read")
	s.apply(sourcesAndSnapshots + "---" + everyKind)
	s.eventually("all containers to have started", func() error { return s.allRead(0) })
	// Another start in the same pod reads them again, and so does one after the sources went.
	s.kubectl("delete", "configmap/web", "secret/door")
	s.exit("every", "app")
	s.eventually("the container to start again", func() error { return s.allRead(1) })
}

func (s *scene) exit(pod, container string) {
	s.t.Helper()
	_, err := s.Lab.Exit(s.t.Context(), wire.Selector{Namespace: s.Namespace, PodPrefix: pod, Container: container}, 1)
	s.must(err)
}

// allRead fails the test on a start that read anything but the snapshots, and gives an error while there was none of each
// container, or of the last one none with this restart count.
func (s *scene) allRead(attempt uint32) error {
	s.t.Helper()
	starts, err := s.Starts(s.t.Context())
	if err != nil {
		return err
	}
	seen, last := map[string]bool{}, uint32(0)
	for _, start := range starts {
		seen[start.Container] = true
		if start.Container == "app" {
			last = max(last, start.Attempt)
		}
		if want, got := wholePod[start.Container], configurationOf(start); !slices.Equal(got, want) {
			s.t.Fatalf("container %s read %q, want %q with the value pinned and nothing else", start.Container, got, want)
		}
	}
	if len(seen) < len(wholePod) || last < attempt {
		return fmt.Errorf("%d containers have started, the last one %d times again", len(seen), last)
	}
	return nil
}

// configurationOf lists what a start read of the scene's configuration, with the value where it is not that of the snapshots.
func configurationOf(start wire.Start) []string {
	var read []string
	note := func(what, value string) {
		switch value {
		case "pinned":
			read = append(read, what)
		case "live":
			read = append(read, what+"=live")
		}
	}
	for key, value := range start.Environment {
		note("env "+key, string(value))
	}
	for path, content := range start.Files {
		note("file "+path, string(content))
	}
	slices.Sort(read)
	return read
}

func TestPolicyLeavesAloneWhatIsNoNewPod(t *testing.T) {
	s := openRewriting(t, "no-new-pod")
	s.apply(sourcesAndSnapshots)
	spec := corev1.PodSpec{Containers: []corev1.Container{readerOf("app", fromConfigMap("web"))}}

	plain, err := s.tried(pinnedPod("none", spec))
	s.must(err)
	if name := plain.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name; name != "web" {
		t.Errorf("a pod without pins reads %s", name)
	}

	pod := pinnedPod("configmap/web=web-1", spec)
	pod.Namespace = s.Namespace
	s.must(s.API.Create(t.Context(), pod))
	s.kubectl("patch", "pod/"+pod.Name, "--subresource=ephemeralcontainers",
		`--patch={"spec": {"ephemeralContainers": [{"name": "debug", "image": "tidemark-sample", "envFrom": [{"configMapRef": {"name": "web"}}]}]}}`)
	s.must(s.API.Get(t.Context(), ctrlclient.ObjectKeyFromObject(pod), pod))
	if name := pod.Spec.EphemeralContainers[0].EnvFrom[0].ConfigMapRef.Name; name != "web" {
		t.Errorf("a container for debugging reads %s", name)
	}
	// An edit of the annotation changes nothing, not even one that cannot be read.
	s.kubectl("annotate", "--overwrite", "pod/"+pod.Name, v1.AnnotationPins+"=nonsense")
	s.must(s.API.Get(t.Context(), ctrlclient.ObjectKeyFromObject(pod), pod))
	if name := pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name; name != "web-1" {
		t.Errorf("after an edit the pod reads %s", name)
	}

	// The API's own words about what is no pod are better than the policy's.
	for what, spec := range map[string]corev1.PodSpec{
		"spec.containers: Required value":                                      {},
		"spec.containers[0].envFrom[0].configMapRef.name: Required value":      {Containers: []corev1.Container{readerOf("app", fromConfigMap(""))}},
		"spec.volumes[0].projected.sources[0].configMap.name: Required value":  {Volumes: []corev1.Volume{projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}})}},
		"spec.volumes[0].configMap.name: Required value":                       {Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}},
		"spec.containers[0].env[0].valueFrom: Invalid value":                   {Containers: []corev1.Container{{Name: "app", Image: "x", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}}}},
		"spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value": {Containers: []corev1.Container{{Name: "app", Image: "x", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}}}}}},
	} {
		_, err := s.tried(pinnedPod("configmap/web=web-1,secret/door=door-1", spec))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), v1.PolicyPin) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

func projected(sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

// refusedBy wants the refusal of a policy that says all the words.
func refusedBy(err error, policy string, words ...string) error {
	if err == nil {
		return errors.New("it was not refused")
	}
	for _, word := range append(words, "'"+policy+"'") {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("the refusal does not say %q: %w", word, err)
		}
	}
	return nil
}
