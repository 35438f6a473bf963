package acceptance

import (
	"encoding/base64"
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

func TestNoSecretValueLeavesItsSecret(t *testing.T) {
	const first, second = "open-sesame-4711", "open-sesame-0815"
	v := alone(t)
	in := newInbox(t)
	c := v.watchful(in.flags...)
	s := v.open("secrecy", v1.ModeRoll)
	s.controller = c
	// A required key is missing at first, an annotation cannot be read, and the API refuses a write: each message is a chance
	// for a value to get out.
	s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: door}\nstringData: {MODE: " + first + "}\n" +
		program("deployment/web", 1, sample+"envFrom: [{secretRef: {name: door}}]") +
		program("deployment/lazy", 1, sample+"envFrom: [{secretRef: {name: door}}]") +
		program("deployment/bad", 0, sample+"envFrom: [{secretRef: {name: door}}]"))
	s.kubectl("annotate", "deployment/bad", v1.AnnotationExtraSecrets+"=door, a/b/c", v1.AnnotationRolloutBudget+"=soon")
	// Its own fleet does not roll, so that people are told of it; and a Secret has no say in what is shown.
	s.kubectl("annotate", "deployment/lazy", v1.AnnotationMode+"="+v1.ModeObserve)
	s.kubectl("annotate", "secret/door", v1.AnnotationShowValues+"=true")
	s.rolledOut("deployment/web", "deployment/lazy")
	s.known("deployment/web")
	s.must(s.Aged(t.Context(), apart))
	s.setSecret("door", "MODE", second)
	s.loads(mode, map[string]int{second: 1, first: 1})
	s.kubectl("rollout", "undo", "deployment/web")
	s.tells("deployment/web", "RolledBack", "secret/door")

	in.gets(s, "lazy", "TidemarkChangeDormant", "firing")

	said := map[string]string{"log": c.Log(), "notifications": in.all()}
	metrics, err := c.Metrics(t.Context())
	s.must(err)
	said["metrics"] = metrics
	for _, args := range [][]string{
		{"status"}, {"status", "-o", "wide"}, {"status", "-o", "json"}, {"explain", "deployment/web"}, {"explain", "deployment/web", "-o", "json"},
	} {
		out, err := s.Tidemark(t.Context(), args...)
		s.must(err)
		said["tidemark "+strings.Join(args, " ")] = out
	}
	said["events"] = s.kubectl("get", "events.events.k8s.io", "-o", "json")
	said["workloads"] = s.kubectl("get", "deployments,replicasets", "-o", "json")
	said["history"], _, err = s.Lab.Kubectl(t.Context(), "get", "configmaps", "-n", scenario.SystemNamespace, "-o", "json")
	s.must(err)
	if !strings.Contains(said["history"], "secrecy") {
		t.Error("the history does not tell of the namespace, so nothing was proved about it")
	}
	if !strings.Contains(said["metrics"], `tidemark_fleet_verdict{kind="Deployment",name="lazy",namespace="secrecy"`) || !strings.Contains(said["history"], v1.ConfigMapNotified) {
		t.Error("neither the fleet's series nor what was told is there, so nothing was proved about them")
	}
	for where, text := range said {
		for _, value := range []string{first, second, in.marker} {
			for form, secret := range map[string]string{"as it is": value, "in base64": base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds a Secret's value %s", where, form)
				}
			}
		}
	}
}
