package acceptance

import (
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// pinWatch sees every pod and every copy of the scene, however short it is there.
type pinWatch struct {
	mu sync.Mutex
	// copies are the contents of all copies that were ever there; names are theirs by source and content.
	copies map[workload.Object]map[string]string
	names  map[string]string
	// pods are all that were ever there, by UID.
	pods map[string]seenPod
	// wrong is what was seen that must not be.
	wrong []string
}

type seenPod struct {
	revision string
	pins     snapshot.Pins
}

// watchPins begins to watch. It ends with the test.
func watchPins(s *scene) *pinWatch {
	s.t.Helper()
	p := &pinWatch{copies: map[workload.Object]map[string]string{}, names: map[string]string{}, pods: map[string]seenPod{}}
	watched, err := cache.New(s.Lab.RESTConfig(), cache.Options{
		Scheme: s.API.Scheme(), DefaultNamespaces: map[string]cache.Config{s.Namespace: {}},
	})
	s.must(err)
	ctx := s.t.Context()
	for _, object := range []ctrlclient.Object{&corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Secret{}} {
		informer, err := watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		s.must(err)
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: p.see, UpdateFunc: func(_, now any) { p.see(now) },
		})
		s.must(err)
	}
	go func() {
		if err := watched.Start(ctx); err != nil {
			p.note("the watch of pods and copies: %v", err)
		}
	}()
	if !watched.WaitForCacheSync(ctx) {
		s.t.Fatal("the watch of pods and copies does not begin")
	}
	return p
}

func (p *pinWatch) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func (p *pinWatch) see(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		p.seePod(o)
	case *corev1.ConfigMap:
		p.seeCopy(workload.ConfigMap, o, o.Data)
	case *corev1.Secret:
		data := map[string]string{}
		for key, value := range o.Data {
			data[key] = string(value)
		}
		p.seeCopy(workload.Secret, o, data)
	}
}

func (p *pinWatch) seePod(pod *corev1.Pod) {
	pins, err := snapshot.ParsePins(pod.Namespace, pod.Annotations[v1.AnnotationPins])
	if err != nil {
		p.note("pod %s: %v", pod.Name, err)
		return
	}
	var revision string
	for _, label := range []string{
		"app", appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, "rollouts-pod-template-hash", batchv1.JobNameLabel,
	} {
		revision += " " + pod.Labels[label]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods[string(pod.UID)] = seenPod{revision: revision, pins: pins}
}

// seeCopy notes a copy. A second one of the same content serves nobody.
func (p *pinWatch) seeCopy(kind workload.ObjectKind, object ctrlclient.Object, data map[string]string) {
	c, ok := snapshot.Read(kind, object)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copies[c.Object] = data
	content := fmt.Sprint(c.Source, data)
	if before, there := p.names[content]; there && before != c.Object.Name {
		p.wrong = append(p.wrong, fmt.Sprintf("%s is copied as %s and as %s, with the same content", c.Source, before, c.Object.Name))
	}
	p.names[content] = c.Object.Name
}

// pod is one that was seen; false when it was not, so far.
func (p *pinWatch) pod(uid string) (seenPod, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, seen := p.pods[uid]
	return pod, seen
}

// copied is the content of the copy of an object with that name: nothing of one that is pinned as absent. It is false when the copy
// was not seen, so far.
func (p *pinWatch) copied(o workload.Object, name string) (map[string]string, bool) {
	if name == v1.AbsentName {
		return nil, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	data, seen := p.copies[workload.Object{Kind: o.Kind, Namespace: o.Namespace, Name: name}]
	return data, seen
}

// faults are what was seen that must not be.
func (p *pinWatch) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.wrong)
}

// counted is how many copies were seen.
func (p *pinWatch) counted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.copies)
}
