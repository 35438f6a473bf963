package cluster

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

func TestUsersOfAnObjectAreFoundInAllNamespaces(t *testing.T) {
	deployment := func(namespace, name, annotation string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{v1.AnnotationExtraConfigMaps: annotation}},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}},
		}
	}
	settings := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "settings"}
	const noneElsewhere = "which of other namespaces use what is given, by annotations that name it with its namespace, is unknown"
	for name, tc := range map[string]struct {
		// refused are the namespaces of which Deployments may not be listed; "" is all at once.
		refused        []string
		found, remarks []string
	}{
		"all may be listed": {nil, []string{"office/report", "shop/web"}, nil},
		"only the object's own may": {
			[]string{""}, []string{"shop/web"}, []string{"missing the right to list deployments in all namespaces: " + noneElsewhere},
		},
		"none may": {
			[]string{"", "shop"}, nil, []string{"missing the right to list deployments in namespace shop: which of them use what is given is unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(
				deployment("shop", "web", "settings"), deployment("office", "report", "shop/settings"),
				deployment("office", "other", "settings"), // the one of its own namespace
			).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					asked := (&client.ListOptions{}).ApplyOptions(opts).Namespace
					for _, ns := range tc.refused {
						if _, is := list.(*appsv1.DeploymentList); is && ns == asked {
							return apierrors.NewForbidden(appsv1.Resource("deployments"), "", nil)
						}
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			targets, remarks, err := Using(t.Context(), c, BuiltinKinds()[:3], []string{"shop"}, func(o workload.Object) bool { return o == settings })
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range targets {
				found = append(found, f.Namespace+"/"+f.Name)
			}
			if diff := cmp.Diff(tc.found, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remarks, remarks); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
		})
	}
}
