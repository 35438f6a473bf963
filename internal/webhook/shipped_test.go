package webhook

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// shipped reads the webhook configuration in a file, and the Service beside it, if any.
func shipped(t *testing.T, file string) (c admissionregistrationv1.MutatingWebhookConfiguration, s corev1.Service) {
	t.Helper()
	content, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		switch {
		case bytes.Contains(document, []byte("kind: MutatingWebhookConfiguration")):
			err = yaml.UnmarshalStrict(document, &c)
		default:
			err = yaml.UnmarshalStrict(document, &s)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return c, s
}

func TestWhatShipsAsksForWhatIsServed(t *testing.T) {
	served := Options{Clock: nil, Live: &cluster.Live{}, Kinds: cluster.BuiltinKinds()}.deciders(&teller{})
	for name, file := range map[string]string{v1.WebhookWorkloads: "deploy/pin/webhook.yaml", v1.WebhookPods: "deploy/podwebhook/webhook.yaml"} {
		c, _ := shipped(t, file)
		if c.Name != name {
			t.Errorf("%s: its name is %s, want %s", file, c.Name, name)
		}
		for _, w := range c.Webhooks {
			if s := w.ClientConfig.Service; s.Name != service || s.Namespace != v1.DefaultNamespace || served[*s.Path] == nil {
				t.Errorf("%s: nothing is served at %+v", file, s)
			}
			if *w.FailurePolicy != admissionregistrationv1.Ignore {
				t.Errorf("%s: a write must not depend on Tidemark", file)
			}
			if wait := time.Duration(*w.TimeoutSeconds) * time.Second; wait <= deadline || wait > 5*time.Second {
				t.Errorf("%s: the API server waits %s; what is decided takes up to %s", file, wait, deadline)
			}
			for _, own := range []string{"kube-system", v1.DefaultNamespace} {
				if !slices.Contains(w.NamespaceSelector.MatchExpressions[0].Values, own) {
					t.Errorf("%s: it is asked about %s", file, own)
				}
			}
		}
	}
}

func TestEveryKindIsAskedAbout(t *testing.T) {
	c, s := shipped(t, "deploy/pin/webhook.yaml")
	for _, k := range append(cluster.BuiltinKinds(), job) {
		resource := strings.ToLower(k.GroupVersionKind.Kind) + "s"
		asked := slices.ContainsFunc(c.Webhooks[0].Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, k.Group) && slices.Contains(r.APIVersions, k.Version) && slices.Contains(r.Resources, resource)
		})
		if !asked {
			t.Errorf("the API server does not ask about %s of %s", resource, k.GroupVersion())
		}
	}
	if s.Name != service || s.Namespace != v1.DefaultNamespace {
		t.Errorf("the Service is %s/%s", s.Namespace, s.Name)
	}
}
