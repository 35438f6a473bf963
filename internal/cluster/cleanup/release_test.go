package cleanup

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/snapshot"
)

// keptByHelm is a ConfigMap that Helm left in place for a release.
func keptByHelm(name, release string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-day)),
		Annotations: map[string]string{helmReleaseName: release, helmReleaseNamespace: "shop", helmResourcePolicy: "keep"},
	}}
}

// helmRelease is the record of a release's revision as Helm's driver makes it.
func helmRelease(t *testing.T, release string, revision int, status, manifest string) *corev1.Secret {
	t.Helper()
	document, err := json.Marshal(map[string]any{"name": release, "version": revision, "manifest": manifest, "chart": map[string]any{"values": "big"}})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(document); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision),
			Labels: map[string]string{"owner": "helm", "name": release, "status": status, "version": fmt.Sprint(revision)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

func releaseCleanup(c client.Client) Round {
	out := cleanup(c)
	out.Retention = snapshot.Retention{History: 2}
	return out
}

// deleted are the names of what was deleted from the store.
func (s *store) deleted() []string {
	var out []string
	for _, w := range s.writes {
		if name, ok := strings.CutPrefix(w, "delete "); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestReleaseCleanup(t *testing.T) {
	revisions := func(n int) []client.Object {
		var out []client.Object
		for i := 1; i <= n; i++ {
			out = append(out, keptByHelm(fmt.Sprintf("app-config-%d", i), "app"))
		}
		return out
	}
	without := func(change func(*corev1.ConfigMap)) []client.Object {
		cm := keptByHelm("app-config-1", "app")
		change(cm)
		return append(revisions(4)[1:], cm)
	}
	record := helmRelease(t, "app", 12, "deployed", "kind: Deployment\nname: \"app-config-12\"\n")
	for name, tc := range map[string]struct {
		objects []client.Object
		minAge  time.Duration
		want    []string
	}{
		"the last two revisions stay":         {objects: append(revisions(12), record), want: names(1, 10)},
		"without a record":                    {objects: revisions(4), want: names(1, 2)},
		"another release's that begins alike": {objects: append(revisions(4), keptByHelm("app-config-0", "app-two"), keptByHelm("app-two-config-1", "app-two")), want: names(1, 2)},
		"its manifest names an old one": {
			objects: append(revisions(12), helmRelease(t, "app", 12, "deployed", "a: [app-config-12, 'app-config-3']")), want: slices.DeleteFunc(names(1, 10), func(n string) bool { return n == "app-config-3" }),
		},
		"an older revision is the deployed one": {
			objects: append(revisions(12), helmRelease(t, "app", 12, "failed", "app-config-12"), helmRelease(t, "app", 4, "deployed", "app-config-4"), helmRelease(t, "app", 3, "superseded", "app-config-3")),
			want:    slices.DeleteFunc(names(1, 10), func(n string) bool { return n == "app-config-4" }),
		},
		"one is used": {
			objects: append(revisions(4), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app-config-1"}}}}}},
			}}),
			want: names(2, 2),
		},
		"one is not to be kept by Helm":      {objects: without(func(cm *corev1.ConfigMap) { delete(cm.Annotations, helmResourcePolicy) }), want: names(2, 2)},
		"one is of no release":               {objects: without(func(cm *corev1.ConfigMap) { cm.Annotations = nil }), want: names(2, 2)},
		"one is of a release elsewhere":      {objects: without(func(cm *corev1.ConfigMap) { cm.Annotations[helmReleaseNamespace] = "other" }), want: names(2, 2)},
		"the policy written in another way":  {objects: without(func(cm *corev1.ConfigMap) { cm.Annotations[helmResourcePolicy] = " Keep " }), want: names(1, 2)},
		"the release's namespace not stated": {objects: without(func(cm *corev1.ConfigMap) { delete(cm.Annotations, helmReleaseNamespace) }), want: names(1, 2)},
		"a minimum age":                      {objects: revisions(4), minAge: 2 * day},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, tc.objects...)
			c := releaseCleanup(s)
			c.Retention.MinAge = tc.minAge
			c.DryRun = true
			if cleaned, err := c.RunRelease(t.Context(), "app"); err != nil || len(s.writes) > 0 || hasDeletion(cleaned) != (tc.want != nil) {
				t.Errorf("dry run: error %v, wrote %q, found %v", err, s.writes, cleaned)
			}
			c.DryRun = false
			cleaned, err := c.RunRelease(t.Context(), "app")
			if err != nil || cleaned.Err() != nil {
				t.Fatal(err, cleaned.Err())
			}
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, s.deleted()); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

// names are those of a range of revisions.
func names(from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("app-config-%d", i))
	}
	return out
}

func TestReleaseCleanupDeletesNothingWhileItDoesNotKnow(t *testing.T) {
	broken := helmRelease(t, "app", 3, "deployed", "")
	broken.Data["release"] = []byte("no base64!")
	for want, tc := range map[string]struct {
		record *corev1.Secret
		fails  string
	}{
		"is pending-upgrade":                {record: helmRelease(t, "app", 3, "pending-upgrade", "")},
		"read revision 3 of release app":    {record: broken},
		"missing the right to list secrets": {record: helmRelease(t, "app", 3, "deployed", ""), fails: "list secrets"},
		"missing the right to get secrets":  {record: helmRelease(t, "app", 3, "deployed", ""), fails: "get secrets"},
		"missing the right to list pods":    {record: helmRelease(t, "app", 3, "deployed", ""), fails: "list pods"},
	} {
		s := newStore(t, keptByHelm("app-config-1", "app"), keptByHelm("app-config-2", "app"), keptByHelm("app-config-3", "app"), tc.record)
		if tc.fails != "" {
			s.fails[tc.fails] = forbidden(tc.fails)
		}
		if _, err := releaseCleanup(s).RunRelease(t.Context(), "app"); err == nil || !strings.Contains(err.Error(), want) || len(s.writes) > 0 {
			t.Errorf("error %v, wrote %q; want %q, and nothing written", err, s.writes, want)
		}
	}
}

func TestReleaseCleanupListsEverythingAgainBeforeItDeletes(t *testing.T) {
	s := newStore(t, keptByHelm("app-config-1", "app"), keptByHelm("app-config-2", "app"), keptByHelm("app-config-3", "app"), keptByHelm("app-config-4", "app"))
	c := releaseCleanup(s)
	looks := 0
	c.Now = func() time.Time { // between the listings a pod comes to use one, and somebody writes the other
		if looks++; looks == 2 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app-config-1"}}}},
			}}}
			if err := s.inner.Create(t.Context(), pod); err != nil {
				t.Error(err)
			}
			cm := &corev1.ConfigMap{}
			if err := s.inner.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "app-config-2"}, cm); err != nil {
				t.Error(err)
			}
			cm.Labels = map[string]string{"touched": "yes"}
			if err := s.inner.Update(t.Context(), cm); err != nil {
				t.Error(err)
			}
		}
		return noon
	}
	cleaned, err := c.RunRelease(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{outcome(cleaned, "app-config-1"), outcome(cleaned, "app-config-2")}
	want := []string{"keep used", "delete superseded left: somebody else wrote it meanwhile"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the one that is used meanwhile, and the one that is written (-want +got):\n%s", diff)
	}
}

// Helm adopts an object that it made before by a patch that changes nothing, so its resourceVersion tells nothing.
func TestReleaseCleanupEndsWhenTheReleaseIsDeployed(t *testing.T) {
	objects := []client.Object{helmRelease(t, "app", 6, "deployed", "")}
	for _, name := range names(1, 6) {
		objects = append(objects, keptByHelm(name, "app"))
	}
	s := newStore(t, objects...)
	c := releaseCleanup(s)
	now := noon
	c.Now = func() time.Time {
		now = now.Add(gateFor) // each write takes long
		return now
	}
	s.before = func(string) {
		s.before = nil
		if err := s.inner.Create(t.Context(), helmRelease(t, "app", 7, "pending-upgrade", "")); err != nil {
			t.Error(err)
		}
	}
	cleaned, err := c.RunRelease(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, item := range cleaned.Items {
		if strings.Contains(item.Left, "release app was deployed meanwhile") {
			left++
		}
	}
	if got := s.deleted(); len(got) != 1 || left != 3 {
		t.Errorf("deleted %q, and %d are left, want one and three", got, left)
	}
}

func TestAnObjectIsDeletedOnlyWhereBothListingsAgree(t *testing.T) {
	look := func(version string, action snapshot.Action) *Outcome {
		v := snapshot.Verdict{Snapshot: snapshot.Snapshot{UID: "u", ResourceVersion: version}, Action: action}
		return &Outcome{Items: []Item{{Verdict: v}}}
	}
	for name, tc := range map[string]struct {
		first, second *Outcome
		want          snapshot.Action
	}{
		"both find it unneeded":             {look("1", snapshot.Delete), look("1", snapshot.Delete), snapshot.Delete},
		"the first found it needed":         {look("1", snapshot.Keep), look("1", snapshot.Delete), snapshot.Keep},
		"the second finds it needed":        {look("1", snapshot.Delete), look("1", snapshot.Keep), snapshot.Keep},
		"somebody wrote it in between":      {look("1", snapshot.Delete), look("2", snapshot.Delete), snapshot.Keep},
		"the first did not find it, or all": {&Outcome{}, look("1", snapshot.Delete), snapshot.Keep},
	} {
		agree(tc.second, tc.first)
		if got := tc.second.Items[0].Action; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
