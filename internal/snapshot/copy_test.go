package snapshot_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func TestNameFitsAndTellsContentsApart(t *testing.T) {
	d := func(value string) digest.Digest {
		o := object(workload.ConfigMap, "a")
		return digest.OfConfigMap("shop", "a", map[string]string{"A": value}, nil).Whole(o)
	}
	seen := map[string]string{}
	for what, name := range map[string]string{
		"one":             snapshot.Name(object(workload.ConfigMap, "a"), d("1"), 0),
		"other content":   snapshot.Name(object(workload.ConfigMap, "a"), d("2"), 0),
		"next attempt":    snapshot.Name(object(workload.ConfigMap, "a"), d("1"), 1),
		"longest name":    snapshot.Name(object(workload.ConfigMap, long("a", 253)), d("1"), 0),
		"cut at a dot":    snapshot.Name(object(workload.ConfigMap, long("a", 241)+".bcdefghijkl"), d("1"), 0),
		"cut at a hyphen": snapshot.Name(object(workload.ConfigMap, long("b", 241)+"-bcdefghijkl"), d("1"), 0),
	} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: name %q: %v", what, name, problems)
		}
		if other, again := seen[name]; again {
			t.Errorf("%s and %s share the name %q", what, other, name)
		}
		seen[name] = what
	}
	if again := snapshot.Name(object(workload.ConfigMap, "a"), d("1"), 0); seen[again] != "one" {
		t.Errorf("name %q the second time", again)
	}
}

func source() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "pricing", UID: "u1", ResourceVersion: "42",
			Labels:          map[string]string{"app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "shop"},
			Annotations:     map[string]string{"meta.helm.sh/release-name": "shop"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Shop", Name: "shop"}},
			Finalizers:      []string{"example.com/keep"},
		},
		Data:       map[string]string{"A": "1\r\n", "empty": ""},
		BinaryData: map[string][]byte{"bin": {0, 255, 10}},
	}
}

func provenance() snapshot.Provenance {
	return snapshot.Provenance{
		Source: object(workload.ConfigMap, "pricing"), SourceUID: "u1", SourceVersion: "42", Revision: 3,
		Time: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
	}
}

func TestASnapshotHasTheContentAndNothingElseOfItsSource(t *testing.T) {
	s := snapshot.OfConfigMap(source(), "pricing-x", provenance())
	if diff := cmp.Diff(source().Data, s.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(source().BinaryData, s.BinaryData); diff != "" {
		t.Errorf("binaryData (-want +got):\n%s", diff)
	}
	if s.Immutable == nil || !*s.Immutable || len(s.OwnerReferences)+len(s.Finalizers) > 0 {
		t.Errorf("immutable %v, owners %v, finalizers %v", s.Immutable, s.OwnerReferences, s.Finalizers)
	}
	for key := range merged(s.Labels, s.Annotations) {
		if !strings.HasPrefix(key, v1.Domain+"/") {
			t.Errorf("carries %s", key)
		}
	}
	got, ok := snapshot.Read(workload.ConfigMap, s)
	want := snapshot.Snapshot{Object: object(workload.ConfigMap, "pricing-x"), Provenance: provenance()}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("read back: %t (-want +got):\n%s", ok, diff)
	}
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func TestATokenIsNeverCopied(t *testing.T) {
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Type: corev1.SecretTypeServiceAccountToken}
	if s, err := snapshot.OfSecret(token, "t-x", provenance()); s != nil || !errors.Is(err, snapshot.ErrToken) {
		t.Errorf("copy %v, error %v", s, err)
	}
}

func TestSame(t *testing.T) {
	wanted := snapshot.OfConfigMap(source(), "pricing-x", provenance())
	no := false
	for name, tc := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   bool
	}{
		"as it was made":       {func(*corev1.ConfigMap) {}, true},
		"condemned":            {func(c *corev1.ConfigMap) { c.Annotations[v1.AnnotationCondemned] = "2026-06-01T12:00:00Z" }, true},
		"of another version":   {func(c *corev1.ConfigMap) { c.Annotations[v1.AnnotationSourceVersion] = "1" }, true},
		"other data":           {func(c *corev1.ConfigMap) { c.Data = map[string]string{"A": "1\n", "empty": ""} }, false},
		"a key less":           {func(c *corev1.ConfigMap) { c.Data = map[string]string{"A": "1\r\n"} }, false},
		"other bytes":          {func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"bin": {0}} }, false},
		"not immutable":        {func(c *corev1.ConfigMap) { c.Immutable = &no }, false},
		"immutable not stated": {func(c *corev1.ConfigMap) { c.Immutable = nil }, false},
		"no snapshot":          {func(c *corev1.ConfigMap) { c.Labels = nil }, false},
		"of another source":    {func(c *corev1.ConfigMap) { c.Annotations[v1.AnnotationSnapshotOf] = "configmap/other" }, false},
		"being deleted":        {func(c *corev1.ConfigMap) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
	} {
		existing := snapshot.OfConfigMap(source(), "pricing-x", provenance())
		tc.change(existing)
		if got := snapshot.SameConfigMap(existing, wanted); got != tc.want {
			t.Errorf("%s: same %t, want %t", name, got, tc.want)
		}
	}
}

func TestSameSecretComparesTheType(t *testing.T) {
	p := provenance()
	p.Source.Kind = workload.Secret
	copyOf := func(kind corev1.SecretType, value string) *corev1.Secret {
		s, err := snapshot.OfSecret(&corev1.Secret{Type: kind, Data: map[string][]byte{"A": []byte(value)}}, "s-x", p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	wanted := copyOf(corev1.SecretTypeOpaque, "1")
	for name, tc := range map[string]struct {
		existing *corev1.Secret
		want     bool
	}{
		"equal":      {copyOf(corev1.SecretTypeOpaque, "1"), true},
		"other type": {copyOf(corev1.SecretTypeBasicAuth, "1"), false},
		"other data": {copyOf(corev1.SecretTypeOpaque, "2"), false},
	} {
		if got := snapshot.SameSecret(tc.existing, wanted); got != tc.want {
			t.Errorf("%s: same %t, want %t", name, got, tc.want)
		}
	}
}

func TestReadRefusesWhatIsNoSnapshot(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"no label":             func(c *corev1.ConfigMap) { c.Labels = nil },
		"of nothing":           func(c *corev1.ConfigMap) { delete(c.Annotations, v1.AnnotationSnapshotOf) },
		"of another kind":      func(c *corev1.ConfigMap) { c.Annotations[v1.AnnotationSnapshotOf] = "secret/pricing" },
		"of another namespace": func(c *corev1.ConfigMap) { c.Annotations[v1.AnnotationSnapshotOf] = "configmap/other/pricing" },
	} {
		s := snapshot.OfConfigMap(source(), "pricing-x", provenance())
		change(s)
		if got, ok := snapshot.Read(workload.ConfigMap, s); ok {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}
