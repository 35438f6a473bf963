package acceptance

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
)

func TestTheCertificateIsRenewedWhileTheWebhookServes(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	failed := h.callsThatFailed()
	s := v.open("renewal", v1.ModePin)
	s.controller = h.serveAlone("--webhook-certificate-validity=45s")
	s.apply(webConfig)
	const renewals = 2
	seen := map[string]bool{h.certificate(): true}
	for n := 1; len(seen) <= renewals; n++ {
		name := fmt.Sprintf("deployment/web-%d", n)
		s.apply(program(name, 0, readsWeb))
		if len(s.pinsOf(name)) != 1 {
			t.Errorf("%s was created without pins, after %d renewals", name, len(seen)-1)
		}
		s.kubectl("delete", name)
		seen[h.certificate()] = true
	}
	if now := h.callsThatFailed(); now != failed {
		t.Errorf("%d calls of the webhook failed meanwhile", now-failed)
	}
}

// certificate tells the certificate that serves from others.
func (h *hooks) certificate() string {
	h.t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := dialer.DialContext(h.t.Context(), "tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	secured, ok := c.(*tls.Conn)
	if !ok {
		h.t.Fatalf("%T", c)
	}
	return secured.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// post sends a review as the API server does.
func (h *hooks) post(path, review string) (string, error) {
	request, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "https://"+h.address+path, strings.NewReader(review))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}

// callsThatFailed counts the calls of Tidemark's webhooks that the API server went on without.
func (h *hooks) callsThatFailed() (calls int) {
	h.t.Helper()
	for line := range strings.Lines(h.kubectl("get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_admission_webhook_fail_open_count{") || !strings.Contains(line, "tidemark.dev") {
			continue
		}
		fields := strings.Fields(line)
		n, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			h.t.Fatal(err)
		}
		calls += n
	}
	return calls
}

// namesEverything is the spec of a pod that names config objects in every place.
const namesEverything = `
restartPolicy: Never
imagePullSecrets: [{name: key}]
initContainers:
- {name: sidecar, image: tidemark-sample, restartPolicy: Always, envFrom: [{configMapRef: {name: web}, prefix: A_}, {secretRef: {name: key}}]}
containers:
- name: app
  image: tidemark-sample
  env:
  - {name: A, value: web}
  - {name: B, valueFrom: {configMapKeyRef: {name: web, key: b}}}
  - {name: C, valueFrom: {secretKeyRef: {name: key, key: c, optional: true}}}
  - {name: D, valueFrom: {configMapKeyRef: {name: other, key: d}}}
  envFrom: [{configMapRef: {name: gone, optional: true}}]
volumes:
- {name: a, configMap: {name: web, items: [{key: a, path: a}]}}
- {name: b, secret: {secretName: key}}
- {name: c, projected: {sources: [{configMap: {name: web}}, {secret: {name: key}}, {configMap: {name: kube-root-ca.crt}}]}}
`

func TestThePodWebhookRewritesAsThePolicyDoes(t *testing.T) {
	v := alone(t)
	h := v.webhooks(podWebhook)
	s := v.open("pod-webhook", "")
	s.controller = h.serveAlone()
	failed := h.callsThatFailed()
	const text = "configmap/web=web-copied,configmap/gone=" + v1.AbsentName + ",secret/key=key-copied"
	plain, pinned := s.podOf("plain", ""), s.podOf("pinned", text)

	pins, err := snapshot.ParsePins(s.Namespace, text)
	s.must(err)
	if !rewrite.Pod(&plain.Spec, pins, s.Namespace) {
		t.Fatal("the function that the policy is held against changes nothing")
	}
	if diff := cmp.Diff(plain.Spec, pinned.Spec); diff != "" {
		t.Errorf("the webhook's pod differs from the function's:\n%s", diff)
	}
	if h.callsThatFailed() != failed {
		t.Error("a call of the webhook failed")
	}
	s.metricIs(`tidemark_admissions_total{outcome="rewritten",webhook="pods"}`, asked+1)
	if _, called, err := s.controller.Metric(t.Context(), `tidemark_admissions_total{outcome="unchanged",webhook="pods"}`); err != nil || called {
		t.Errorf("a pod without pins is none of the webhook's business; %v", err)
	}
}

// podOf creates a pod that names everything, and returns it as it was created, without what the API gives each its own of.
func (s *scene) podOf(name, pins string) *corev1.Pod {
	s.t.Helper()
	p := &corev1.Pod{}
	s.must(yaml.UnmarshalStrict([]byte(namesEverything), &p.Spec))
	no := false
	p.Namespace, p.Name, p.Spec.AutomountServiceAccountToken = s.Namespace, name, &no
	p.Spec.NodeSelector = map[string]string{"there-is": "none"}
	if pins != "" {
		p.Annotations = map[string]string{v1.AnnotationPins: pins}
	}
	s.must(s.API.Create(s.t.Context(), p))
	return p
}

func TestTheProgramIsReadyWhenItServesAndDecidesForNobodyElse(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook) // which has pins in force
	s := v.open("strange", v1.ModePin)
	s.controller = h.serveAlone()
	// What is no workload, or comes from nowhere near the API server, gets an answer all the same.
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"operation":"CREATE","namespace":"x","object":{"metadata":{"name":"x"}}}}`
	answer, err := h.post("/workloads", review)
	s.must(err)
	var got struct {
		Response struct {
			UID     string
			Allowed bool
			Patch   []byte
		}
	}
	s.must(json.Unmarshal([]byte(answer), &got))
	if got.Response.UID != "1" || !got.Response.Allowed || len(got.Response.Patch) != 0 {
		t.Errorf("the answer is %s", answer)
	}
	if _, err := h.post("/elsewhere", review); err == nil {
		t.Error("it serves elsewhere, too")
	}
	s.apply(program("deployment/reads-nothing", 0, "name: app\nimage: web:1\n"))
	if u := s.get("deployment/reads-nothing"); left(u, templatePath("deployment/reads-nothing"))["record"] != "" {
		t.Errorf("a workload that consumes nothing got %v", u.GetAnnotations())
	}
}
