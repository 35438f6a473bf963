package acceptance

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
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

	said := s.deploysSecretly(first, second)
	maps.Copy(said, s.commandsSay(first, second))
	said["log"], said["notifications"] = c.Log(), in.all()
	metrics, err := c.Metrics(t.Context())
	s.must(err)
	said["metrics"] = metrics
	said["leases"] = s.kubectl("get", "leases", "-o", "json")
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

// deploysSecretly installs and upgrades a release whose values hold a Secret's value, the second time under a guard, and returns
// what these said. Helm keeps the values in its records, which are Secrets too, and the guard sees them among its arguments.
func (s *scene) deploysSecretly(first, second string) map[string]string {
	s.t.Helper()
	chart, err := scenario.Chart(s.t.TempDir())
	s.must(err)
	_, _, err = s.Lab.Helm(s.t.Context(), "install", service, chart, "-n", s.Namespace, "--wait", "--set", "token="+first)
	s.must(err)
	guard, err := s.GuardCommand(s.t.Context(), short(), "upgrade", service, chart, "-n", s.Namespace, "--wait", "--set", "token="+second)
	s.must(err)
	out, err := guard.CombinedOutput()
	if err != nil {
		s.t.Fatalf("guard: %v\n%s", err, out)
	}
	return map[string]string{"tidemark guard": string(out)}
}

// commandsSay runs every command that reads Secrets, or that is given one, and returns what each said.
func (s *scene) commandsSay(first, second string) map[string]string {
	s.t.Helper()
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: door}\nstringData: {MODE: " + value + "}\n" +
			program("deployment/web", 1, sample+"envFrom: [{secretRef: {name: door}}]")
	}
	dir := s.t.TempDir()
	before, after := filepath.Join(dir, "before.yaml"), filepath.Join(dir, "after.yaml")
	s.must(os.WriteFile(before, []byte(secret(second)), 0o600))
	s.must(os.WriteFile(after, []byte(secret(first)+"---\n"+secret(first)), 0o600))
	web, err := s.Status(s.t.Context(), "deployment/web")
	s.must(err)
	said := map[string]string{}
	for _, command := range [][]string{
		{"status"}, {"explain", "deployment/web"}, {"history", "deployment/web"}, {"diff", "deployment/web"}, {"diff", "deployment/web", "current", "applied"},
		{"rollback", "deployment/web", "--dry-run=client"}, {"verify", web.Pods[0].Name}, {"releases"}, {"gc", "--dry-run"},
		{"plan", "-f", before}, {"plan", "-f", after}, {"check", "-f", before, "--against", "live"}, {"check", "-f", after, "--against", before},
	} {
		for _, format := range []string{"", "wide", "json"} {
			args := command
			if format != "" {
				args = append(args[:len(args):len(args)], "-o", format)
			}
			var out, errOut bytes.Buffer
			config := cli.Config{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: clock.RealClock{}}
			code := cli.Run(s.t.Context(), config, append(args[:len(args):len(args)],
				"-n", s.Namespace, "--kubeconfig", s.Lab.Kubeconfig(), "--cache-dir", filepath.Join(s.Lab.Status().Directory, "tidemark")))
			name := "tidemark " + strings.Join(args, " ")
			if code > 1 && !strings.Contains(errOut.String(), "is no format") {
				s.t.Errorf("%s: exit status %d: %s", name, code, &errOut)
			}
			said[name] = fmt.Sprint(&out, &errOut)
		}
	}
	return said
}
