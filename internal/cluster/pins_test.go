package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

func inShop(kind workload.ObjectKind, name string) workload.Object {
	return workload.Object{Kind: kind, Namespace: "shop", Name: name}
}

var pinnedMap = inShop(workload.ConfigMap, "pricing")

func TestASnapshotHasTheContentOfItsSource(t *testing.T) {
	key, err := digest.RandomKey()
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"interval": "2m"}, BinaryData: map[string][]byte{"logo": {1}}}
	cm.Namespace, cm.Name, cm.Annotations = "shop", "pricing", map[string]string{v1.AnnotationTreatAs: v1.TreatAsVersioned}
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("x")}}
	secret.Namespace, secret.Name = "shop", "db"
	password := inShop(workload.Secret, "db")
	copyOfSecret, err := snapshot.OfSecret(secret, "db-1", snapshot.Provenance{Source: password, Revision: 2})
	if err != nil {
		t.Fatal(err)
	}
	mutable := snapshot.OfConfigMap(cm, "pricing-2", snapshot.Provenance{Source: pinnedMap})
	mutable.Immutable = nil

	for name, tc := range map[string]struct {
		object, source client.Object
		of             workload.Object // the source; none when the object is no snapshot
		same           bool
	}{
		"a ConfigMap":                {snapshot.OfConfigMap(cm, "pricing-1", snapshot.Provenance{Source: pinnedMap, Revision: 2}), cm, pinnedMap, true},
		"a Secret":                   {copyOfSecret, secret, password, true},
		"one that may change":        {mutable, cm, workload.Object{}, false},
		"an object that is no copy":  {cm, cm, workload.Object{}, true},
		"a Secret that is no copy":   {secret, secret, workload.Object{}, true},
		"a copy of another object":   {snapshot.OfConfigMap(cm, "x", snapshot.Provenance{Source: inShop(workload.ConfigMap, "other")}), cm, inShop(workload.ConfigMap, "other"), false},
		"one that says another kind": {snapshot.OfConfigMap(cm, "x", snapshot.Provenance{Source: password}), cm, workload.Object{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := transformed(t, key, tc.object), transformed(t, key, tc.source)
			if got.Object.Name != tc.object.GetName() || got.Content.Equal(source.Content) != tc.same {
				t.Errorf("%s has content %v, the source %v; want the same: %v", got.Object, got.Content, source.Content, tc.same)
			}
			var of workload.Object
			if got.Snapshot != nil {
				of = got.Snapshot.Source
			}
			if of != tc.of {
				t.Errorf("a snapshot of %v, want %v", of, tc.of)
			}
		})
	}
}

func transformed(t *testing.T, key *digest.Key, obj client.Object) *Digested {
	t.Helper()
	out, err := Digest(key)(obj.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	d, ok := out.(*Digested)
	if !ok {
		t.Fatalf("transformed to %T", out)
	}
	return d
}

// uses words what the containers of a pod consume: "main: configmap/web", "main: secret/db by db-1".
func uses(p fleet.Pod) []string {
	var out []string
	for _, c := range p.Containers {
		for _, u := range c.Uses {
			out = append(out, c.Name+": "+u.Object.Relative("shop"))
		}
		for _, u := range c.Pinned {
			words := c.Name + ": " + u.Use.Object.Relative("shop") + " by " + u.Snapshot
			if u.Shared {
				words += ", perhaps"
			}
			out = append(out, words)
		}
	}
	for _, o := range p.Unmatched {
		out = append(out, "unmatched: "+o.Relative("shop"))
	}
	if p.PinsProblem != "" {
		out = append(out, p.PinsProblem)
	}
	return out
}

func TestPodOfReadsThePinsAgainstTheSpec(t *testing.T) {
	env := func(kind workload.ObjectKind, name string) corev1.EnvFromSource {
		if kind == workload.Secret {
			return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
		}
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	cm := func(name string) corev1.EnvFromSource { return env(workload.ConfigMap, name) }
	for name, tc := range map[string]struct {
		pins string
		env  []corev1.EnvFromSource
		spec func(*corev1.PodSpec)
		want []string
	}{
		"no pins": {"", []corev1.EnvFromSource{cm("web-1")}, nil, []string{"main: configmap/web-1"}},
		"pins that the spec follows": {
			"configmap/web=web-1,secret/db=db-1", []corev1.EnvFromSource{cm("web-1"), env(workload.Secret, "db-1"), cm("plain")}, nil,
			[]string{"main: configmap/plain", "main: configmap/web by web-1", "main: secret/db by db-1"},
		},
		"pins that it does not": {
			"configmap/web=web-1", []corev1.EnvFromSource{cm("web")}, nil, []string{"main: configmap/web", "unmatched: configmap/web"},
		},
		"pins that it follows in part": {
			"configmap/web=web-1", []corev1.EnvFromSource{cm("web")}, func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Name: "init", EnvFrom: []corev1.EnvFromSource{cm("web-1")}}}
			},
			[]string{"init: configmap/web by web-1", "main: configmap/web", "unmatched: configmap/web"},
		},
		"a name of another kind is another": {
			"configmap/web=web-1", []corev1.EnvFromSource{env(workload.Secret, "web-1"), env(workload.Secret, "web")}, nil,
			[]string{"main: secret/web", "main: secret/web-1"},
		},
		"an absence": {
			"configmap/web=absent.tidemark.dev,secret/db=absent.tidemark.dev", []corev1.EnvFromSource{cm(v1.AbsentName)}, nil,
			[]string{"main: configmap/web by absent.tidemark.dev"},
		},
		"an absence that may be of either": {
			"configmap/web=absent.tidemark.dev,configmap/api=absent.tidemark.dev", []corev1.EnvFromSource{cm(v1.AbsentName)}, nil,
			[]string{"main: configmap/api by absent.tidemark.dev, perhaps", "main: configmap/web by absent.tidemark.dev, perhaps"},
		},
		"a volume that no container mounts": {
			"configmap/web=web-1", nil, func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{volumeOf("web")} },
			[]string{"unmatched: configmap/web"},
		},
		"what does not roll does not matter": {
			"secret/db=db-1", nil, func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}} }, nil,
		},
		"pins that cannot be read": {
			"configmap/web", []corev1.EnvFromSource{cm("web")}, nil,
			[]string{"main: configmap/web", `annotation tidemark.dev/pins: entry "configmap/web": want configmap/NAME=SNAPSHOT or secret/NAME=SNAPSHOT`},
		},
		"a pin of what is not referenced any more": {
			"configmap/old=old-1", []corev1.EnvFromSource{cm("web")}, nil, []string{"main: configmap/web"},
		},
		"a copy that is pinned itself": {
			"configmap/web=web-1,configmap/web-1=web-2", []corev1.EnvFromSource{cm("web-1")}, nil, []string{"main: configmap/web by web-1"},
		},
		"an object that is its own pin": {
			"configmap/web=web", []corev1.EnvFromSource{cm("web")}, nil, []string{"main: configmap/web by web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", EnvFrom: tc.env}}}}
			pod.Namespace = "shop"
			if tc.pins != "" {
				pod.Annotations = map[string]string{v1.AnnotationPins: tc.pins}
			}
			if tc.spec != nil {
				tc.spec(&pod.Spec)
			}
			if diff := cmp.Diff(tc.want, uses(PodOf(pod))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func volumeOf(configMap string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

// loaded words what is known of the first container of each pod.
func loaded(r fleet.Result) map[string][]string {
	out := map[string][]string{}
	for _, p := range r.Pods {
		for _, l := range p.Containers[0].Loaded {
			what := "unknown"
			switch {
			case l.Behind():
				what = "older"
			case l.Current():
				what = "applied"
			}
			words := l.Object.Relative("shop") + " " + what + " " + string(l.Evidence)
			if l.Snapshot != "" {
				words += " by " + l.Snapshot
			}
			out[p.Name] = append(out[p.Name], words)
		}
	}
	return out
}

func TestASurveyKnowsWhatPinnedPodsLoaded(t *testing.T) {
	want := map[string][]string{
		"a-pinned": {
			"configmap/extra applied pinned by absent.tidemark.dev", "configmap/pricing applied pinned by pricing-b",
			"secret/db unknown unknown by db-a",
		},
		"b-older":     {"configmap/pricing older pinned by pricing-a"},
		"c-unmatched": {"configmap/pricing unknown write-times"},
		"d-stripped":  {"configmap/pricing applied pinned by pricing-b"},
		"e-lost":      {"configmap/pricing unknown unknown by pricing-lost"},
		"f-forged":    {"configmap/pricing unknown unknown by pricing-forged"},
	}
	for name, targets := range map[string][]Target{
		"of a namespace":      nil,
		"of a named workload": {{BuiltinKinds()[0], "shop", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, "testdata/pins.yaml")
			s := survey(a)
			s.Targets, s.Values = targets, true
			sight := read(t, s)
			w := sight.Workloads[0]
			r := w.Judge()
			if diff := cmp.Diff(want, loaded(r)); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if r.Verdict != fleet.Unpinned {
				t.Errorf("got %s: %s", r.Verdict, r.Reason)
			}
			if got := w.Fleet.Pins.String(); got != "configmap/extra=absent.tidemark.dev,configmap/pricing=pricing-b,secret/db=db-a" {
				t.Errorf("pins %s", got)
			}
			if got := w.Values[pinnedAs(pinnedMap, "pricing-b")]["interval"]; got != "2m" {
				t.Errorf("the template's copy has the value %q", got)
			}
			if n := a.asked["list configmaps"]; targets == nil && n != 2 { // of the namespace, and the history
				t.Errorf("ConfigMaps were listed %d times", n)
			}
		})
	}
}

func TestASurveyTakesTheContentOfSnapshotsFromTheHistory(t *testing.T) {
	a := newAPI(t, "testdata/pins.yaml")
	key, err := digest.RandomKey()
	if err != nil {
		t.Fatal(err)
	}
	rememberCopies(t, a, key)
	sight := read(t, survey(a))
	w := sight.Workloads[0]
	for name, want := range map[string]bool{copyName(key, "10m"): true, "pricing-a": true} {
		s := w.Fleet.Snapshots[pinnedAs(pinnedMap, name)]
		if known := s.Content != nil && s.Source == pinnedMap; known != want {
			t.Errorf("%s: %+v, want it known: %v", name, s, want)
		}
	}
	got := loaded(w.Judge())
	if diff := cmp.Diff([]string{"configmap/pricing older pinned by " + copyName(key, "10m")}, got["g-named"]); diff != "" {
		t.Errorf("a pod of a copy that the history knows (-want +got):\n%s", diff)
	}
	if !slices.Contains(got["h-secret"], "secret/db applied pinned by "+copyName(key, "")) {
		t.Errorf("a pod of a Secret's copy that the history knows: %v", got["h-secret"])
	}
	if a.asked["get secrets"] > 1 { // the digest key, for the copy that is not known
		t.Errorf("%d Secrets were read", a.asked["get secrets"])
	}
}

// copyName is the name of the snapshot of pricing with the interval or, without one, of the Secret.
func copyName(key *digest.Key, interval string) string {
	if interval == "" {
		db := inShop(workload.Secret, "db")
		return snapshot.Name(db, digest.OfSecret(key, "shop", "db", map[string][]byte{"password": []byte("x")}).Whole(db), 1)
	}
	return snapshot.Name(pinnedMap, digest.OfConfigMap("shop", "pricing", map[string]string{"interval": interval}, nil).Whole(pinnedMap), 0)
}

// rememberCopies puts a history of pricing and of the Secret into the cluster, with copies that are named after what it tells of
// and pods that read them. What the copies hold must not be read, and would be wrong.
func rememberCopies(t *testing.T, a *api, key *digest.Key) {
	t.Helper()
	create := func(obj client.Object) {
		if err := a.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	versions := func(contents ...digest.Content) []history.Version {
		var out []history.Version
		for i, c := range contents {
			at := began.Add(time.Duration(i) * time.Minute)
			out = append(out, history.Version{NotBefore: at, Seen: at, UID: "u", ResourceVersion: "x", Content: c})
		}
		return out
	}
	logs := []history.Log{
		{Object: pinnedMap, Versions: versions(
			digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "10m"}, nil),
			digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "2m"}, nil))},
		{Object: inShop(workload.Secret, "db"), Versions: versions(digest.OfSecret(key, "shop", "db", map[string][]byte{"password": []byte("x")}))},
	}
	secret := &corev1.Secret{}
	if err := a.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db"}, secret); err != nil {
		t.Fatal(err)
	}
	logs[1].Versions[0].UID, logs[1].Versions[0].ResourceVersion = string(secret.UID), secret.ResourceVersion
	a.asked = map[string]int{}
	shards, err := history.Encode(logs)
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: shards[0]}
	cm.Namespace, cm.Name, cm.Labels = "tidemark-system", v1.HistoryPrefix+"shop", map[string]string{v1.LabelHistory: "shop"}
	create(cm)
	made := metav1.NewTime(began)
	named := snapshot.OfConfigMap(&corev1.ConfigMap{}, copyName(key, "10m"), snapshot.Provenance{Source: pinnedMap})
	named.CreationTimestamp = made
	create(named)
	hidden, err := snapshot.OfSecret(&corev1.Secret{}, copyName(key, ""), snapshot.Provenance{Source: inShop(workload.Secret, "db")})
	if err != nil {
		t.Fatal(err)
	}
	hidden.CreationTimestamp = made
	create(hidden)
	for _, p := range []struct{ pod, pins, text string }{
		{"g-named", "configmap/pricing=" + copyName(key, "10m"), "{name: main, envFrom: [{configMapRef: {name: " + copyName(key, "10m") + "}}]}"},
		{"h-secret", "secret/db=" + copyName(key, ""), "{name: main, envFrom: [{secretRef: {name: " + copyName(key, "") + "}}]}"},
	} {
		create(workloadFrom(t, strings.NewReplacer("POD", p.pod, "PINS", p.pins, "CONTAINER", p.text).Replace(`
apiVersion: v1
kind: Pod
metadata:
  {name: POD, namespace: shop, labels: {app: web}, creationTimestamp: "2026-06-01T11:00:00Z", annotations: {tidemark.dev/pins: PINS},
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: web-1, controller: true}]}
spec: {containers: [CONTAINER]}
status: {phase: Running, containerStatuses: [{name: main, image: "", imageID: "", ready: true, restartCount: 0, state: {running: {startedAt: "2026-06-01T11:00:01Z"}}}]}
`)))
	}
}

func TestWithoutTheRightToListSecretsTheirSnapshotsAreUnknown(t *testing.T) {
	sight := read(t, survey(newAPI(t, "testdata/pins.yaml", "list secrets")))
	for _, p := range sight.Workloads[0].Judge().Pods {
		for _, l := range p.Containers[0].Loaded {
			if l.Object.Kind == workload.Secret && !strings.Contains(l.Why, "secret/db-a, which is a copy of it: missing the right to list secrets") {
				t.Errorf("%s: %s", l.Object, l.Why)
			}
		}
	}
}

func TestASurveyRemarksWhatModePinLacks(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta(v1.PolicyPin)}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta(v1.PolicyPin)}
	webhook := func(name string, authority []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta(name), Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: authority},
			}},
		}
	}
	pods, workloads := webhook(v1.WebhookPods, []byte("authority")), webhook(v1.WebhookWorkloads, []byte("authority"))
	const force, between = "pins are not in force", "the webhook tidemark-workloads is not installed"
	for name, tc := range map[string]struct {
		namespace string
		installed []client.Object
		forbidden []string
		want      []string
	}{
		"nothing":                     {"shop", nil, nil, []string{between, force}},
		"everything":                  {"shop", []client.Object{policy, binding, workloads}, nil, nil},
		"a policy that nothing binds": {"shop", []client.Object{policy, workloads}, nil, []string{force}},
		"the pod webhook":             {"shop", []client.Object{pods}, nil, []string{between}},
		"webhooks that no authority vouches for": {
			"shop", []client.Object{webhook(v1.WebhookPods, nil), webhook(v1.WebhookWorkloads, nil)}, nil, []string{between, force},
		},
		"what may not be looked at":           {"shop", nil, []string{"get mutatingwebhookconfigurations", "get mutatingadmissionpolicies"}, nil},
		"what may not be looked at in part":   {"shop", nil, []string{"get mutatingwebhookconfigurations"}, nil},
		"where no workload is in mode pin":    {"quiet", nil, nil, nil},
		"in the whole cluster, said but once": {"", nil, nil, []string{between, force}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, "testdata/pins.yaml", tc.forbidden...)
			for _, obj := range tc.installed {
				if err := a.Create(t.Context(), obj.DeepCopyObject().(client.Object)); err != nil { //nolint:errcheck // it is one
					t.Fatal(err)
				}
			}
			s := survey(a)
			s.Namespace = tc.namespace
			sight := read(t, s)
			if len(sight.Remarks) != len(tc.want) {
				t.Fatalf("remarks %q, want %d", sight.Remarks, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(sight.Remarks[i], want) {
					t.Errorf("remark %q, want %q…", sight.Remarks[i], want)
				}
			}
			asked := slices.DeleteFunc(slices.Collect(maps.Keys(a.asked)), func(k string) bool { return !strings.Contains(k, "mutating") })
			if tc.namespace == "quiet" && len(asked) > 0 {
				t.Errorf("asked to %q where nothing is in mode pin", asked)
			}
		})
	}
}
