package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// The webhook configurations, where they ship.
const (
	workloadWebhook = "deploy/pin/webhook.yaml"
	podWebhook      = "deploy/podwebhook/webhook.yaml"
)

// hooks are the webhooks of one test, served by a controller program.
type hooks struct {
	venue
	address string
	files   []string
}

// webhooks installs the rights of mode pin with the webhook configurations given, until the test ends. As the lab has no network
// for Services, the API server is told an address; nothing else of what ships is changed.
func (v venue) webhooks(files ...string) *hooks {
	v.t.Helper()
	h := &hooks{venue: v, address: freeAddress(v.t), files: files}
	rights := []string{manifestPath(v.t, "deploy/pin/role.yaml"), manifestPath(v.t, "deploy/pin/rolebinding.yaml")}
	v.kubectl("apply", "-f", rights[0], "-f", rights[1])
	v.t.Cleanup(func() {
		if _, _, err := v.lab.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", rights[1], "-f", rights[0]); err != nil {
			v.t.Error(err)
		}
	})
	for _, file := range files {
		h.register(file)
	}
	return h
}

// kubectl runs kubectl on the venue's lab.
func (v venue) kubectl(args ...string) string {
	v.t.Helper()
	return labtest.Kubectl(v.t, v.lab, args...)
}

func (h *hooks) register(file string) {
	h.t.Helper()
	c := shippedWebhook(h.t, file)
	for i := range c.Webhooks {
		client := &c.Webhooks[i].ClientConfig
		url := "https://" + h.address + *client.Service.Path
		client.URL, client.Service = &url, nil
	}
	manifest, err := yaml.Marshal(c)
	if err != nil {
		h.t.Fatal(err)
	}
	labtest.Apply(h.t, h.lab, string(manifest))
	h.t.Cleanup(func() { h.unregister(c.Name) })
}

func (h *hooks) unregister(name string) {
	if _, _, err := h.lab.Kubectl(context.Background(), "delete", "mutatingwebhookconfiguration", name, "--ignore-not-found"); err != nil {
		h.t.Error(err)
	}
}

// serve starts a controller that serves the webhooks.
func (h *hooks) serve(flags ...string) *scenario.Controller {
	h.t.Helper()
	return h.start(scenario.Program{Flags: h.flags(flags)})
}

// serveAlone starts a controller that serves the webhooks and never leads, as somebody else does who writes nothing: what is
// written to a workload is written by admission.
func (h *hooks) serveAlone(flags ...string) *scenario.Controller {
	h.t.Helper()
	// Another name each time: the namespace of the test before may still be going.
	s, err := scenario.Open(h.t.Context(), h.lab, "leads-nothing-"+rand.String(5), "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			h.t.Error(err)
		}
	})
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.DefaultNamespace, Name: v1.LeaseLeader}}
	_ = s.API.Delete(h.t.Context(), lease) // of the controller before, if any
	holder, seconds, now := "somebody", int32(24*60*60), metav1.NewMicroTime(time.Now())
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	if err := s.API.Create(h.t.Context(), lease); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := s.API.Delete(context.Background(), lease); err != nil {
			h.t.Error(err)
		}
	})
	return h.start(scenario.Program{Flags: h.flags(flags), StandBy: true})
}

// asked is how often each webhook did what it is for when start returns.
const asked = 1

// start starts a controller, and waits until the API server asks each of the webhooks: it takes a while to hear of a
// certificate that the controller made.
func (h *hooks) start(p scenario.Program) *scenario.Controller {
	h.t.Helper()
	c := h.venue.start(p)
	probes := map[string]scenario.Asked{workloadWebhook: scenario.WorkloadsAsked, podWebhook: scenario.PodsRewritten}
	for _, file := range h.files {
		if err := scenario.AwaitAdmission(h.t.Context(), h.lab, probes[file]); err != nil {
			h.t.Fatal(err)
		}
	}
	return c
}

func (h *hooks) flags(more []string) []string {
	host, _, _ := net.SplitHostPort(h.address)
	return append([]string{"--webhook", "--webhook-address", h.address, "--webhook-name", host}, more...)
}

// shippedWebhook reads the webhook configuration in a file.
func shippedWebhook(t *testing.T, file string) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	content, err := os.ReadFile(manifestPath(t, file))
	if err != nil {
		t.Fatal(err)
	}
	documents := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no webhook configuration", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if yaml.UnmarshalStrict(document, c) == nil && c.Kind == "MutatingWebhookConfiguration" {
			return c
		}
	}
}

func manifestPath(t *testing.T, file string) string {
	t.Helper()
	root, err := scenario.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, file)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := scenario.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
