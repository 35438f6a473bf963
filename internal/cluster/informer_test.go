package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestAnInformerTellsWhatTheAPIAnswersToListsAndWatches(t *testing.T) {
	machines := schema.GroupResource{Group: "example.com", Resource: "machines"}
	for name, tc := range map[string]struct {
		answer error
		want   string // for the list and for the watch alike; "" for nothing
	}{
		"granted": {nil, "granted"},
		"the right is missing": {apierrors.NewForbidden(machines, "", errors.New("no")),
			"missing the right to list, watch machines.example.com in all namespaces: grant it to Tidemark's service account with a ClusterRole",
		},
		"the definition is gone": {apierrors.NewNotFound(machines, ""),
			"kind Deployment of apps/v1 is not served by this cluster: install its definition, or correct or drop --kind",
		},
		"the API has no time":     {apierrors.NewTooManyRequestsError("later"), ""},
		"the API does not answer": {errors.New("connection refused"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			informers := Informers{Scheme: clientgoscheme.Scheme, Fared: func(gvk schema.GroupVersionKind, err error) {
				text := "granted"
				if err != nil {
					text = err.Error()
				}
				if gvk != appsv1.SchemeGroupVersion.WithKind("Deployment") {
					t.Errorf("told of %s", gvk)
				}
				told = append(told, text)
			}}
			lw := &toolscache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &appsv1.DeploymentList{}, tc.answer
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), tc.answer },
			}
			informers.New(lw, &appsv1.Deployment{}, time.Hour, nil)
			_, listErr := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{})
			_, watchErr := lw.WatchFuncWithContext(t.Context(), metav1.ListOptions{})
			if !errors.Is(listErr, tc.answer) || !errors.Is(watchErr, tc.answer) {
				t.Errorf("the informer got %v and %v, want the API's answer", listErr, watchErr)
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want, tc.want}
			}
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		})
	}
}
