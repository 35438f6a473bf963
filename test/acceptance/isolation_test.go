package acceptance

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// refuseStuck makes the API refuse every change of workloads whose name begins with stuck.
const refuseStuck = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nobody-changes-stuck}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}
  matchConditions: [{name: stuck, expression: "object.metadata.name.startsWith('stuck') && object.metadata.annotations != oldObject.metadata.annotations"}]
  validations: [{expression: "false", message: "stuck is nobody's to change"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nobody-changes-stuck}
spec: {policyName: nobody-changes-stuck, validationActions: [Deny]}
`

func TestWhatIsWrongWithOneWorkloadOrKindIsSaidClearlyAndStopsNoOther(t *testing.T) {
	v := alone(t)
	v.serveMachines()
	v.takeRightToCronJobs()
	c := v.control(machinesKind, "--kind=example.tidemark.dev/v1/Nowhere=spec.template")
	s := v.open("isolation", v1.ModeRoll)
	s.controller = c

	s.apply(webConfig +
		program("deployment/good", 0, readsWeb) + program("deployment/stuck", 0, readsWeb) +
		program("deployment/bad-mode", 0, readsWeb) + program("deployment/bad-extra", 0, readsWeb) +
		machine("good", machineReadsWeb) + machine("empty", "[]") +
		cronJob("unseen", false, readsWeb))
	s.kubectl("annotate", "deployment/bad-mode", v1.AnnotationMode+"=rolls")
	s.kubectl("annotate", "deployment/bad-extra", v1.AnnotationExtraConfigMaps+"=a/b/c, web")
	s.known("deployment/good", "machines/good", "deployment/stuck", "deployment/bad-extra")
	labtest.Apply(t, s.Lab, refuseStuck)
	t.Cleanup(func() {
		_, _, err := s.Lab.Kubectl(context.Background(), "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "nobody-changes-stuck")
		if err != nil {
			t.Error(err)
		}
	})
	s.eventually("the admission policy to be in force", func() error {
		_, err := s.Kubectl(t.Context(), "annotate", "deployment/stuck", "tried=yes", "--dry-run=server")
		if err == nil {
			err = errors.New("it lets a change through")
		} else if strings.Contains(err.Error(), "nobody's to change") {
			err = nil
		}
		return err
	})

	s.set("web", "MODE", "two")

	s.stampedAgain("deployment/good", "")
	s.stampedAgain("machines/good", "")
	s.stampedAgain("deployment/bad-extra", "")

	s.tells("deployment/stuck", "WriteRefused", "stuck is nobody's to change")
	s.tells("deployment/bad-mode", "InvalidConfiguration", `"rolls"`)
	s.tells("deployment/bad-extra", "InvalidConfiguration", "a/b/c")
	s.tells("machines/empty", "InvalidConfiguration", "no containers")
	s.logsOnce("example.tidemark.dev", "Nowhere")
	s.logsOnce("cronjobs", "batch")
	s.metricIs(`tidemark_watch_problem{kind="Nowhere.example.tidemark.dev"}`, 1)
	s.metricIs(`tidemark_watch_problem{kind="CronJob.batch"}`, 1)
	s.metricIs(`tidemark_watch_problem{kind="Deployment.apps"}`, 0)
	if stamp := s.stamp("deployment/bad-mode"); stamp != "" {
		t.Errorf("the workload with a mode that is none was stamped %q", stamp)
	}
	s.caughtUp()
}

// takeRightToCronJobs takes the rule about CronJobs away from the controller's rights until the test ends.
func (v venue) takeRightToCronJobs() {
	v.t.Helper()
	v.changeRights("  - cronjobs\n", "  - none\n")
}

// changeRights replaces what is there once in the controller's ClusterRole until the test ends.
func (v venue) changeRights(before, after string) {
	v.t.Helper()
	role, _, err := v.lab.Kubectl(v.t.Context(), "get", "clusterrole", "tidemark-controller", "-o", "yaml")
	if err != nil {
		v.t.Fatal(err)
	}
	if n := strings.Count(role, before); n != 1 {
		v.t.Fatalf("the role has %d times %q, want once:\n%s", n, before, role)
	}
	labtest.Apply(v.t, v.lab, strings.Replace(role, before, after, 1))
	v.t.Cleanup(func() {
		if err := scenario.Install(context.Background(), v.lab); err != nil {
			v.t.Error(err)
		}
	})
}

// logsOnce fails the test unless one line of the controller's log at level error mentions all the words.
func (s *scene) logsOnce(words ...string) {
	s.t.Helper()
	lines := `"level":"error"`
	text := about(s.controller.Log(), lines)
	for _, w := range words {
		text = about(text, w)
	}
	if n := strings.Count(text, lines); n != 1 {
		s.t.Errorf("%d errors in the log mention %q, want one:\n%s", n, words, text)
	}
}
