package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/deploy/policy"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/lab/client"
)

var pinPolicy = benchmark{
	name: "pin-policy", title: "Admission: pods created with pins, by the policies of `deploy/policy`",
	lab: client.Options{NoNodes: true},
	run: runPinPolicy,
}

// Namespaces, in each of which other policies are in force.
const (
	unruled   = "no-policy"
	ruled     = "policy"
	thrice    = "three-mutations"
	least     = "least" // one that does next to nothing to pods with pins
	writes    = 300     // of each kind, in each namespace, a round
	pinSuffix = "-x7k2m9abcd"
	touched   = "touched" // the annotation that the policy of least adds
)

// write is something that is timed in several namespaces in turns.
type write struct {
	name       string
	namespaces []string
	do         func(ctx context.Context, namespace string, i int) error

	times map[string]spread
}

func runPinPolicy(ctx context.Context, s *site) (report, error) {
	if err := s.rule(ctx); err != nil {
		return report{}, err
	}
	pinned := []string{unruled, ruled, thrice, least}
	all := []*write{
		{name: "pod without pins", namespaces: pinned, do: s.creation(withReferences(1, 3, 3, false))},
		{name: "pod with pins, 3 references", namespaces: pinned, do: s.creation(withReferences(1, 3, 3, true))},
		{name: "pod with pins, 50 references", namespaces: pinned, do: s.creation(withReferences(2, 50, 8, true))},
		{name: "edit of a ConfigMap that is no snapshot", namespaces: []string{unruled, ruled}, do: s.touch},
	}
	for round := range s.rounds {
		for _, w := range all {
			if err := w.inTurns(ctx, round); err != nil {
				return report{}, err
			}
			if err := s.clear(ctx, w.namespaces); err != nil {
				return report{}, err
			}
		}
		s.say("round %d of %d", round+1, s.rounds)
	}
	return ruledReport(all, s.rounds), nil
}

// policiesOf are the policies of each namespace, for people.
var policiesOf = map[string]string{
	unruled: "no policy", ruled: "as shipped", thrice: "the same in three mutations", least: "one that adds an annotation, without a variable",
}

func ruledReport(all []*write, rounds int) report {
	rep := report{}
	var rows [][]string
	for _, w := range all {
		base := w.times[unruled]
		for _, ns := range w.namespaces {
			row := []string{w.name, policiesOf[ns]}
			for _, at := range []float64{0.50, 0.95, 0.99} {
				cell := fmt.Sprintf("%.2f ms", 1000*w.times[ns].at(at))
				if ns != unruled {
					cell += fmt.Sprintf(" (%+.2f)", 1000*(w.times[ns].at(at)-base.at(at)))
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
	}
	rep.table([]string{"write", "policies", "p50", "p95", "p99"}, rows...)
	rep.text("Of %s writes each, one at a time, by turns; in brackets what the policy adds.", grouped(writes*rounds))
	return rep
}

// inTurns makes the write in each namespace, then once more, beginning with another one each time.
func (w *write) inTurns(ctx context.Context, round int) error {
	if w.times == nil {
		w.times = map[string]spread{}
	}
	for i := range writes {
		for k := range w.namespaces {
			ns := w.namespaces[(i+k)%len(w.namespaces)]
			begin := time.Now()
			if err := w.do(ctx, ns, round*writes+i); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			took := w.times[ns]
			took.add(time.Since(begin))
			w.times[ns] = took
		}
	}
	return nil
}

// at is the figure below which the part of all figures lies.
func (s spread) at(part float64) float64 {
	sorted := s.sorted()
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// rule puts the policies into force, each in a namespace, and returns when they are.
func (s *site) rule(ctx context.Context) error {
	for _, ns := range []string{unruled, ruled, thrice, least} {
		if err := s.namespace(ctx, ns, ""); err != nil {
			return err
		}
	}
	for _, file := range []string{"rewriting/pin.yaml", "protection/snapshots.yaml", "protection/absent.yaml"} {
		if err := s.ruleBy(ctx, file); err != nil {
			return fmt.Errorf("policies of %s: %w", file, err)
		}
	}
	if err := s.configMaps(ctx, unruled, 1, 400, shared); err != nil {
		return err
	}
	if err := s.configMaps(ctx, ruled, 1, 400, shared); err != nil {
		return err
	}
	for _, ns := range []string{unruled, ruled, thrice, least} {
		if err := s.untilRuled(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

// ruleBy makes the policy of a file, bound to one namespace in place of all, and of the one on pods a second one.
func (s *site) ruleBy(ctx context.Context, file string) error {
	content, err := fs.ReadFile(policy.FS, file)
	if err != nil {
		return err
	}
	document, _, _ := strings.Cut(string(content), "\n---\n")
	only := func(ns string) *admissionregistrationv1.MatchResources {
		return &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}}
	}
	if strings.HasPrefix(file, "protection/") {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), p); err != nil {
			return err
		}
		return errOf(s.api.Create(ctx, p), s.api.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: p.Name, MatchResources: only(ruled),
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}))
	}
	for _, ns := range []string{ruled, thrice, least} {
		p := &admissionregistrationv1.MutatingAdmissionPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), p); err != nil {
			return err
		}
		switch p.Name = ns; ns {
		case thrice:
			p.Spec.Mutations = mutationsOf("variables.envFromEdits", "variables.envEdits", "variables.volumeEdits + variables.projectedEdits")
		case least:
			p.Spec.Variables = nil
			p.Spec.Mutations = []admissionregistrationv1.Mutation{patched("[JSONPatch{op: 'add', path: '/metadata/annotations/" + touched + "', value: 'yes'}]")}
		}
		err := errOf(s.api.Create(ctx, p), s.api.Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ns, MatchResources: only(ns)},
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

func mutationsOf(edits ...string) []admissionregistrationv1.Mutation {
	var out []admissionregistrationv1.Mutation
	for _, e := range edits {
		out = append(out, patched(fmt.Sprintf("(%s).map(e, JSONPatch{op: 'replace', path: e[0], value: e[1]})", e)))
	}
	return out
}

// patched is a mutation by the JSON patch that an expression gives.
func patched(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
	}
}

// untilRuled waits until the policy of the namespace, if it has one, does to a pod with pins what it should.
func (s *site) untilRuled(ctx context.Context, namespace string) error {
	for {
		pod := withReferences(1, 3, 3, true)
		pod.Name = "tried"
		made, err := s.bare.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil && asRuled(namespace, made):
			return nil
		case err != nil && !apierrors.IsForbidden(err): // which it is while the namespace has no service account
			return err
		}
		if waitErr := wait(ctx, 100*time.Millisecond); waitErr != nil {
			return fmt.Errorf("wait for the policy in %s: %w, %w", namespace, waitErr, err)
		}
	}
}

// asRuled reports whether a pod with pins went through the policy of its namespace.
func asRuled(namespace string, pod *corev1.Pod) bool {
	switch namespace {
	case unruled:
		return !rewritten(pod)
	case least:
		return pod.Annotations[touched] != ""
	}
	return rewritten(pod)
}

// rewritten reports whether a pod reads what its pins say.
func rewritten(pod *corev1.Pod) bool {
	pins, err := snapshot.ParsePins(pod.Namespace, pod.Annotations[v1.AnnotationPins])
	return err == nil && len(rewrite.Mismatches(pod, pins)) == 0
}

// creation makes pods.
func (s *site) creation(pod *corev1.Pod) func(context.Context, string, int) error {
	return func(ctx context.Context, namespace string, i int) error {
		pod.Name = numbered(i)
		_, err := s.bare.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
}

// touch edits a ConfigMap.
func (s *site) touch(ctx context.Context, namespace string, i int) error {
	patch := fmt.Sprintf(`{"data":{"generation":"%d"}}`, i)
	_, err := s.bare.CoreV1().ConfigMaps(namespace).Patch(ctx, shared(0), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// clear holds all pods to their pins, and removes them.
func (s *site) clear(ctx context.Context, namespaces []string) error {
	for _, ns := range namespaces {
		pods, err := s.bare.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			s.want(pod.Annotations[v1.AnnotationPins] == "" || asRuled(ns, pod), "pod %s of %s is not as its policy makes it", pod.Name, ns)
		}
		if err := s.api.DeleteAllOf(ctx, &corev1.Pod{}, ctrlclient.InNamespace(ns), ctrlclient.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return wait(ctx, time.Second) // for what the control plane does about it
}

// withReferences is a pod with so many references to so many objects, in every way. No scheduler looks at it.
func withReferences(containers, references, objects int, pinned bool) *corev1.Pod {
	name := func(i int) string { return fmt.Sprintf("settings-%d", i%objects) }
	local := func(i int) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name(i)} }
	pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: "nobody"}}
	if pinned {
		var pins []string
		for i := range objects {
			pins = append(pins, "configmap/"+name(i)+"="+name(i)+pinSuffix)
		}
		pod.Annotations = map[string]string{v1.AnnotationPins: strings.Join(pins, ",")}
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local(0)},
	}}}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: "example.org/sample:1",
			VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: "/files"}},
			EnvFrom:      []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local(1 + i)}}},
		})
	}
	for i := range references - 1 - containers {
		c := &pod.Spec.Containers[i%containers]
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("E", i), ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(2 + i), Key: "key"},
		}})
	}
	return pod
}
