package acceptance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
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
	maps.Copy(said, s.left())
	said["notifications"] = in.text()
	if !strings.Contains(said["metrics"], `tidemark_fleet_verdict{kind="Deployment",name="lazy",namespace="secrecy"`) || !strings.Contains(said["history"], v1.ConfigMapNotified) {
		t.Error("neither the fleet's series nor what was told is there, so nothing was proved about them")
	}
	s.holdsNone(said, map[string]string{"the credential of notifications": in.Token}, first, second)
}

func TestNoSecretValueLeavesItsSecretInModePin(t *testing.T) {
	const first, second = "open-sesame-4711", "open-sesame-0815"
	v := alone(t)
	h, in := v.webhooks(workloadWebhook, podWebhook), newInbox(t)
	c := h.serve(in.flags...)
	if err := c.HasWatched(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := v.open("secrecy-pin", v1.ModePin)
	s.controller = c
	// The Secret is copied for each revision, and read into the environment as well as as files.
	const reads = sample + "envFrom: [{secretRef: {name: door}}]\nvolumeMounts: [{name: door, mountPath: /door}]\n"
	s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: door, annotations: {" + v1.AnnotationTreatAs + ": " + v1.TreatAsVersioned +
		"}}\nstringData: {MODE: " + first + "}\n" + program("deployment/web", 2, reads, "volumes: [{name: door, secret: {secretName: door}}]"))
	door := workload.Object{Kind: workload.Secret, Namespace: s.Namespace, Name: "door"}
	s.eventually("the Secret to be pinned", func() error {
		if s.pinsOf("deployment/web")[door] == "" {
			return errors.New("it is not")
		}
		return nil
	})
	s.rolledOut("deployment/web")
	s.setSecret("door", "MODE", second)
	s.loads(mode, map[string]int{second: 2})
	s.rolledOut("deployment/web")
	s.kubectl("rollout", "undo", "deployment/web")
	s.loads(mode, map[string]int{first: 2})
	s.rolledOut("deployment/web")
	s.tells("deployment/web", "RolledBack", "secret/door")
	s.exit("web", "app")
	s.rolledOut("deployment/web")
	s.loads(mode, map[string]int{first: 2})

	said := s.commandsSay(first, second)
	maps.Copy(said, s.left())
	said["notifications"] = in.text()
	copies := strings.Fields(s.kubectl("get", "secrets", "-l", v1.LabelSnapshot+"="+v1.True, "-o", "name"))
	if len(copies) < 2 || !slices.ContainsFunc(copies, func(c string) bool { return strings.Contains(said["pods"], nameOf(c)) }) {
		t.Errorf("there are the copies %q, which no pod reads, so nothing was proved about them", copies)
	}
	s.holdsNone(said, map[string]string{"the credential of notifications": in.Token}, first, second)
}

// left are the traces in the cluster: whatever Tidemark wrote, logged or exports. Of copies of Secrets all but the data.
func (s *scene) left() map[string]string {
	s.t.Helper()
	said := map[string]string{"log": s.controller.Log()}
	var err error
	said["metrics"], err = s.controller.Metrics(s.t.Context())
	s.must(err)
	for name, kinds := range map[string]string{
		"leases": "leases", "events": "events.events.k8s.io", "workloads": "deployments,replicasets", "pods": "pods", "configmaps": "configmaps",
	} {
		said[name] = s.kubectl("get", kinds, "-o", "json")
	}
	said["metadata of copies"] = s.kubectl("get", "secrets", "-l", v1.LabelSnapshot+"="+v1.True, "-o", "jsonpath={.items[*].metadata}")
	for name, kinds := range map[string]string{"history": "configmaps", "leader": "leases"} {
		said[name], _, err = s.Lab.Kubectl(s.t.Context(), "get", kinds, "-n", scenario.SystemNamespace, "-o", "json")
		s.must(err)
	}
	if !strings.Contains(said["history"], v1.HistoryPrefix+s.Namespace) {
		s.t.Error("the history does not tell of the namespace, so nothing was proved about it")
	}
	return said
}

// holdsNone fails the test where a text holds a value of the Secret door, or something by which a short one could be guessed: a digest of
// it without a key. Of the other values, which are in no digest, only themselves are looked for.
func (s *scene) holdsNone(said, others map[string]string, values ...string) {
	s.t.Helper()
	forms := map[string]string{}
	for name, value := range others {
		forms[name] = value
		forms[name+" in base64"] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	for _, value := range values {
		for form, text := range formsOf(workload.Object{Kind: workload.Secret, Namespace: s.Namespace, Name: "door"}, "MODE", value) {
			forms["the Secret's value "+form] = text
		}
		for where, text := range said {
			for form, secret := range forms {
				if strings.Contains(text, secret) {
					s.t.Errorf("%s holds %s", where, form)
				}
			}
		}
	}
}

// formsOf are the texts in which a value of an object would be found that has no other key: itself, and what is computed of it without
// a key, by Tidemark's own method too.
func formsOf(o workload.Object, key, value string) map[string]string {
	plain, sum := sha256.Sum256([]byte(value)), unkeyedSum(o, key, value)
	forms := map[string]string{"as it is": value, "in base64": base64.StdEncoding.EncodeToString([]byte(value))}
	for name, hash := range map[string][]byte{"its SHA-256": plain[:], "its sum": sum[:]} {
		forms[name+" in hex"] = hex.EncodeToString(hash)
		forms[name+" in base64"] = base64.RawStdEncoding.EncodeToString(hash)
		forms[name+" in base32"] = lowerBase32.EncodeToString(hash)
	}
	content := digest.Content{Version: digest.V1, Present: true, Data: map[string]digest.Sum{key: sum}}
	all := workload.Keys{All: true}
	for name, use := range map[string]workload.Consumption{
		"as environment": {Object: o, Env: all, Required: true}, "as files": {Object: o, Files: all, Required: true}, "in both ways": {Object: o, Env: all, Files: all, Required: true},
	} {
		_, hash, _ := strings.Cut(string(content.Consumed(use)), "-")
		forms["its digest "+name] = hash
		forms["its digest "+name+", in short"] = content.Consumed(use).Short()
	}
	forms["the name of its copy"] = snapshot.Name(o, content.Whole(o), 0)
	return forms
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// unkeyedSum is the sum of a value as docs/design/0004-digest.md has it of a ConfigMap's.
func unkeyedSum(o workload.Object, key, value string) digest.Sum {
	h := sha256.New()
	for _, field := range []string{"tidemark.dev/digest", "v1", "value", string(o.Kind), o.Namespace, o.Name, key, value} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		h.Write([]byte(field))
	}
	return digest.Sum(h.Sum(nil))
}

// A search that would find nothing proves nothing.
func TestFormsOfAValueAreThoseThatTidemarkWouldWrite(t *testing.T) {
	t.Parallel()
	o := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "door"}
	forms := formsOf(o, "MODE", "open")
	log := history.Log{Object: o}
	content := digest.OfConfigMap("shop", "door", map[string]string{"MODE": "open"}, nil)
	log.Observe(history.Observation{At: time.Unix(0, 0), Content: content})
	shards, err := history.Encode([]history.Log{log})
	if err != nil {
		t.Fatal(err)
	}
	whole := content.Whole(o)
	for form, text := range map[string]string{
		"its sum in base64": shards[0]["configmap.door"], "its digest in both ways": string(whole),
		"its digest in both ways, in short": whole.Short(), "the name of its copy": snapshot.Name(o, whole, 0),
	} {
		if !strings.Contains(text, forms[form]) || forms[form] == "" {
			t.Errorf("%s is %q, which is not in %s", form, forms[form], text)
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
		{"status"}, {"status", "--reports"}, {"explain", "deployment/web"}, {"explain", "deployment/web", "--reports"}, {"history", "deployment/web"}, {"diff", "deployment/web"}, {"diff", "deployment/web", "current", "applied"},
		{"rollback", "deployment/web", "--dry-run=client"}, {"verify", web.Pods[0].Name}, {"releases"}, {"gc", "--dry-run"},
		{"plan", "-f", before}, {"plan", "-f", after}, {"check", "-f", before, "--against", "live"}, {"check", "-f", after, "--against", before},
	} {
		for _, format := range []string{"", "wide", "fleet", "json", "yaml"} {
			args := command
			if format != "" {
				args = append(args[:len(args):len(args)], "-o", format)
			}
			s.says(s.t.Context(), said, args)
		}
	}
	// A watch goes on until it is stopped.
	for _, args := range [][]string{{"status", "--watch", "--interval", "1s"}, {"status", "--watch", "--interval", "1s", "-o", "fleet"}} {
		ctx, stop := context.WithTimeout(s.t.Context(), 5*time.Second)
		s.says(ctx, said, args)
		stop()
	}
	return said
}

// says runs a command and notes what it said.
func (s *scene) says(ctx context.Context, said map[string]string, args []string) {
	s.t.Helper()
	var out, errOut bytes.Buffer
	config := cli.Config{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: clock.RealClock{}}
	code := cli.Run(ctx, config, append(args[:len(args):len(args)],
		"-n", s.Namespace, "--kubeconfig", s.Lab.Kubeconfig(), "--cache-dir", filepath.Join(s.Lab.Status().Directory, "tidemark")))
	name := "tidemark " + strings.Join(args, " ")
	if code > 1 && !strings.Contains(errOut.String(), "is no format") {
		s.t.Errorf("%s: exit status %d: %s", name, code, &errOut)
	}
	said[name] = fmt.Sprint(&out, &errOut)
}
