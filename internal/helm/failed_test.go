package helm

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

const pendingDocument = `{"name":"web","version":2,"info":{"status":"pending-upgrade","description":"Preparing upgrade"},"manifest":"m"}`

// revision is the record of revision 2 in memory, as a survey sees it.
func revision(t *testing.T, c client.Client, kind string) release.Revision {
	t.Helper()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "sh.helm.release.v1.web.v2"}, object); err != nil {
		t.Fatal(err)
	}
	_, r, err := helmrecord.Decode(kind, object)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func record(kind, document string) client.Object {
	s := holding(meta("web", 2, "pending-upgrade"), document)
	if kind == "Secret" {
		return s
	}
	return &corev1.ConfigMap{ObjectMeta: s.ObjectMeta, Data: map[string]string{"release": string(s.Data["release"])}}
}

func TestPayloadAndLabelAreMarkedFailedInOneWrite(t *testing.T) {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		writes := 0
		c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(record(kind, pendingDocument)).Build(), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				writes++
				body, err := p.Data(o)
				if err != nil || !strings.Contains(string(body), `"resourceVersion"`) || strings.Contains(string(body), `"owner"`) {
					t.Errorf("%s: it writes %s (%v)", kind, body, err)
				}
				return c.Patch(ctx, o, p, opts...)
			},
		})
		if err := MarkFailed(t.Context(), c, "shop", revision(t, c, kind), Mark{Description: "left", Unasked: noon}); err != nil {
			t.Fatal(err)
		}
		r := revision(t, c, kind)
		packed, err := Payload(t.Context(), c, "shop", r)
		if err != nil {
			t.Fatal(err)
		}
		p, err := packed.Unpack()
		if err != nil || p.Info.Status != release.Failed || r.Status != release.Failed || p.Manifest != "m" || writes != 1 || !r.Recovered.Equal(noon) {
			t.Errorf("%s: label %s, payload %+v, %d writes, %v", kind, r.Status, p, writes, err)
		}
	}
}

func TestOnlyWhatWasDecidedOnIsMarked(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		change   func(*testing.T, client.Client)
		want     string
	}{
		"the record was written since": {pendingDocument, func(t *testing.T, c client.Client) {
			s := record("Secret", pendingDocument)
			if err := c.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"modifiedAt":"1"}}}`))); err != nil {
				t.Error(err)
			}
		}, ErrChanged.Error()},
		"the record is gone": {pendingDocument, func(t *testing.T, c client.Client) {
			if err := c.Delete(t.Context(), record("Secret", pendingDocument)); err != nil {
				t.Error(err)
			}
		}, ErrChanged.Error()},
		"the payload is settled":         {strings.Replace(pendingDocument, "pending-upgrade", "deployed", 1), func(*testing.T, client.Client) {}, "revision 2 is deployed"},
		"the payload is that of another": {strings.Replace(pendingDocument, `"version":2`, `"version":3`, 1), func(*testing.T, client.Client) {}, "revision 3 is pending-upgrade"},
		"the payload uninstalls":         {strings.Replace(pendingDocument, "pending-upgrade", "uninstalling", 1), func(*testing.T, client.Client) {}, "uninstalling"},
		"the payload is cut off":         {pendingDocument[:40], func(*testing.T, client.Client) {}, "decode"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(record("Secret", tc.document)).Build()
			r := revision(t, c, "Secret")
			tc.change(t, c)
			err := MarkFailed(t.Context(), c, "shop", r, Mark{Description: "left"})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "secret/sh.helm.release.v1.web.v2 in namespace shop") {
				t.Errorf("error %v", err)
			}
			if strings.HasPrefix(name, "the record") && !errors.Is(err, ErrChanged) {
				t.Errorf("error %v is not that it changed", err)
			}
		})
	}
}
