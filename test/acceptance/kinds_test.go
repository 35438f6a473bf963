package acceptance

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

var mode = scenario.Env("MODE")

func TestEachKindRollsOnceForAChange(t *testing.T) {
	turn(t)
	s := openRolling(t, "kinds")
	workloads := []string{"deployment/web", "statefulset/web", "daemonset/web"}
	s.apply(webConfig + program("deployment/web", 3, readsWeb) + program("statefulset/web", 2, readsWeb) + program("daemonset/web", 0, readsWeb))
	s.rolledOut(workloads...)
	s.known(workloads...)
	s.loads(mode, map[string]int{"one": 3 + 2 + 4})

	s.set("web", "MODE", "two")

	s.loads(mode, map[string]int{"two": 3 + 2 + 4})
	s.rolledOut(workloads...)
	for _, w := range workloads {
		s.revisionsAre(w, 2)
		s.tells(w, "ConfigurationRolled", "configmap/web")
	}
}

func TestACronJobIsStampedAndStartsNoJob(t *testing.T) {
	turn(t)
	s := openRolling(t, "cronjobs")
	s.apply(webConfig + cronJob("nightly", false, readsWeb) + cronJob("suspended", true, readsWeb))
	s.known("cronjob/nightly", "cronjob/suspended")

	s.set("web", "MODE", "two")

	s.stampedAgain("cronjob/nightly", "")
	s.stampedAgain("cronjob/suspended", "")
	s.caughtUp()
	jobs := &batchv1.JobList{}
	s.must(s.API.List(t.Context(), jobs, ctrlclient.InNamespace(s.Namespace)))
	if len(jobs.Items) != 0 {
		t.Errorf("%d Jobs were started", len(jobs.Items))
	}
	if suspended, _, _ := unstructured.NestedBool(s.get("cronjob/suspended").Object, "spec", "suspend"); !suspended {
		t.Error("the suspended CronJob is no longer suspended")
	}
}

func TestAnOnDeleteStatefulSetIsStampedAndShownForWhatItIs(t *testing.T) {
	turn(t)
	s := openRolling(t, "on-delete")
	s.apply(webConfig + program("statefulset/web", 2, readsWeb))
	s.kubectl("patch", "statefulset/web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	s.eventually("two ready pods", func() error { return s.ready("statefulset/web", 2) })
	s.known("statefulset/web")
	s.must(s.Aged(t.Context(), apart))

	s.set("web", "MODE", "two")

	s.stampedAgain("statefulset/web", "")
	s.caughtUp()
	s.loads(mode, map[string]int{"one": 2})
	s.why("statefulset/web", "OnDelete")

	s.kubectl("delete", "pods", "-l", "app=web")
	s.loads(mode, map[string]int{"two": 2})
	s.verdict("statefulset/web", "in-step")
}

func TestAPartitionIsShownForWhatItIs(t *testing.T) {
	turn(t)
	s := openRolling(t, "partition")
	s.apply(webConfig + program("statefulset/web", 3, readsWeb))
	s.kubectl("patch", "statefulset/web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`)
	s.eventually("three ready pods", func() error { return s.ready("statefulset/web", 3) })
	s.known("statefulset/web")
	s.must(s.Aged(t.Context(), apart))

	s.set("web", "MODE", "two")

	s.loads(mode, map[string]int{"one": 2, "two": 1})
	s.why("statefulset/web", "partition 2")
	s.kubectl("patch", "statefulset/web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	s.loads(mode, map[string]int{"two": 3})
	s.verdict("statefulset/web", "in-step")
}

func TestADeploymentThatSomebodyPausedIsShownForWhatItIs(t *testing.T) {
	turn(t)
	s := openRolling(t, "paused-deployment")
	s.apply(webConfig + program("deployment/web", 2, readsWeb))
	s.rolledOut("deployment/web")
	s.known("deployment/web")
	s.must(s.Aged(t.Context(), apart))
	s.kubectl("rollout", "pause", "deployment/web")

	s.set("web", "MODE", "two")

	s.stampedAgain("deployment/web", "")
	s.why("deployment/web", "spec.paused")
	s.loads(mode, map[string]int{"one": 2})
	if paused, _, _ := unstructured.NestedBool(s.get("deployment/web").Object, "spec", "paused"); !paused {
		t.Error("spec.paused was taken away")
	}
	s.kubectl("rollout", "resume", "deployment/web")
	s.loads(mode, map[string]int{"two": 2})
	s.verdict("deployment/web", "in-step")
}

func TestAnOperatorThatResetsTheTemplateIsNotFought(t *testing.T) {
	turn(t)
	s := openRolling(t, "operator")
	s.apply(webConfig + program("deployment/web", 0, readsWeb))
	s.known("deployment/web")
	reset := func() {
		s.must(s.API.Patch(t.Context(), s.get("deployment/web"), ctrlclient.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"template":{"metadata":{"annotations":null}}}}`))))
	}

	s.set("web", "MODE", "two")
	s.stampedAgain("deployment/web", "")
	s.revisionsAre("deployment/web", 2) // the Deployment controller has seen it
	reset()
	s.caughtUp()

	if stamp := s.stamp("deployment/web"); stamp != "" {
		t.Errorf("the stamp %q was written again over the operator's template", stamp)
	}
	s.tells("deployment/web", "RolledBack", "configmap/web")
}

// machines is a kind of workload that Kubernetes does not know, with its pod template at a place of its own.
const machines = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.example.tidemark.dev}
spec:
  group: example.tidemark.dev
  scope: Namespaced
  names: {kind: Machines, plural: machines, singular: machines}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tidemark-machines}
rules:
- {apiGroups: [example.tidemark.dev], resources: [machines], verbs: [get, list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tidemark-machines}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tidemark-machines}
subjects: [{kind: ServiceAccount, name: tidemark-controller, namespace: tidemark-system}]
`

// machinesKind names the kind to the controller.
const machinesKind = "--kind=example.tidemark.dev/v1/Machines=spec.machine.template"

// machine is an object of that kind.
func machine(name, containers string) string {
	return `---
apiVersion: example.tidemark.dev/v1
kind: Machines
metadata: {name: ` + name + `}
spec:
  machine:
    template:
      spec:
        containers: ` + containers + "\n"
}

const machineReadsWeb = "[{name: app, image: tidemark-sample, envFrom: [{configMapRef: {name: web}}]}]"

// serveMachines makes the API serve the kind, and gives the right to it, until the test ends.
func (v venue) serveMachines() {
	v.t.Helper()
	v.serve(machines)
}

// serve is serveMachines with another definition of the kind.
func (v venue) serve(definition string) {
	v.t.Helper()
	labtest.Apply(v.t, v.lab, definition)
	v.t.Cleanup(func() {
		for _, object := range []string{"crd/machines.example.tidemark.dev", "clusterrolebinding/tidemark-machines", "clusterrole/tidemark-machines"} {
			if _, _, err := v.lab.Kubectl(context.Background(), "delete", object); err != nil {
				v.t.Error(err)
			}
		}
	})
	labtest.Kubectl(v.t, v.lab, "wait", "--for=condition=Established", "crd/machines.example.tidemark.dev", "--timeout=60s")
}

func TestAConfiguredKindIsStampedAtThePathOfItsTemplate(t *testing.T) {
	v := alone(t)
	v.serveMachines()
	c := v.control(machinesKind)
	s := v.open("configured-kind", v1.ModeRoll)
	s.controller = c
	s.apply(webConfig + machine("fleet", machineReadsWeb))
	s.known("machines/fleet")

	s.set("web", "MODE", "two")

	s.stampedAgain("machines/fleet", "")
	s.tells("machines/fleet", "ConfigurationRolled", "configmap/web")
}

// pruned gives the kind a definition that knows nothing of its template's metadata, which the API therefore takes away.
var pruned = strings.Replace(machines, "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}", `schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              machine:
                type: object
                properties:
                  template:
                    type: object
                    properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, 1)

func TestAStampThatTheDefinitionOfAKindPrunesIsSaidAndNotFoughtFor(t *testing.T) {
	v := alone(t)
	v.serve(pruned)
	c := v.control(machinesKind)
	s := v.open("pruned-kind", v1.ModeRoll)
	s.controller = c
	s.apply(webConfig + machine("fleet", machineReadsWeb))
	s.known("machines/fleet")

	s.set("web", "MODE", "two")

	s.tells("machines/fleet", "StampLost", "spec.machine.template.metadata")
	s.metricIs(`tidemark_write_errors_total{cause="stamplost",kind="Machines.example.tidemark.dev"}`, 1)
	s.metricIs(`tidemark_records_total{reason="NewTemplate"}`, 1)
	s.caughtUp()
	before := s.get("machines/fleet").GetResourceVersion()
	s.caughtUp()
	if now := s.get("machines/fleet").GetResourceVersion(); now != before {
		t.Errorf("it was written again: resourceVersion %s, before %s", now, before)
	}
	s.metricIs(`tidemark_write_errors_total{cause="stamplost",kind="Machines.example.tidemark.dev"}`, 1)
	s.metricIs("tidemark_rolling", 0)
	if events := s.events("machines/fleet", "ConfigurationRolled"); len(events) > 0 {
		t.Errorf("it is said to roll: %q", events)
	}
}

// ready returns an error unless so many pods of the workload are ready.
func (s *scene) ready(object string, want int64) error {
	u, err := s.read(object)
	if err != nil {
		return err
	}
	got, found, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	if !found && want > 0 {
		return errors.New("none is ready")
	}
	return labtest.Equal("the number of ready pods", got, want)
}
