package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
)

// everyReference is a pod that names config objects in every place that is rewritten.
const everyReference = `
metadata:
  annotations: {tidemark.dev/pins: "configmap/web=web-a,configmap/opt=absent.tidemark.dev,secret/key=key-b"}
spec:
  initContainers:
  - name: init
    restartPolicy: Always
    envFrom: [{configMapRef: {name: web}, prefix: A_}, {secretRef: {name: key}}]
  containers:
  - name: app
    env:
    - {name: A, value: web}
    - {name: B, valueFrom: {configMapKeyRef: {name: web, key: b}}}
    - {name: C, valueFrom: {secretKeyRef: {name: key, key: c, optional: true}}}
    - {name: D, valueFrom: {configMapKeyRef: {name: other, key: d}}}
    envFrom: [{configMapRef: {name: opt, optional: true}}]
  volumes:
  - {name: a, configMap: {name: web, items: [{key: a, path: a}]}}
  - {name: b, secret: {secretName: key}}
  - {name: c, projected: {sources: [{configMap: {name: web}}, {secret: {name: key}}, {downwardAPI: {}}]}}
  - {name: d, configMap: {name: kube-root-ca.crt}}
`

func podRequest(t *testing.T, manifest string) admission.Request {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: admissionv1.Create, Namespace: "shop",
		Object: runtime.RawExtension{Raw: raw},
	}}
}

func TestAPodIsRewrittenAsThePureFunctionDoes(t *testing.T) {
	req := podRequest(t, everyReference)
	a, err := pod(t.Context(), req)
	if err != nil || a.outcome != rewritten {
		t.Fatalf("%s: %v", a.outcome, err)
	}
	want, got := &corev1.Pod{}, &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, want); err != nil {
		t.Fatal(err)
	}
	pins, err := snapshot.ParsePins("shop", want.Annotations[v1.AnnotationPins])
	if err != nil {
		t.Fatal(err)
	}
	rewrite.Pod(&want.Spec, pins, "shop")
	if err := json.Unmarshal(applied(t, req.Object.Raw, a.patch), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	req.Object.Raw = applied(t, req.Object.Raw, a.patch)
	if a, err := pod(t.Context(), req); err != nil || a.outcome != unchanged || len(a.patch) != 0 {
		t.Errorf("a second time: %+v, %v", a, err)
	}
}

func TestAPodWithPinsThatCannotBeReadGoesThrough(t *testing.T) {
	req := podRequest(t, "metadata: {annotations: {tidemark.dev/pins: nonsense}}\nspec: {containers: [{name: app, envFrom: [{configMapRef: {name: web}}]}]}")
	if a, err := pod(t.Context(), req); err == nil || len(a.patch) != 0 {
		t.Errorf("%+v, %v; want an error, which the front makes a warning", a, err)
	}
}
