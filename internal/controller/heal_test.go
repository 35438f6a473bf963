package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// stuck is a StatefulSet whose third pod, of an older revision, fails: its controller waits for it for ever.
type stuck struct {
	set  *appsv1.StatefulSet
	pods []*corev1.Pod
	view view
}

func newStuck() *stuck {
	yes, partition := true, int32(0)
	selected := map[string]string{"app": "web"}
	s := &stuck{
		set: &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 2},
			Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: selected}, PodManagementPolicy: appsv1.OrderedReadyPodManagement,
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
					Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition},
				},
			},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 2, UpdateRevision: "web-new"},
		},
		view: view{state: stamp.State{Mode: stamp.Pin}},
	}
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		s.pods = append(s.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: "web-old"},
				OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "u", Controller: &yes}},
			},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true}},
			},
		})
	}
	s.fails(2)
	return s
}

// stands makes a pod one that is not ready, with its container in the state.
func (s *stuck) stands(pod int, c corev1.ContainerStatus) {
	s.pods[pod].Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c}}
}

func (s *stuck) fails(pod int) { s.stands(pod, waits("CrashLoopBackOff")) }

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func (s *stuck) revision(pod int, name string) {
	s.pods[pod].Labels[appsv1.ControllerRevisionHashLabelKey] = name
}

// going makes a pod one that is on its way out.
func (s *stuck) going(pod int) {
	now := metav1.NewTime(noon)
	s.pods[pod].DeletionTimestamp, s.pods[pod].Finalizers = &now, []string{"example.com/slow"}
}

// healed looks at it once.
func (s *stuck) healed(t *testing.T, refusal error) (w *world, deleted []string, again time.Duration, err error) {
	t.Helper()
	w = newWorld(t, Options{})
	builder := fake.NewClientBuilder()
	for _, p := range s.pods {
		builder = builder.WithObjects(p.DeepCopy())
	}
	api := builder.WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(opts)
			if p := o.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil || *p.ResourceVersion != obj.GetResourceVersion() {
				t.Errorf("the deletion of %s does not ask for the pod that was looked at: %+v", obj.GetName(), p)
			}
			deleted = append(deleted, obj.GetName())
			return refusal
		},
	}).Build()
	w.client, w.reader = api, api
	id, _ := w.index.putWorkload(statefulSet, s.set)
	again, err = w.heal(t.Context(), w.index.workload(id), s.view)
	return w, deleted, again, err
}

var statefulSet = cluster.BuiltinKinds()[1]

func TestAStatefulSetIsFreedOfThePodInItsWay(t *testing.T) {
	const soon, never = healEvery, time.Duration(0)
	for name, tc := range map[string]struct {
		change  func(*stuck)
		deleted []string
		again   time.Duration
	}{
		"an older pod fails": {func(*stuck) {}, []string{"web-2"}, soon},
		"defaults are not filled in": {func(s *stuck) {
			s.set.Spec.PodManagementPolicy, s.set.Spec.UpdateStrategy = "", appsv1.StatefulSetUpdateStrategy{}
		}, []string{"web-2"}, soon},
		"two fail, and one goes at a time": {func(s *stuck) { s.fails(1) }, []string{"web-1"}, soon},
		"another one is still going":       {func(s *stuck) { s.fails(1); s.going(1) }, nil, soon},
		"it is going already":              {func(s *stuck) { s.going(2) }, nil, soon},
		"its configuration cannot be made": {func(s *stuck) { s.stands(2, waits("CreateContainerConfigError")) }, []string{"web-2"}, soon},
		"it ends again and again":          {func(s *stuck) { s.stands(2, corev1.ContainerStatus{RestartCount: 2}) }, []string{"web-2"}, soon},
		"its init container fails": {func(s *stuck) {
			s.stands(2, waits("PodInitializing"))
			s.pods[2].Status.InitContainerStatuses = []corev1.ContainerStatus{waits("CrashLoopBackOff")}
		}, []string{"web-2"}, soon},
		"it ended now and then in its long life, and runs": {func(s *stuck) {
			s.stands(2, corev1.ContainerStatus{RestartCount: 5, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
		}, nil, soon},
		"one after it is still going": {func(s *stuck) { s.fails(1); s.going(2) }, nil, soon},
		"the newest after it is starting": {func(s *stuck) {
			s.fails(1)
			s.stands(2, waits("ContainerCreating"))
			s.revision(2, "web-new")
		}, nil, soon},
		"it is merely not ready":              {func(s *stuck) { s.stands(2, corev1.ContainerStatus{RestartCount: 1}) }, nil, soon},
		"it is being pulled":                  {func(s *stuck) { s.stands(2, waits("ContainerCreating")) }, nil, soon},
		"it is being initialised":             {func(s *stuck) { s.stands(2, waits("PodInitializing")) }, nil, soon},
		"it is of the newest revision":        {func(s *stuck) { s.revision(2, "web-new") }, nil, soon},
		"one before it is not ready yet":      {func(s *stuck) { s.stands(0, corev1.ContainerStatus{}) }, nil, soon},
		"the newest before it fails":          {func(s *stuck) { s.fails(1); s.revision(1, "web-new") }, nil, soon},
		"it is below the partition":           {func(s *stuck) { *s.set.Spec.UpdateStrategy.RollingUpdate.Partition = 3 }, nil, soon},
		"it is the first above the partition": {func(s *stuck) { *s.set.Spec.UpdateStrategy.RollingUpdate.Partition = 2 }, []string{"web-2"}, soon},
		"its ordinals begin at one, and so does the partition": {func(s *stuck) {
			s.set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1}
			*s.set.Spec.UpdateStrategy.RollingUpdate.Partition = 2
		}, nil, soon},
		"it is another controller's":          {func(s *stuck) { s.pods[2].OwnerReferences[0].UID = "another" }, nil, soon},
		"pods are managed in parallel":        {func(s *stuck) { s.set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }, nil, never},
		"pods are replaced by hand":           {func(s *stuck) { s.set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, nil, never},
		"its controller has not looked yet":   {func(s *stuck) { s.set.Generation = 3 }, nil, never},
		"every pod is of the newest revision": {func(s *stuck) { s.set.Status.UpdatedReplicas = 3 }, nil, never},
		"every pod is ready":                  {func(s *stuck) { s.set.Status.ReadyReplicas = 3 }, nil, never},
		"Tidemark is paused":                  {func(s *stuck) { s.view.paused = "everywhere" }, nil, never},
		"the workload is not in mode pin":     {func(s *stuck) { s.view.state.Mode = stamp.Roll }, nil, never},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStuck()
			tc.change(s)
			w, deleted, again, err := s.healed(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.deleted, deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if again != tc.again {
				t.Errorf("it looks again in %v, want %v", again, tc.again)
			}
			var told []string
			for _, pod := range deleted {
				told = append(told, "PodDeleted: pod "+pod)
			}
			if len(*w.notes) != len(told) || len(told) > 0 && !strings.HasPrefix((*w.notes)[0], told[0]) {
				t.Errorf("events %q, want %q", *w.notes, told)
			}
		})
	}
}

func TestAPodInTheWayThatMayNotBeDeletedIsSaid(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		refusal error
		fails   bool
	}{
		"it changed meanwhile": {apierrors.NewConflict(pods, "web-2", nil), false},
		"it is gone meanwhile": {apierrors.NewNotFound(pods, "web-2"), false},
		"the right is missing": {apierrors.NewForbidden(pods, "web-2", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, again, err := newStuck().healed(t, tc.refusal)
			if (err != nil) != tc.fails || !tc.fails && again != healEvery {
				t.Errorf("it looks again in %v, %v", again, err)
			}
			if said := strings.Join(*w.notes, "\n"); strings.Contains(said, "WriteRefused") != tc.fails || strings.Contains(said, "PodDeleted") {
				t.Errorf("events %q", said)
			}
		})
	}
}
