package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
)

// rates reads a ConfigMap into its environment, another one as files, and a Secret.
const rates = `
apiVersion: v1
kind: ConfigMap
metadata: {name: rates}
data: {LEASE: 10m, MODE: fast}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {limits: "10"}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {password: ` + marker + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rates}
spec:
  replicas: 2
  selector: {matchLabels: {app: rates}}
  template:
    metadata: {labels: {app: rates}}
    spec:
      containers:
      - name: app
        image: tidemark-sample
        envFrom: [{configMapRef: {name: rates}}]
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: door, key: password}}}]
        volumeMounts: [{name: limits, mountPath: /etc/limits}]
      volumes: [{name: limits, configMap: {name: limits}}]
`

// verifies looks into a pod by the command line, through the real kubelet's exec.
func (s *scene) verifies(pod string) map[string]v1.VerificationCheck {
	s.t.Helper()
	out, err := s.Tidemark(s.t.Context(), "verify", pod, "-o", "json")
	s.must(err)
	if strings.Contains(out, marker) || strings.Contains(out, "10m") {
		s.t.Errorf("it prints a value: %s", out)
	}
	var v v1.Verification
	s.must(json.Unmarshal([]byte(out), &v))
	checks := map[string]v1.VerificationCheck{}
	for _, c := range v.Checks {
		checks[c.Object[strings.LastIndex(c.Object, "/")+1:]] = c
	}
	return checks
}

func TestVerifyLooksIntoPodsAndTheNextStartIsTold(t *testing.T) {
	v := alone(t)
	c := v.watchful()
	s := v.open("verify", v1.ModeObserve)
	s.controller = c
	s.apply(rates)
	s.rolledOut("deployment/rates")
	s.must(s.Aged(t.Context(), filesApart))
	pod := s.verdict("deployment/rates", "in-step").Pods[0].Name
	checks := s.verifies(pod)
	if c := checks["rates"]; c.Outcome != "right" || c.Evidence != "inferred" {
		t.Errorf("of the environment: %+v", c)
	}
	if c := checks["limits"]; c.Outcome != "unknown" || c.Files != "applied" {
		t.Errorf("of files: %+v", c)
	}
	if c := checks["door"]; c.Why != "a Secret is not looked at" {
		t.Errorf("of the Secret: %+v", c)
	}

	s.set("rates", "LEASE", "2m")
	s.set("limits", "limits", "2")
	s.verdict("deployment/rates", "dormant")
	checks = s.verifies(pod)
	if c := checks["rates"]; c.Outcome != "right" || c.Digest == c.Applied {
		t.Errorf("of the environment of before: %+v", c)
	}
	s.eventually("the kubelet to replace the file", func() error {
		if c := s.verifies(pod)["limits"]; c.Files != "applied" {
			return fmt.Errorf("of files: %+v", c)
		}
		return nil
	})

	// What the next pods would read is told with both values; the old ones come from the history.
	s.eventually("the history to have the values", func() error {
		fleet := s.verdict("deployment/rates", "dormant")
		got := map[string]string{}
		for _, start := range fleet.NextStart {
			for _, k := range start.Keys {
				if k.From != nil && k.To != nil {
					got[k.Key] = *k.From + " -> " + *k.To
				}
			}
		}
		if got["LEASE"] != "10m -> 2m" || got["limits"] != "10 -> 2" || len(got) != 2 {
			return fmt.Errorf("it tells %v of %+v", got, fleet.NextStart)
		}
		return nil
	})
	time.Sleep(apart) // so that what is read from now on is told apart
	s.kubectl("delete", "pod", pod)
	s.rolledOut("deployment/rates")
	s.eventually("the picture of the split fleet", func() error {
		out, err := s.Tidemark(t.Context(), "status", "deployment/rates", "-o", "fleet")
		if err == nil && (!strings.Contains(out, "\n  AB\n") || !strings.Contains(out, `LEASE "10m" -> "2m" (1 pod)`)) {
			err = fmt.Errorf("it is\n%s", out)
		}
		return err
	})
}
