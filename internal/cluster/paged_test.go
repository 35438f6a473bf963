package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// paged answers lists page by page, as an API server does, and counts them by kind.
type paged struct {
	client.Client
	t     *testing.T
	items map[string][]runtime.Object
	lists map[string]int
	most  map[string]int
	gets  int
}

func (p *paged) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	p.gets++
	return p.Client.Get(ctx, key, obj, opts...)
}

func (p *paged) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(list, scheme.Scheme)
	if err != nil {
		return err
	}
	if o.Limit <= 0 || o.Limit > PageSize {
		p.t.Errorf("a list of %s asks for %d at once", gvk.Kind, o.Limit)
	}
	at, _ := strconv.Atoi(o.Continue)
	if o.Continue == "" {
		p.lists[gvk.Kind]++
		if err := p.Client.List(ctx, list, opts...); err != nil {
			return err
		}
		if p.items[gvk.Kind], err = meta.ExtractList(list); err != nil {
			return err
		}
	}
	all := p.items[gvk.Kind]
	end := min(at+int(o.Limit), len(all))
	p.most[gvk.Kind] = max(p.most[gvk.Kind], end-at)
	if err := meta.SetList(list, all[at:end]); err != nil {
		return err
	}
	list.SetContinue("")
	if end < len(all) {
		list.SetContinue(strconv.Itoa(end))
	}
	return nil
}

// largeCluster has workloads of five pods each, and nothing of Tidemark's.
func largeCluster(workloads int) client.Client {
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for i := range workloads {
		ns, name := fmt.Sprintf("team-%d", i%10), fmt.Sprintf("app-%d", i)
		labels := map[string]string{"app": name}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
		}}}}
		metaOf := func(kind, name string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(kind + "/" + name), Labels: labels, OwnerReferences: owner}
		}
		by := func(kind, name string) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: ptr.To(true)}
		}
		set := name + "-1"
		builder.WithObjects(
			&corev1.ConfigMap{ObjectMeta: metaOf("ConfigMap", name), Data: map[string]string{"KEY": "1"}},
			&appsv1.Deployment{ObjectMeta: metaOf("Deployment", name), Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](5), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			}},
			&appsv1.ReplicaSet{ObjectMeta: metaOf("ReplicaSet", set, by("Deployment", name))},
		)
		for j := range 5 {
			pod := &corev1.Pod{ObjectMeta: metaOf("Pod", fmt.Sprintf("%s-%d", set, j), by("ReplicaSet", set)), Spec: template.Spec}
			pod.Status.Phase = corev1.PodRunning
			builder.WithObjects(pod)
		}
	}
	return builder.Build()
}

func TestALargeClusterIsReadByOneListOfEachKind(t *testing.T) {
	for _, workloads := range []int{250, 1000} {
		t.Run(fmt.Sprint(workloads, " workloads"), func(t *testing.T) {
			p := &paged{Client: largeCluster(workloads), t: t, items: map[string][]runtime.Object{}, lists: map[string]int{}, most: map[string]int{}}
			s := survey(p)
			s.Namespace = ""
			sight := read(t, s)
			pods := 0
			for _, w := range sight.Workloads {
				pods += len(w.Fleet.Pods)
			}
			if len(sight.Workloads) != workloads || pods != 5*workloads {
				t.Fatalf("saw %d workloads with %d pods", len(sight.Workloads), pods)
			}
			for kind, n := range p.lists {
				// What nothing was found of by Tidemark's label is the history.
				if want := map[bool]int{true: 2, false: 1}[kind == "ConfigMapList"]; n != want {
					t.Errorf("%d lists of %s, want %d", n, kind, want)
				}
				if strings.HasPrefix(kind, "Secret") {
					t.Errorf("Secrets are listed although nothing reads them")
				}
			}
			if p.lists["PodList"] != 1 || p.lists["DeploymentList"] != 1 {
				t.Errorf("lists: %v", p.lists)
			}
			if p.gets > 3 {
				t.Errorf("%d single reads", p.gets)
			}
			t.Logf("lists %v, the largest pages %v, %d single reads", p.lists, p.most, p.gets)
		})
	}
}
