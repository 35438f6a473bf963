package acceptance

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/lab/client/labtest"
)

func TestPolicyRewritesWhatWebhooksAddToAPod(t *testing.T) {
	s := openRewriting(t, "injected")
	s.injectSidecars()
	// b is the snapshot of a, and pinned itself: what the policy did before the webhook ran must not be done again.
	pod := pinnedPod("configmap/a=b,configmap/b=c,secret/door=door-1", corev1.PodSpec{Containers: []corev1.Container{
		readerOf("app", fromConfigMap("a"), fromConfigMap("b"), fromSecret("door")),
	}})
	var got *corev1.Pod
	s.eventually("the webhook to add a container", func() error {
		var err error
		if got, err = s.tried(pod); err == nil {
			err = labtest.Equal("the number of containers", len(got.Spec.Containers), 2)
		}
		return err
	})
	for _, c := range got.Spec.Containers {
		first, second, third := c.EnvFrom[0].ConfigMapRef.Name, c.EnvFrom[1].ConfigMapRef.Name, c.EnvFrom[2].SecretRef.Name
		if first != "b" || second != "b" || third != "door-1" {
			t.Errorf("container %s reads %s, %s and %s, want b, b and door-1", c.Name, first, second, third)
		}
	}
}

// injectSidecars makes every new pod of the scene get a second container that reads what the first one did, from a webhook, as a
// service mesh does it.
func (s *scene) injectSidecars() {
	s.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(inject))
	s.t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         "sidecars.example.org",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(server.URL + "/inject"), CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Namespace}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	s.must(s.API.Create(s.t.Context(), hook))
	afterwards(s.t, func(ctx context.Context) error { return s.API.Delete(ctx, hook) })
}

func inject(w http.ResponseWriter, r *http.Request) {
	review, pod := admissionv1.AdmissionReview{}, corev1.Pod{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if len(pod.Spec.Containers) == 1 {
		sidecar := readerOf("sidecar", fromConfigMap("a"), fromConfigMap("b"), fromSecret("door"))
		review.Response.Patch, _ = json.Marshal([]map[string]any{{"op": "add", "path": "/spec/containers/-", "value": sidecar}})
		review.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
