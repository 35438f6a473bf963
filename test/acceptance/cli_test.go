package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cli"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// marker is the value of a Secret, which no output may hold.
const marker = "marker-open-sesame"

// shopFront reads a ConfigMap and a Secret.
const shopFront = `
apiVersion: v1
kind: ConfigMap
metadata: {name: front}
data: {MODE: one, LIMIT: "5"}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {password: ` + marker + `}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers:
      - name: app
        image: tidemark-sample
        envFrom: [{configMapRef: {name: front}}]
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: door, key: password}}}]
`

// viewer is a user who may read one namespace, but no Secrets, no nodes and no other namespace.
const viewer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
`

// bare is a lab on which nothing of Tidemark's is installed, with a namespace on it.
type bare struct {
	*scene
	// said is all that the command line has printed.
	said strings.Builder
}

func openBare(t *testing.T) *bare {
	t.Helper()
	lab := labtest.Start(t, client.Options{Nodes: 1})
	s, err := scenario.Open(t.Context(), lab, "shop", "")
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{scene: &scene{Scene: s, t: t}}
	b.apply(shopFront)
	b.apply(viewer)
	b.rolledOut("deployment/front")
	return b
}

// tidemark runs the command line in the namespace.
func (b *bare) tidemark(ctx context.Context, out *safeBuffer, args ...string) (code int, errOut string) {
	e := &safeBuffer{}
	code = cli.Run(ctx, cli.Config{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: e}, Clock: clock.RealClock{}},
		append(args, "-n", b.Namespace, "--kubeconfig", b.Lab.Kubeconfig(), "--cache-dir", b.t.TempDir()))
	b.said.WriteString(out.String() + e.String())
	return code, e.String()
}

// asViewer runs it with the rights of the viewer.
func (b *bare) asViewer(args ...string) (code int, out, errOut string) {
	b.t.Helper()
	o := &safeBuffer{}
	code, errOut = b.tidemark(b.t.Context(), o, append(args, "--as", "viewer")...)
	return code, o.String(), errOut
}

// safeBuffer is a buffer that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestTheCommandLineWithNothingInstalled(t *testing.T) {
	b := openBare(t)

	code, out, errOut := b.asViewer("status", "--exit-code")
	if code != 0 || !strings.Contains(out, "deployment/front") {
		t.Errorf("before any edit: exit status %d, printed\n%s%s", code, out, errOut)
	}
	if n := strings.Count(errOut, "remark: missing the right to list secrets in namespace shop"); n != 1 {
		t.Errorf("%d remarks of the missing right to list secrets, want 1:\n%s", n, errOut)
	}

	watched, stop := b.watch()
	b.eventually("the watch to show the fleet", contains(watched, "2 unknown"))
	b.kubectl("wait", "pod", "-l", "app=front", "--for=condition=Ready")
	b.must(b.Aged(t.Context(), apart))
	b.set("front", "MODE", "two")
	b.eventually("status to hint at the edit", func() error {
		code, out, errOut := b.asViewer("status", "--exit-code")
		if code != 1 || !strings.Contains(out, "possibly-dormant") {
			return fmt.Errorf("exit status %d, printed\n%s%s", code, out, errOut)
		}
		return nil
	})
	b.eventually("the watch to show the change", contains(watched, "possibly-dormant"))
	if code := stop(); code != 0 {
		t.Errorf("the interrupted watch ended with exit status %d", code)
	}
	b.explains()
	for _, format := range []string{"wide", "json", "yaml", "name"} {
		if code, out, errOut := b.asViewer("status", "-o", format); code != 0 || !strings.Contains(out, "front") {
			t.Errorf("status -o %s: exit status %d, printed\n%s%s", format, code, out, errOut)
		}
	}
	if strings.Contains(b.said.String(), marker) {
		t.Error("the command line printed a Secret's value")
	}
}

func (b *bare) explains() {
	b.t.Helper()
	for _, as := range []string{"viewer", "admin"} {
		o := &safeBuffer{}
		args := []string{"explain", "deployment/front"}
		if as == "viewer" {
			args = append(args, "--as", as)
		}
		code, errOut := b.tidemark(b.t.Context(), o, args...)
		for _, want := range []string{"possibly dormant", "envFrom", `"two"`, `"5"`, "password", "write-times"} {
			if code != 0 || !strings.Contains(o.String(), want) {
				b.t.Errorf("explain as %s: exit status %d, want %q in\n%s%s", as, code, want, o, errOut)
			}
		}
	}
}

// watch runs status --watch until it is stopped.
func (b *bare) watch() (out *safeBuffer, stop func() int) {
	ctx, interrupt := context.WithCancel(b.t.Context())
	out = &safeBuffer{}
	ended := make(chan int, 1)
	go func() {
		code, _ := b.tidemark(ctx, out, "status", "--watch", "--interval", "200ms", "--as", "viewer")
		ended <- code
	}()
	return out, func() int { interrupt(); return <-ended }
}

func contains(b *safeBuffer, text string) func() error {
	return func() error {
		if s := b.String(); !strings.Contains(s, text) {
			return fmt.Errorf("it shows\n%s", s)
		}
		return nil
	}
}

func TestThePluginOfKubectl(t *testing.T) {
	dir := t.TempDir()
	args := append(append([]string{"build"}, buildFlags...), "-o", filepath.Join(dir, "kubectl-tidemark"), "tidemark.dev/tidemark/cmd/tidemark")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := open(t, "plugin", "")
	s.apply(strings.ReplaceAll(shopFront, "replicas: 2", "replicas: 0"))

	s.plugin("kubectl tidemark pause deployment/web", "pause", "--help")
	s.plugin("deployment/front\n", "__complete", "status", "-n", s.Namespace, "")
	s.plugin("front\n", "__complete", "status", "-n", s.Namespace, "deployment", "")

	paused := func() (annotation, by, label string) {
		u := s.get("deployment/front")
		return u.GetAnnotations()[v1.AnnotationPaused], u.GetAnnotations()[v1.AnnotationPausedBy], u.GetLabels()[v1.LabelPaused]
	}
	s.plugin("is paused", "pause", "deployment/front", "--reason", "load test", "-n", s.Namespace)
	if annotation, by, label := paused(); annotation != "true" || label != "true" || !strings.HasSuffix(by, ": load test") {
		t.Errorf("paused %q by %q, label %q", annotation, by, label)
	}
	s.plugin("is paused already", "pause", "deployment/front", "--reason", "another", "-n", s.Namespace)
	s.plugin(",paused", "status", "deployment/front", "-n", s.Namespace)
	s.plugin("(dry run)", "resume", "deployment/front", "--dry-run", "-n", s.Namespace)
	if annotation, _, _ := paused(); annotation != "true" {
		t.Error("a dry run resumed it")
	}
	s.plugin("at most one rollout", "resume", "deployment/front", "-n", s.Namespace)
	if annotation, by, label := paused(); annotation+by+label != "" {
		t.Errorf("still paused %q by %q, label %q", annotation, by, label)
	}
	s.refuses("it does not exist", "pause", "deployment/nothere", "-n", s.Namespace)
	s.refuses("name what to pause", "pause")
}

// plugin runs kubectl tidemark, which must succeed and print the text.
func (s *scene) plugin(want string, args ...string) {
	s.t.Helper()
	out, _, err := s.Lab.Kubectl(s.t.Context(), append([]string{"tidemark"}, args...)...)
	s.must(err)
	if !strings.Contains(out, want) {
		s.t.Errorf("kubectl tidemark %s prints %q, want %q in it", strings.Join(args, " "), out, want)
	}
}

// refuses runs kubectl tidemark, which must end with exit status 2 and say the text.
func (s *scene) refuses(want string, args ...string) {
	s.t.Helper()
	_, errOut, err := s.Lab.Kubectl(s.t.Context(), append([]string{"tidemark"}, args...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(errOut, want) {
		s.t.Errorf("kubectl tidemark %s: %v, said %q, want exit status 2 and %q", strings.Join(args, " "), err, errOut, want)
	}
}
