package controller

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

var (
	noon       = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	deployment = cluster.BuiltinKinds()[0]
)

// reads makes a Deployment whose container reads ConfigMaps into its environment.
func reads(name string, generation int64, configMaps ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: generation}}
	c := corev1.Container{Name: "app", Image: "app:1"}
	for _, cm := range configMaps {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: cm},
		}})
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{c}
	return d
}

func configMap(name, value string, annotations map[string]string) *cluster.Digested {
	o := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations}
	return &cluster.Digested{
		ObjectMeta: meta,
		Object:     o,
		Setting:    cluster.SettingOf(o.Kind, &meta),
		Content:    digest.OfConfigMap("shop", name, map[string]string{"KEY": value}, nil),
	}
}

func namesOf(ids []ID) []string {
	var names []string
	for _, id := range ids {
		names = append(names, id.Name)
	}
	slices.Sort(names)
	return names
}

func TestIndexTellsWhomAnObjectMattersTo(t *testing.T) {
	x := newIndex()
	x.putWorkload(deployment, reads("pricing", 1, "prices", "common"))
	x.putWorkload(deployment, reads("mail", 1, "common"))
	x.putWorkload(deployment, reads("idle", 1))

	for _, step := range []struct {
		what string
		ids  []ID
		want []string
	}{
		{"a new object matters to all who consume it", x.putObject(configMap("common", "1", nil), noon), []string{"mail", "pricing"}},
		{"the same content matters to nobody", x.putObject(configMap("common", "1", nil), noon), nil},
		{"other content matters again", x.putObject(configMap("common", "2", nil), noon), []string{"mail", "pricing"}},
		{"an annotation that counts matters", x.putObject(configMap("common", "2", map[string]string{v1.AnnotationIgnore: "true"}), noon), []string{"mail", "pricing"}},
		{"an object that nobody consumes matters to nobody", x.putObject(configMap("other", "1", nil), noon), nil},
		{"a deletion matters", x.dropObject(configMap("prices", "", nil).Object, noon), []string{"pricing"}},
	} {
		if got := namesOf(step.ids); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
	}
}

func TestIndexFollowsATemplateThatChanges(t *testing.T) {
	x := newIndex()
	_, fresh := x.putWorkload(deployment, reads("pricing", 1, "old"))
	if len(fresh) != 1 {
		t.Errorf("the first consumer of an object makes it known: got %v", fresh)
	}
	if _, fresh = x.putWorkload(deployment, reads("mail", 1, "old")); fresh != nil {
		t.Errorf("the second one does not: got %v", fresh)
	}
	x.putWorkload(deployment, reads("pricing", 2, "new"))
	if got := namesOf(x.putObject(configMap("old", "1", nil), noon)); !slices.Equal(got, []string{"mail"}) {
		t.Errorf("a reference that is gone no longer counts: got %v", got)
	}
	id := ID{deployment.GroupVersionKind, types.NamespacedName{Namespace: "shop", Name: "mail"}}
	x.dropWorkload(id)
	if got := x.putObject(configMap("old", "2", nil), noon); got != nil {
		t.Errorf("a workload that is gone no longer counts: got %v", got)
	}
	if x.workload(id) != nil {
		t.Error("a workload that is gone is still known")
	}
}

func TestIndexKeepsWhatATemplateConsumesWhileOnlyStatusChanges(t *testing.T) {
	x := newIndex()
	id, _ := x.putWorkload(deployment, reads("pricing", 1, "prices"))
	before := x.workload(id)
	next := reads("pricing", 1, "prices")
	next.Status.Replicas = 3
	x.putWorkload(deployment, next)
	after := x.workload(id)
	if after.object != next || &after.uses[0] != &before.uses[0] {
		t.Error("a status change must replace the object and keep the consumption")
	}
}

func namespace(name string, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

func TestIndexTellsAsNewOnlyWhatNobodyConsumedBefore(t *testing.T) {
	x := newIndex()
	x.putWorkload(deployment, reads("pricing", 1, "prices", "common"))
	if _, fresh := x.putWorkload(deployment, reads("pricing", 2, "prices")); fresh != nil {
		t.Errorf("an object that its only reader goes on reading is not new: got %v", fresh)
	}
	if _, fresh := x.putWorkload(deployment, reads("pricing", 3, "prices", "common")); len(fresh) != 1 || fresh[0].Name != "common" {
		t.Errorf("one that nobody read in between is: got %v", fresh)
	}
}

func TestIndexKeepsNothingOfAnObjectThatIsGoneWithItsReaders(t *testing.T) {
	x := newIndex()
	id, _ := x.putWorkload(deployment, reads("pricing", 1, "prices"))
	d := configMap("prices", "1", nil)
	x.putObject(d, noon)
	x.dropObject(d.Object, noon.Add(time.Second))
	x.dropWorkload(id)
	if len(x.items) != 0 || len(x.readers) != 0 {
		t.Errorf("kept are %v and %v", x.items, x.readers)
	}
	if a := x.acquaintance(d.Object, noon, noon.Add(2*time.Second)); !a.since.Equal(noon.Add(time.Second)) {
		t.Errorf("it is absent since %s, want since its deletion", a.since)
	}
}

func TestIndexPausesByNamespace(t *testing.T) {
	x := newIndex()
	x.putWorkload(deployment, reads("pricing", 1))
	paused := map[string]string{v1.AnnotationPaused: v1.True, "unrelated": "x"}
	if got := namesOf(x.putNamespace(namespace("shop", paused), false)); !slices.Equal(got, []string{"pricing"}) {
		t.Errorf("a pause matters to the workloads of its namespace: got %v", got)
	}
	if got := x.putNamespace(namespace("shop", paused), false); got != nil {
		t.Errorf("the same again matters to nobody: got %v", got)
	}
	if got := x.putNamespace(namespace("elsewhere", paused), false); got != nil {
		t.Errorf("another namespace's pause does not: got %v", got)
	}
	if got := namesOf(x.putNamespace(namespace("tidemark-system", paused), true)); !slices.Equal(got, []string{"pricing"}) {
		t.Errorf("that of Tidemark's own namespace matters to all: got %v", got)
	}
}

func TestIndexRemembersWhenContentChanged(t *testing.T) {
	x := newIndex()
	d := configMap("prices", "1", nil)
	x.putWorkload(deployment, reads("pricing", 1, "prices"))
	x.putObject(d, noon)
	x.putObject(configMap("prices", "1", map[string]string{v1.AnnotationTreatAs: "live"}), noon.Add(time.Hour))
	if _, setting, changed := x.content(d.Object, nil); !changed.Equal(noon) || !setting.Live() {
		t.Errorf("an edit of metadata is no change of content: changed %s, setting %v", changed, setting)
	}
	x.dropObject(d.Object, noon.Add(2*time.Hour))
	content, _, changed := x.content(d.Object, nil)
	if content.Present || !changed.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("a deletion is one: present %t, changed %s", content.Present, changed)
	}
}
