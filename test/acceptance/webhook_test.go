package acceptance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
)

// The writes of one deploy are apartInADeploy apart, which is well within what the controller waits for more of them.
const (
	apartInADeploy = time.Second
	longSettle     = "--settle=10s"
)

func TestOneDeployOfConfigurationThenImageIsOneRevision(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	c := h.serve(longSettle)
	for _, mode := range []string{v1.ModePin, v1.ModeRoll} {
		t.Run(mode, func(t *testing.T) {
			s := venue{t, v.lab}.open("one-deploy-"+mode, mode)
			s.controller = c
			s.deploys(1, 2)
		})
	}
}

func TestOneDeployIsAtMostTwoRevisionsWithoutTheWebhook(t *testing.T) {
	v := alone(t)
	h := v.webhooks(podWebhook)
	s := v.open("two-revisions", v1.ModePin)
	s.controller = h.serve(longSettle)
	s.deploys(2, 2)
}

// deploys makes two deploys, and counts their revisions: of the ConfigMap, then the image, and the other way round.
func (s *scene) deploys(configurationFirst, imageFirst int) {
	s.t.Helper()
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 2, "web:1"))
	s.known(web)
	s.rolledOut(web)
	s.caughtUp()
	before := s.revisions(web)
	if before > configurationFirst {
		s.t.Errorf("it has %d revisions at first, want at most %d", before, configurationFirst)
	}

	s.set("web", "MODE", "two")
	time.Sleep(apartInADeploy)
	s.apply(edition(web, 2, "web:2"))
	s.loads(mode, map[string]int{"two": 2})
	s.rolledOut(web)
	s.caughtUp()
	after := s.revisions(web)
	if n := after - before; n > configurationFirst {
		s.t.Errorf("the ConfigMap, then the image: %d new revisions, want at most %d", n, configurationFirst)
	}

	s.apply(edition(web, 2, "web:3"))
	time.Sleep(apartInADeploy)
	s.set("web", "MODE", "three")
	s.loads(mode, map[string]int{"three": 2})
	s.rolledOut(web)
	s.caughtUp()
	if n := s.revisions(web) - after; n > imageFirst {
		s.t.Errorf("the image, then the ConfigMap: %d new revisions, want at most %d", n, imageFirst)
	}
	s.verdict(web, "in-step")
}

func TestAnUndoIsNotedInTheSameWrite(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	c := h.serveAlone()
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		t.Run(kind, func(t *testing.T) {
			s := venue{t, v.lab}.open("same-write-"+kind, v1.ModePin)
			s.controller = c
			web := kind + "/web"
			const pods = 4 // a DaemonSet has one on each node
			s.apply(webConfig + edition(web, pods, "web:1"))
			first := s.pinsOf(web)
			if len(first) != 1 {
				t.Fatalf("when it was created it got the pins %v", first)
			}
			s.rolledOut(web)
			s.set("web", "MODE", "two")
			s.apply(edition(web, pods, "web:2"))
			if second := s.pinsOf(web); maps.Equal(first, second) {
				t.Errorf("the new release is pinned to %v, as the one before it", second)
			}
			s.rolledOut(web)
			s.loads(mode, map[string]int{"two": pods})
			s.tells(web, "ConfigurationRolled", "configmap/web") // news is told only while it is true

			s.kubectl("rollout", "undo", web)

			r := s.record(web)
			if r.Last == nil || r.Last.Reason != stamp.RolledBack || !r.Objects["configmap/web"].HeldBack {
				t.Errorf("the record after the undo: %+v", r)
			}
			if pins := s.pinsOf(web); !maps.Equal(pins, first) {
				t.Errorf("the pins are %v, want %v as at first", pins, first)
			}
			s.rolledOut(web)
			s.loads(mode, map[string]int{"one": pods})
			s.tells(web, "RolledBack", "configmap/web")

			// Other edits keep what is held back; a release ends it.
			s.kubectl("rollout", "restart", web)
			if pins := s.pinsOf(web); !maps.Equal(pins, first) {
				t.Errorf("after a restart the pins are %v, want %v", pins, first)
			}
			s.apply(edition(web, pods, "web:3"))
			s.loads(mode, map[string]int{"two": pods})
			if r := s.record(web); r.Objects["configmap/web"].HeldBack {
				t.Errorf("after the release the record is %+v", r)
			}
		})
	}
}

// record reads what Tidemark left on a workload, which must be whole.
func (s *scene) record(object string) stamp.Record {
	s.t.Helper()
	u := s.get(object)
	r, intact, err := stamp.Parse(u.GetAnnotations()[v1.AnnotationRecord], u.GetLabels()[v1.LabelRecordSum])
	s.must(err)
	if r == nil || !intact {
		s.t.Fatalf("the record on %s is not whole: %v %v", object, u.GetAnnotations(), u.GetLabels())
	}
	return *r
}

// decided counts what the workload webhook decided so.
func decided(outcome string) string {
	return fmt.Sprintf(`tidemark_admissions_total{outcome=%q,webhook="workloads"}`, outcome)
}

func TestNothingIsStampedWithoutAChangeOfTheTemplate(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook) // which has pins in force
	s := v.open("no-change", v1.ModePin)
	s.controller = h.serveAlone()
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 0, "web:1") + cronJob("nightly", false, readsWeb))
	before, nightly := s.get(web), s.pinsOf("cronjob/nightly")
	s.set("web", "MODE", "two")

	s.kubectl("label", web, "team=web")
	s.kubectl("annotate", web, "team=web")
	s.kubectl("scale", web, "--replicas=1")
	s.kubectl("patch", web, "--type=merge", "-p", `{"spec":{"minReadySeconds":1}}`)
	s.kubectl("patch", "cronjob/nightly", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	s.rolledOut(web)

	if got := s.pinsOf("cronjob/nightly"); !maps.Equal(got, nightly) {
		t.Errorf("the CronJob's pins are %v, want %v", got, nightly)
	}
	s.sameStamp(web, before)
	s.kubectl("annotate", "namespace", s.Namespace, v1.AnnotationPaused+"=true")
	s.apply(edition(web, 1, "web:2"))
	s.sameStamp(web, before)
	s.metricIs(decided("paused"), 1)
	s.kubectl("annotate", "namespace", s.Namespace, v1.AnnotationPaused+"-")
	s.kubectl("label", "namespace", s.Namespace, "--overwrite", v1.LabelMode+"=observe")
	s.apply(edition(web, 1, "web:3"))
	s.sameStamp(web, before)
	s.metricIs(decided("observed"), 1)
	s.kubectl("label", "namespace", s.Namespace, "--overwrite", v1.LabelMode+"=pin")
	s.kubectl("delete", "configmap", "web")
	s.apply(edition(web, 1, "web:4") + program("deployment/waits", 0, readsWeb))
	s.metricIs(decided("waiting"), 1) // one waits; the other reads a copy of what is gone
}

// sameStamp fails the test unless a workload carries the stamp, the pins and the record that it carried.
func (s *scene) sameStamp(object string, before *unstructured.Unstructured) {
	s.t.Helper()
	now := s.get(object)
	if got, want := left(now, templatePath(object)), left(before, templatePath(object)); !maps.Equal(got, want) {
		s.t.Errorf("%s carries %v, want %v", object, got, want)
	}
}

// left is all that Tidemark leaves on a workload.
func left(u *unstructured.Unstructured, path []string) map[string]string {
	template, _, _ := unstructured.NestedStringMap(u.Object, append(slices.Clone(path), "metadata", "annotations")...)
	return map[string]string{
		"record": u.GetAnnotations()[v1.AnnotationRecord], "sum": u.GetLabels()[v1.LabelRecordSum],
		"hash": template[v1.AnnotationConfigHash], "pins": template[v1.AnnotationPins],
	}
}

func TestJobsAreStampedWhenTheyAreCreated(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	s := v.open("jobs", v1.ModePin)
	s.controller = h.serveAlone()
	const container = "name: app\nimage: tidemark-sample\ncommand: [/sample]\nenvFrom: [{configMapRef: {name: web}}]\n"
	s.apply(webConfig + cronJob("nightly", false, container))
	s.set("web", "MODE", "two")
	s.kubectl("create", "job", "by-hand", "--from=cronjob/nightly")
	s.apply(`---
apiVersion: batch/v1
kind: Job
metadata: {name: alone}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - ` + strings.TrimSpace(indent("        ", container)) + "\n")

	s.loads(mode, map[string]int{"one": 1, "two": 1})
	pods := &corev1.PodList{}
	s.must(s.API.List(t.Context(), pods, ctrlclient.InNamespace(s.Namespace)))
	for _, p := range pods.Items {
		pins := p.Annotations[v1.AnnotationPins]
		if got := p.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name; pins != "configmap/web="+got {
			t.Errorf("pod %s reads %s, and its pins are %q", p.Name, got, pins)
		}
	}
}

func TestADryRunShowsTheStampAndMakesNoSnapshot(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook) // which has pins in force
	s := v.open("dry-run", v1.ModePin)
	s.controller = h.serveAlone()
	s.apply(webConfig)
	shown, _, err := v.lab.KubectlWithInput(t.Context(), edition("deployment/web", 0, "web:1"),
		"apply", "-n", s.Namespace, "--dry-run=server", "-o", `jsonpath={.spec.template.metadata.annotations.tidemark\.dev/pins}`, "-f", "-")
	s.must(err)
	if got := s.snapshots("web"); len(got) != 0 {
		t.Errorf("the dry run made the snapshots %v", got)
	}

	s.apply(edition("deployment/web", 0, "web:1"))
	if got := s.pinsOf("deployment/web").String(); got != shown || got == "" {
		t.Errorf("the dry run showed the pins %q, and they became %q", shown, got)
	}
	if got := s.snapshots("web"); len(got) != 1 {
		t.Errorf("the write made the snapshots %v", got)
	}
}

func TestWithoutItsWebhookADeployGoesThroughAndTheControllerCatchesUp(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	c := h.serve()
	s := v.open("webhook-dies", v1.ModePin)
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 2, "web:1"))
	first := s.pinned(web, "web", "")
	s.rolledOut(web)

	before := s.get(web)
	s.must(c.Kill())
	// What admission added has no owner, so an apply that does not name it takes nothing away.
	_, _, err := v.lab.KubectlWithInput(t.Context(), edition(web, 2, "web:1"),
		"apply", "-n", s.Namespace, "--server-side", "--field-manager=gitops", "--force-conflicts", "-f", "-")
	s.must(err)
	s.sameStamp(web, before)
	s.set("web", "MODE", "two")
	s.apply(edition(web, 2, "web:2"))
	s.loads(mode, map[string]int{"two": 2}) // nothing rewrote its pods, which read what is applied

	s.controller = h.serve()
	s.pinned(web, "web", first)
	s.rolledOut(web)
	s.loads(mode, map[string]int{"two": 2})
	s.verdict(web, "in-step")
}

func TestReappliesByAnotherManagerLoseNoStampAndMakeNoRevision(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	c := h.serve()
	for _, how := range []struct {
		name  string
		apply []string
	}{
		{"server-side", []string{"apply", "--server-side", "--field-manager=gitops"}},
		{"client-side", []string{"apply", "--field-manager=gitops"}},
		{"replace", []string{"replace", "--field-manager=gitops"}},
	} {
		t.Run(how.name, func(t *testing.T) {
			s := venue{t, v.lab}.open("reapply-"+how.name, v1.ModePin)
			s.controller = c
			const web = "deployment/web"
			apply := func(manifest string) {
				t.Helper()
				_, _, err := v.lab.KubectlWithInput(t.Context(), manifest, append(slices.Clone(how.apply), "-n", s.Namespace, "-f", "-")...)
				s.must(err)
			}
			s.apply(webConfig)
			if how.name == "replace" {
				s.apply(edition(web, 1, "web:1"))
			} else {
				apply(edition(web, 1, "web:1"))
			}
			first := s.pinned(web, "web", "")
			s.set("web", "MODE", "two") // the second stamp is the controller's, the first was admission's
			s.pinned(web, "web", first)
			s.rolledOut(web)
			s.caughtUp()
			before, revisions := s.get(web), s.revisions(web)

			for range 10 {
				apply(edition(web, 1, "web:1"))
				s.sameStamp(web, before)
			}

			s.caughtUp()
			s.sameStamp(web, before)
			s.revisionsAre(web, revisions)
			s.verdict(web, "in-step")
		})
	}
}

func TestALargeWorkloadIsStampedWithALargeObject(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook) // which has pins in force
	s := v.open("large", v1.ModePin)
	s.controller = h.serveAlone()
	large := &corev1.ConfigMap{Data: map[string]string{}}
	large.Namespace, large.Name = s.Namespace, "large"
	const keys = 1000
	env := ""
	for i := range keys {
		large.Data[fmt.Sprintf("KEY_%d", i)] = strings.Repeat("x", 1000)
		env += fmt.Sprintf("- {name: VARIABLE_%d, valueFrom: {configMapKeyRef: {name: large, key: KEY_%d}}}\n", i, i)
	}
	s.must(s.API.Create(t.Context(), large))
	manifest := program("deployment/web", 0, "name: app\nimage: web:1\nenv:\n"+env)
	var name string
	s.eventually("admission to decide in the time that it is given", func() error {
		s.kubectl("delete", "deployment", "web", "--ignore-not-found")
		_, _, err := v.lab.KubectlWithInput(t.Context(), manifest, "apply", "--server-side", "-n", s.Namespace, "-f", "-")
		s.must(err)
		if name = s.pinsOf("deployment/web")[workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: "large"}]; name == "" {
			return errors.New("it has no pin")
		}
		return nil
	})
	s.holds(name, large.Data)
	s.metricIs(decided("stamped"), asked+1)
	before := s.get("deployment/web")
	s.kubectl("set", "image", "deployment/web", "app=web:2")
	s.metricIs(decided("recorded"), 1)
	if now, path := s.get("deployment/web"), templatePath("deployment/web"); left(now, path)["hash"] != left(before, path)["hash"] {
		t.Error("the stamp is another one, though only the image changed")
	}
}

func TestWithoutThePolicyFirstPinsWaitAndWhatIsPinnedGoesOn(t *testing.T) {
	v := alonePinned(t)
	h := v.webhooks(workloadWebhook)
	s := v.open("no-policy", v1.ModePin)
	s.controller = h.serve()
	const old, fresh = "deployment/old", "deployment/fresh"
	s.apply(webConfig + program(old, 1, readsWeb))
	first := s.pinned(old, "web", "")
	s.rolledOut(old)

	v.kubectl("delete", "mutatingadmissionpolicybinding", v1.PolicyPin)
	s.metricIs(`tidemark_pinning{part="policy"}`, 0)
	_, warned, err := v.lab.KubectlWithInput(t.Context(), program(fresh, 1, readsWeb), "apply", "-n", s.Namespace, "-f", "-")
	s.must(err)
	if !strings.Contains(warned, "it gets no pins yet: nothing makes new pods read what their pins say") {
		t.Errorf("the writer is told %q", warned)
	}
	s.tells(fresh, "Held", "rollout held (pins)")
	s.rolledOut(fresh)
	s.set("web", "MODE", "two")
	second := s.pinned(old, "web", first)
	s.holds(second, map[string]string{"MODE": "two", "OTHER": "untouched"})
	s.rolledOut(old)
	if pins := s.pinsOf(fresh); len(pins) != 0 {
		t.Errorf("what is new has the pins %v", pins)
	}
	s.loads(mode, map[string]int{"two": 1, "one": 1})

	v.kubectl("apply", "-k", manifestPath(t, "deploy/policy/rewriting"))
	if pin := s.pinned(fresh, "web", ""); pin != second {
		t.Errorf("what is new is pinned to %s, want %s", pin, second)
	}
	s.rolledOut(fresh)
	s.loads(mode, map[string]int{"two": 2})
	if n := s.revisions(fresh); n != 2 {
		t.Errorf("what is new has %d revisions, want 2: the one that it came with, and that of its first pins", n)
	}
}

func TestRemovingTidemarkBlocksNoWrite(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	c := h.serve()
	s := v.open("removed", v1.ModePin)
	const web = "deployment/web"
	s.apply(webConfig + edition(web, 1, "web:1"))
	s.pinned(web, "web", "")
	s.rolledOut(web)

	s.must(c.Kill())
	s.kubectl("delete", "--cascade=foreground", "--timeout=1m", web)
	s.get("configmap/web") // a user's object stays, with its snapshots
	if got := s.snapshots("web"); len(got) != 1 {
		t.Errorf("the snapshots are %v", got)
	}
	v.kubectl("delete", "--timeout=1m", "-f", manifestPath(t, workloadWebhook), "-f", manifestPath(t, podWebhook), "--ignore-not-found")
	s.apply(edition(web, 1, "web:2"))
	s.rolledOut(web)
	s.kubectl("delete", "--timeout=1m", "namespace", s.Namespace)
	labtest.Kubectl(t, v.lab, "create", "namespace", s.Namespace) // for the end of the test
}

func TestAnArgoRolloutIsStampedAndItsUndoIsNotedInTheSameWrite(t *testing.T) {
	v := alone(t)
	h := v.webhooks(workloadWebhook, podWebhook)
	labtest.StartArgoRollouts(t, v.lab)
	stage := v.open("same-write-rollout", v1.ModePin)
	stage.controller = h.serveAlone()
	rollouts, err := v.lab.Rollouts(stage.Namespace)
	stage.must(err)
	s := &rolloutScene{stage, rollouts}
	s.apply(webConfig + rolloutOf(2, canarySteps, "web:1"))
	first := s.pinsOf(web)
	if len(first) != 1 {
		t.Fatalf("when it was created it got the pins %v", first)
	}
	state := s.is(client.RolloutHealthy)
	s.set("web", "MODE", "two")
	s.apply(rolloutOf(2, canarySteps, "web:2"))
	if second := s.pinsOf(web); maps.Equal(first, second) {
		t.Errorf("the new release is pinned to %v, as the one before it", second)
	}
	s.at(client.RolloutPaused, state)
	state = s.promoted()
	s.loads(mode, map[string]int{"two": 2})

	s.must(rollouts.Undo(t.Context(), "web", 1))

	if r := s.record(web); r.Last == nil || r.Last.Reason != stamp.RolledBack || !r.Objects["configmap/web"].HeldBack {
		t.Errorf("the record after the undo: %+v", r)
	}
	if pins := s.pinsOf(web); !maps.Equal(pins, first) {
		t.Errorf("the pins are %v, want %v as at first", pins, first)
	}
	s.at(client.RolloutPaused, state)
	s.promoted()
	s.loads(mode, map[string]int{"one": 2})
}
