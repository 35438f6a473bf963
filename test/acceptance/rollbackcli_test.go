package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
	"tidemark.dev/tidemark/internal/revision"
)

// said is what a call of the command line gave.
type said struct {
	code        int
	out, errOut string
}

// call runs the command line in the scene's namespace.
func (s *scene) call(args ...string) said {
	s.t.Helper()
	return s.callIn(nil, args...)
}

// callIn is call in an environment; nil is that of the process.
func (s *scene) callIn(getenv func(string) string, args ...string) said {
	s.t.Helper()
	out, errOut := &safeBuffer{}, &safeBuffer{}
	code := s.callTo(out, errOut, getenv, args...)
	return said{code, out.String(), errOut.String()}
}

// callTo is callIn whose output can be read while it runs.
func (s *scene) callTo(out, errOut *safeBuffer, getenv func(string) string, args ...string) (code int) {
	return cli.Run(s.t.Context(), cli.Config{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, Clock: clock.RealClock{}, Getenv: getenv,
	}, append(args, "-n", s.Namespace, "--kubeconfig", s.Lab.Kubeconfig(), "--cache-dir", filepath.Join(s.Lab.Status().Directory, "tidemark")))
}

// does fails the test unless the command line succeeds, and what it says holds the texts.
func (s *scene) does(call string, want ...string) said {
	s.t.Helper()
	got := s.call(strings.Fields(call)...)
	if got.code != 0 {
		s.t.Fatalf("tidemark %s: exit status %d\n%s%s", call, got.code, got.out, got.errOut)
	}
	s.holdsAll(call, got, want)
	return got
}

// fails is does for a call that must end with exit status 2.
func (s *scene) fails(call string, want ...string) {
	s.t.Helper()
	got := s.call(strings.Fields(call)...)
	if got.code != 2 {
		s.t.Errorf("tidemark %s: exit status %d, want 2\n%s%s", call, got.code, got.out, got.errOut)
	}
	s.holdsAll(call, got, want)
}

func (s *scene) holdsAll(call string, got said, want []string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(got.out+got.errOut, w) {
			s.t.Errorf("tidemark %s: want %q in\n%s%s", call, w, got.out, got.errOut)
		}
	}
}

// completes fails the test unless what comes next on the command line is offered with the text.
func (s *scene) completes(want, verb string, args ...string) {
	s.t.Helper()
	out := &safeBuffer{}
	call := append([]string{"__complete", verb, "-n", s.Namespace, "--kubeconfig", s.Lab.Kubeconfig(), "--cache-dir", s.t.TempDir()}, args...)
	cli.Run(s.t.Context(), cli.Config{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &safeBuffer{}}, Clock: clock.RealClock{},
	}, call)
	if !strings.Contains(out.String(), want) {
		s.t.Errorf("tidemark %s %q is completed by %q, want %q", verb, args, out, want)
	}
}

// listed reads what `tidemark history` lists.
func (s *scene) listed(workload string) []v1.Revision {
	s.t.Helper()
	list := v1.RevisionList{}
	s.must(json.Unmarshal([]byte(s.does("history "+workload+" -o json").out), &list))
	return list.Items
}

// copies are hand-made: MODE is one in the first and two in the second, which is what is applied.
const copies = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {MODE: two}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-first
  labels: {tidemark.dev/snapshot: "true"}
  annotations: {tidemark.dev/snapshot-of: configmap/web, tidemark.dev/snapshot-revision: "1"}
immutable: true
data: {MODE: one}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-second
  labels: {tidemark.dev/snapshot: "true"}
  annotations: {tidemark.dev/snapshot-of: configmap/web, tidemark.dev/snapshot-revision: "2"}
immutable: true
data: {MODE: two}
`

// release applies a workload with an image, pinned to a copy.
func (s *scene) release(object, image, pin string, pods int, pod ...string) {
	s.t.Helper()
	s.apply(pinnedTo(pin, program(object, pods, ofImage(image), pod...)))
}

// ofImage is the container that reads web, of an image.
func ofImage(tag string) string {
	return strings.Replace(readsWeb, "image: tidemark-sample", "image: tidemark-sample:"+tag, 1)
}

func pinnedTo(pin, manifest string) string {
	return strings.Replace(manifest, "    metadata: {labels: {app: web}}",
		"    metadata: {labels: {app: web}, annotations: {"+v1.AnnotationPins+": configmap/web="+pin+"}}", 1)
}

// noNode makes a template of which no pod ever runs.
const noNode = "nodeSelector: {no: node}"

// noted notes the present revision as one of which a pod was available, as the controller does.
func (s *scene) noted(object string) {
	s.t.Helper()
	pods := &corev1.PodList{}
	s.must(s.API.List(s.t.Context(), pods, ctrlclient.InNamespace(s.Namespace), ctrlclient.MatchingLabels{"app": "web"}))
	var hash string
	for _, label := range []string{"pod-template-hash", "controller-revision-hash"} {
		if value := pods.Items[0].Labels[label]; value != "" {
			hash = value
		}
	}
	value, _ := revision.Note(s.get(object).GetAnnotations()[v1.AnnotationSeenAvailable], hash)
	s.kubectl("annotate", object, v1.AnnotationSeenAvailable+"="+value)
}

// openQuiet makes a namespace on the shared lab in which no Tidemark acts.
func openQuiet(t *testing.T, namespace string) *scene {
	t.Helper()
	turn(t)
	return venue{t, shared.lab}.open(namespace, v1.ModeObserve)
}

// imageAndPin are those of a workload's template.
func (s *scene) imageAndPin(object string) string {
	s.t.Helper()
	u := s.get(object)
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	s.must(err)
	container, _ := containers[0].(map[string]any)
	pins, _, err := unstructured.NestedString(u.Object, "spec", "template", "metadata", "annotations", v1.AnnotationPins)
	s.must(err)
	return fmt.Sprint(container["image"], " ", pins)
}

func TestTheCommandLineRollsBackPastTheRevisionInBetween(t *testing.T) {
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		t.Run(kind, func(t *testing.T) {
			s := openQuiet(t, "rollback-cli-"+kind)
			web := kind + "/web"
			const pods = 4 // a DaemonSet has one on each node
			s.apply(copies)
			s.release(web, "1", "web-first", pods)
			s.rolledOut(web)
			s.noted(web)
			s.release(web, "2", "web-first", pods, noNode)
			s.revisionsAre(web, 2)
			s.release(web, "2", "web-second", pods)
			if kind == "statefulset" {
				s.eventually("the pod in between to go", func() error { return s.replaceStuck() })
			}
			s.rolledOut(web)

			// Probes make a pod unready now and then on a busy machine, also once the rollout is done.
			s.eventually("history to list the three revisions", func() error {
				list := s.listed(web)
				if len(list) != 3 || list[0].Available != "available" || list[1].Available != "unknown" || !list[2].Current ||
					list[0].Reach != "in-full" || list[2].Pods == nil || list[2].Pods.Available != pods || list[2].Configuration[0].CopyRevision != 2 {
					return fmt.Errorf("it lists %+v", list)
				}
				return nil
			})
			s.does("diff "+web, "from revision 1 to revision 3 (current)", "tidemark-sample:1 → tidemark-sample:2", `MODE: "one" → "two"`)
			if got := s.call("diff", web, "current", "applied", "--exit-code"); got.code != 0 || !strings.Contains(got.out, "no difference") {
				t.Errorf("what is applied against the current revision: %+v", got)
			}

			before := s.get(web).GetAnnotations()
			s.does("rollback "+web+" --dry-run=client", "is rolled back to revision 1 (client dry run)")
			s.does("rollback "+web+" --dry-run", "is rolled back to revision 1 (server dry run)")
			if now := s.imageAndPin(web); now != "tidemark-sample:2 configmap/web=web-second" {
				t.Errorf("after dry runs it has %s", now)
			}
			document := v1.Rollback{}
			s.must(json.Unmarshal([]byte(s.does("rollback "+web+" --dry-run -o json").out), &document))
			if document.DryRun != "server" || document.To.Revision != 1 || document.From == nil || document.From.Revision != 3 || len(document.Remarks) == 0 {
				t.Errorf("the document of a dry run is %+v", document)
			}
			s.does("rollback "+web+" --wait", "revision 2 is passed over", "image of app: tidemark-sample:2 → tidemark-sample:1",
				"configmap/web: copy web-second (2) → copy web-first (1)", "is rolled out: 4 of 4 pods are updated, 4 available")
			if now := s.imageAndPin(web); now != "tidemark-sample:1 configmap/web=web-first" {
				t.Errorf("after the rollback it has %s", now)
			}
			after := s.get(web).GetAnnotations()
			delete(before, "deployment.kubernetes.io/revision")
			delete(after, "deployment.kubernetes.io/revision")
			delete(before, "deprecated.daemonset.template.generation")
			delete(after, "deprecated.daemonset.template.generation")
			if !maps.Equal(before, after) {
				t.Errorf("annotations %v, want them as before: %v", after, before)
			}
			s.revisionsAre(web, 3)

			list := s.listed(web)
			if last := list[2]; !last.Current || last.Revision != 4 || last.Images[0].Image != "tidemark-sample:1" {
				t.Errorf("after the rollback the history ends with %+v", last)
			}
			s.does("rollback "+web+" --to-revision 4", "is at revision 4 already: nothing to do")
			s.does("rollback "+web+" --to-revision 4 --restore-source", "nothing to do", "configmap/web has the content of its copy web-first again")
			if data := s.data("web"); !maps.Equal(data, map[string]string{"MODE": "one"}) {
				t.Errorf("the source holds %v", data)
			}
		})
	}
}

// replaceStuck deletes the pods that no node takes; a StatefulSet with OrderedReady waits for them for ever.
func (s *scene) replaceStuck() error {
	pods := &corev1.PodList{}
	if err := s.API.List(s.t.Context(), pods, ctrlclient.InNamespace(s.Namespace), ctrlclient.MatchingLabels{"app": "web"}); err != nil {
		return err
	}
	left := 0
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeSelector == nil {
			continue
		}
		left++
		if err := s.API.Delete(s.t.Context(), &pods.Items[i]); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if left > 0 {
		return fmt.Errorf("%d pods are left", left)
	}
	return nil
}

func (s *scene) data(configMap string) map[string]string {
	s.t.Helper()
	cm := &corev1.ConfigMap{}
	s.must(s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: configMap}, cm))
	return cm.Data
}

func TestARollbackGoesToTheRevisionThatStillServesWithNothingNoted(t *testing.T) {
	s := openQuiet(t, "rollback-cli-serving")
	const web = "deployment/web"
	s.apply(copies)
	s.release(web, "1", "web-first", 4)
	s.rolledOut(web)
	s.release(web, "2", "web-first", 4, noNode)
	s.revisionsAre(web, 2)
	s.release(web, "2", "web-second", 4, noNode)
	s.revisionsAre(web, 3)

	s.does("rollback "+web+" --wait", "revision 2 is passed over", "is rolled back to revision 1", "is rolled out")
	if now := s.imageAndPin(web); now != "tidemark-sample:1 configmap/web=web-first" {
		t.Errorf("after the rollback it has %s", now)
	}
}

func TestARollbackThatCannotBeIsRefused(t *testing.T) {
	s := openQuiet(t, "rollback-cli-refused")
	const web = "deployment/web"
	s.apply(copies + "---" + viewer)
	s.fails("rollback deployment/web", "deployment/web is not found")
	s.release(web, "1", "web-first", 1)
	s.rolledOut(web)
	s.fails("rollback "+web, "no other revision to go back to")
	s.fails("rollback "+web+" --to-revision 7", "there is no revision 7; there are 1")
	s.release(web, "2", "web-second", 1)
	s.rolledOut(web)
	template := s.imageAndPin(web)

	s.kubectl("rollout", "pause", web)
	s.fails("rollback "+web, "resume it first with `kubectl rollout resume deployment/web`")
	s.kubectl("rollout", "resume", web)
	s.kubectl("patch", "configmap", "web", "--type=merge", "-p", `{"immutable":true}`)
	s.fails("rollback "+web+" --restore-source", "configmap/web is immutable", "leave out --restore-source")
	s.fails("rollback "+web+" --as viewer", "forbidden")
	s.kubectl("delete", "configmap", "web-first")
	s.fails("rollback "+web, "configmap/web: its copy is gone (configmap/web-first does not exist)")
	s.does("history "+web, "no: configmap/web: its copy is gone")
	if now := s.imageAndPin(web); now != template {
		t.Errorf("the template was written: %s, before %s", now, template)
	}
}

// The writes of a rollback rest on it.
func TestAJSONPatchWithAnOldResourceVersionIsAConflict(t *testing.T) {
	s := openQuiet(t, "rollback-cli-conflict")
	s.apply(copies)
	old := s.get("configmap/web")
	s.set("web", "MODE", "three")
	body := fmt.Sprintf(`[{"op":"replace","path":"/metadata/resourceVersion","value":%q},{"op":"add","path":"/data","value":{"MODE":"one"}}]`, old.GetResourceVersion())
	err := s.API.Patch(t.Context(), old, ctrlclient.RawPatch(types.JSONPatchType, []byte(body)))
	if !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if data := s.data("web"); data["MODE"] != "three" {
		t.Errorf("it holds %v", data)
	}
}

func TestARollbackSaysWhyItsRolloutFails(t *testing.T) {
	s := openQuiet(t, "rollback-cli-failing")
	const web = "deployment/web"
	s.apply(copies)
	s.release(web, "1", "web-first", 1, noNode)
	s.revisionsAre(web, 1)
	s.release(web, "2", "web-second", 1)
	s.must(s.API.Patch(s.t.Context(), s.get(web), ctrlclient.RawPatch(types.MergePatchType, []byte(`{"spec":{"progressDeadlineSeconds":3}}`))))
	s.rolledOut(web)

	s.fails("rollback "+web+" --wait", "nothing shows that a pod of revision 1 was ever available", "pod web-", "Unschedulable",
		"is rolled back, but its rollout failed", "has timed out progressing")
}

func TestAWorkloadThatIsNotPinnedIsRolledBackAndTold(t *testing.T) {
	s := openQuiet(t, "rollback-cli-unpinned")
	const web = "statefulset/web"
	s.apply(webConfig + program(web, 1, readsWeb))
	s.rolledOut(web)
	s.kubectl("set", "env", web, "EXTRA=1")
	s.rolledOut(web)
	s.does("history "+web, "configmap/web@applied", "not pinned: reads what is applied")
	s.does("diff "+web, "spec.containers[app].env[EXTRA].value", "<none> → 1")
	if got := s.call("diff", web, "--exit-code"); got.code != 1 {
		t.Errorf("exit status %d, want 1", got.code)
	}
	s.completes(web, "history", "")
	s.completes("1\ttidemark-sample, ", "diff", web, "")
	s.completes("applied", "diff", "statefulset", "web", "1", "")
	s.completes("2\ttidemark-sample, ", "rollback", web, "--to-revision", "")
	s.does("rollback "+web+" --wait", "revision 1 does not pin configmap/web, so its pods read what is applied")
	s.revisionsAre(web, 2)
}

// With the controller of mode pin the old content that comes back is what the pins hold, so nothing rolls a second time.
func TestARollbackWithItsSourcesRollsOnce(t *testing.T) {
	turn(t)
	s := openPinned(t, "rollback-cli-sources")
	const web = "deployment/web"
	s.apply(webConfig + program(web, 2, ofImage("1")))
	s.known(web)
	first := s.pinned(web, "web", "")
	s.rolledOut(web)
	s.set("web", "MODE", "two")
	s.pinned(web, "web", first)
	s.kubectl("set", "image", web, "app=tidemark-sample:2")
	s.rolledOut(web)
	s.loads(mode, map[string]int{"two": 2})
	s.caughtUp()
	revisions := s.listed(web)
	target := revisions[0]
	for _, r := range revisions {
		if r.Reach == "in-full" && len(r.Configuration) > 0 && r.Configuration[0].Copy == first {
			target = r
		}
	}

	s.does(fmt.Sprintf("rollback %s --to-revision %d --restore-source --wait", web, target.Revision), "has the content of its copy "+first+" again")

	s.loads(mode, map[string]int{"one": 2})
	s.caughtUp()
	if pin := s.pinned(web, "web", ""); pin != first {
		t.Errorf("it is pinned to %s, want %s", pin, first)
	}
	if data := s.data("web"); data["MODE"] != "one" {
		t.Errorf("the source holds %v", data)
	}
	s.revisionsAre(web, len(revisions))
	s.verdict(web, "in-step")
}
