//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/guard"
	"tidemark.dev/tidemark/internal/helmline"
)

// passwordMarker stands for a password among the arguments and in the environment.
const passwordMarker = "S3cretMarker"

// guardedCluster is an API server that knows leases and Helm's records, as far as a guard uses it.
type guardedCluster struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	// records are the labels of Helm's records by name.
	records map[string]map[string]string
	// objects are others that are there, by path.
	objects map[string]any
	// forbidden are resources that nobody may touch.
	forbidden []string
	// driver is the value of HELM_DRIVER.
	driver string
	// traffic is all that was sent.
	traffic strings.Builder
	writes  int
}

func newGuardedCluster(t *testing.T) *guardedCluster {
	c := &guardedCluster{t: t, records: map[string]map[string]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *guardedCluster) record(revision int, status string) {
	c.records[fmt.Sprintf("sh.helm.release.v1.web.v%d", revision)] = map[string]string{
		"owner": "helm", "name": "web", "version": strconv.Itoa(revision), "status": status,
	}
}

func (c *guardedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(&c.traffic, "%s %s %s %s\n", r.Method, r.URL, r.Header, body)
	w.Header().Set("Content-Type", "application/json")
	if object, has := c.objects[r.URL.Path]; has {
		c.answer(w, object)
		return
	}
	part := strings.Split(r.URL.Path, "/")
	resource := part[slices.Index(part, "namespaces")+2]
	switch {
	case slices.Contains(c.forbidden, resource):
		c.refuse(w, http.StatusForbidden, "Forbidden")
	case resource == "leases":
		c.serveLease(w, r.Method, body)
	case resource == "secrets" && !strings.HasSuffix(r.URL.Path, "/secrets"):
		c.answer(w, map[string]any{"kind": "Secret", "apiVersion": "v1", "data": map[string]any{
			"release": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("{}")))),
		}})
	case resource == "secrets":
		var items []any
		for name, labels := range c.records {
			items = append(items, map[string]any{"metadata": map[string]any{
				"name": name, "namespace": "prod", "labels": labels, "creationTimestamp": "2026-11-30T11:00:00Z",
			}})
		}
		c.answer(w, map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items})
	default:
		c.answer(w, map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{}})
	}
}

func (c *guardedCluster) serveLease(w http.ResponseWriter, method string, body []byte) {
	if method == http.MethodGet && c.lease == nil {
		c.refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	if method != http.MethodGet {
		c.lease = &coordinationv1.Lease{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, c.lease); err != nil {
			c.t.Errorf("%v: %s", err, body)
		}
		c.version++
		c.writes++
		c.lease.ResourceVersion, c.lease.Kind, c.lease.APIVersion = strconv.Itoa(c.version), "Lease", "coordination.k8s.io/v1"
	}
	c.answer(w, c.lease)
}

func (c *guardedCluster) answer(w http.ResponseWriter, document any) {
	if err := json.NewEncoder(w).Encode(document); err != nil {
		c.t.Error(err)
	}
}

func (c *guardedCluster) refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	c.answer(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason})
}

// program puts a program in place of helm, and gives its path. It writes its arguments to standard output.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helm")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// guard runs the guard with its flags and a command.
func (c *guardedCluster) guard(args ...string) (code int, out, errOut string) {
	c.t.Helper()
	return c.guardAt(guard.Place{ServiceAccount: c.t.TempDir()}, &bytes.Buffer{}, args...)
}

// guardAt runs it at a place, with something to read from.
func (c *guardedCluster) guardAt(place guard.Place, in io.Reader, args ...string) (code int, out, errOut string) {
	c.t.Helper()
	var o, e bytes.Buffer
	code = Run(c.t.Context(), Config{
		IOStreams: genericiooptions.IOStreams{In: in, Out: &o, ErrOut: &e}, Clock: clock.RealClock{}, Place: place,
		Getenv: func(name string) string {
			return map[string]string{"GITHUB_TRIGGERING_ACTOR": "ann", "HELM_KUBEAPISERVER": c.url, "HELM_DRIVER": c.driver, "SECRET": passwordMarker}[name]
		},
	}, append([]string{"guard"}, args...))
	return code, o.String(), e.String()
}

func TestAGuardedCommandRunsUnderItsLease(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := newGuardedCluster(t)
	c.record(6, "superseded")
	c.record(7, "deployed")
	code, out, errOut := c.guard("--policy", "forward", "--allow-policy", "forward", "--", program(t, `echo "$@"; echo "id $TIDEMARK_DEPLOY"; exit 9`),
		"upgrade", "web", "./chart", "-n", "prod", "--set", "password="+passwordMarker, "--timeout", "20m")
	id := c.lease.Labels[v1.LabelDeploy]
	if code != 9 || errOut != "" {
		t.Errorf("exit status %d, said %q", code, errOut)
	}
	if want := "upgrade --labels=tidemark.dev/deploy=" + id + " web ./chart -n prod --set password=" + passwordMarker + " --timeout 20m\nid " + id + "\n"; out != want {
		t.Errorf("helm was run with %q, want %q", out, want)
	}
	a := c.lease.Annotations
	if c.lease.Namespace != "prod" || c.lease.Name != "tidemark-deploy-web" || a[v1.AnnotationDeployRevision] != "8" || a[v1.AnnotationDeployExitStatus] != "9" ||
		a[v1.AnnotationDeployStartedBy] != "ann" || a[v1.AnnotationDeployTimeout] != "1h20m0s" || a[v1.AnnotationDeployPolicy] != "forward" || *c.lease.Spec.LeaseDurationSeconds != 180 {
		t.Errorf("lease %+v", c.lease)
	}
	if c.writes != 3 {
		t.Errorf("%d writes; taking, starting and ending are 3", c.writes)
	}
	if strings.Contains(c.traffic.String(), passwordMarker) {
		t.Errorf("the password was sent:\n%s", c.traffic.String())
	}
}

func TestWhatChangesNoReleaseTakesNoLease(t *testing.T) {
	c := newGuardedCluster(t)
	for _, args := range [][]string{{"list"}, {"upgrade", "web", "./chart", "--dry-run=server"}, {"template", "web", "./chart"}} {
		code, out, errOut := c.guard(append([]string{"--", program(t, `echo "$@"`)}, args...)...)
		if code != 0 || out != strings.Join(args, " ")+"\n" || errOut != "" || c.traffic.Len() > 0 {
			t.Errorf("%v: exit status %d, printed %q %q, sent %q", args, code, out, errOut, c.traffic.String())
		}
	}
}

func TestWithoutALeaseTheCommandRunsAllTheSame(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	helm := program(t, "echo ran")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]*guardedCluster{"no right": {forbidden: []string{"leases", "secrets", "configmaps"}}, "no API": {url: gone.URL}} {
		c.t, c.records = t, map[string]map[string]string{}
		if c.url == "" {
			server := httptest.NewServer(c)
			t.Cleanup(server.Close)
			c.url = server.URL
		}
		code, out, errOut := c.guard("--", helm, "upgrade", "web", "./chart", "--set", "password="+passwordMarker)
		if code != 0 || out != "ran\n" || !strings.Contains(errOut, "the deploy is not guarded") || !strings.Contains(errOut, "whether release default/web is pending is not known") {
			t.Errorf("%s: exit status %d, printed %q, said %q", name, code, out, errOut)
		}
		code, out, errOut = c.guard("--require-lease", "--", helm, "upgrade", "web", "./chart", "--set", "password="+passwordMarker)
		if code != exitGuard || out != "" || !strings.Contains(errOut, "no lease: ") || strings.Contains(errOut, passwordMarker) {
			t.Errorf("%s, and a lease required: exit status %d, printed %q, said %q", name, code, out, errOut)
		}
	}
}

func TestAPendingReleaseIsNotDeployedTo(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := newGuardedCluster(t)
	c.record(1, "deployed")
	c.record(2, "pending-upgrade")
	code, out, errOut := c.guard("--policy", "rollback", "--", program(t, "echo ran"), "upgrade", "web", "./chart", "-n", "prod")
	if code != exitGuard || out != "" || !strings.Contains(errOut, "release prod/web is pending-upgrade since 2026-11-30T11:00:00Z, and that is unguarded") {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
	if got := c.lease.Annotations[v1.AnnotationDeployExitStatus]; got != "125" {
		t.Errorf("the lease tells of exit status %q", got)
	}
}

// What the lease tells of the deploy before may be all that proves that deploy's death: it outlives a look that failed.
func TestALeaseThatTellsOfALeftDeployIsGivenBackWhereReleasesCannotBeListed(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, c := range map[string]struct {
		ended, status string
		runs          bool
	}{
		"killed":    {"", "", false},
		"failed":    {"2026-11-30T12:00:00Z", "1", false},
		"succeeded": {"2026-11-30T12:00:00Z", "0", true},
	} {
		cluster := newGuardedCluster(t)
		cluster.forbidden = []string{"secrets", "configmaps"}
		duration := int32(1)
		cluster.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "prod", Name: "tidemark-deploy-web", ResourceVersion: "1", Labels: map[string]string{v1.LabelDeploy: "d1"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: time.Now().Add(-time.Hour)}}},
			Annotations:   map[string]string{v1.AnnotationDeployBegan: "2026-11-30T11:00:00Z", v1.AnnotationDeployRevision: "2"},
		}}
		cluster.lease.Spec.LeaseDurationSeconds = &duration
		if c.ended != "" {
			cluster.lease.Annotations[v1.AnnotationDeployEnded], cluster.lease.Annotations[v1.AnnotationDeployExitStatus] = c.ended, c.status
		}
		code, out, errOut := cluster.guard("--", program(t, "echo ran"), "upgrade", "web", "./chart", "-n", "prod")
		if c.runs {
			if code != 0 || out != "ran\n" {
				t.Errorf("%s: exit status %d, printed %q, said %q", name, code, out, errOut)
			}
			continue
		}
		if code != exitGuard || out != "" || !strings.Contains(errOut, "whether release prod/web is pending is not known (missing the right to list") {
			t.Errorf("%s: exit status %d, printed %q, said %q", name, code, out, errOut)
		}
		a := cluster.lease.Annotations
		if cluster.lease.Labels[v1.LabelDeploy] != "d1" || a[v1.AnnotationDeployRevision] != "2" || a[v1.AnnotationDeployExitStatus] != c.status {
			t.Errorf("%s: the lease is %+v", name, cluster.lease)
		}
	}
}

// Most who deploy may list Secrets and no ConfigMaps: there a first install is one. Where Helm's own kind may not be listed, nothing is known.
func TestAReleaseIsNotTakenForAbsentWhereItsRecordsCannotBeListed(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, c := range map[string]struct {
		forbidden, driver string
		known             bool
	}{
		"no ConfigMaps, records in Secrets":    {forbidden: "configmaps", known: true},
		"no Secrets, records in Secrets":       {forbidden: "secrets"},
		"no Secrets, records in ConfigMaps":    {forbidden: "secrets", driver: "configmap", known: true},
		"no ConfigMaps, records in ConfigMaps": {forbidden: "configmaps", driver: "configmap"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newGuardedCluster(t)
			cluster.forbidden, cluster.driver = []string{c.forbidden}, c.driver
			code, out, errOut := cluster.guard("--", program(t, "echo ran"), "upgrade", "--install", "web", "./chart", "-n", "prod")
			if code != 0 || out != "ran\n" {
				t.Errorf("exit status %d, printed %q", code, out)
			}
			if known := !strings.Contains(errOut, "is not known"); known != c.known {
				t.Errorf("it said %q", errOut)
			}
			if got := cluster.lease.Annotations[v1.AnnotationDeployRevision]; (got == "1") != c.known {
				t.Errorf("the lease says that revision %q is written", got)
			}
		})
	}
}

// jobPlace has the guard run in container build of pod ci/job on node spot-1, which protects it from nothing.
func (c *guardedCluster) jobPlace() guard.Place {
	c.t.Helper()
	dir := c.t.TempDir()
	claims := `{"kubernetes.io":{"namespace":"ci","node":{"name":"spot-1"},"pod":{"name":"job","uid":"u1"}}}`
	for name, text := range map[string]string{
		"token":     "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s",
		"mountinfo": "7 1 8:2 /lib/kubelet/pods/u1/containers/build/0 /dev/termination-log rw - xfs /dev/sdb rw\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	meta := func(kind, name string, more map[string]any) map[string]any {
		more["name"] = name
		return map[string]any{"kind": kind, "apiVersion": "v1", "metadata": more}
	}
	pod := meta("Pod", "job", map[string]any{"namespace": "ci", "uid": "u1"})
	pod["spec"] = map[string]any{"nodeName": "spot-1", "terminationGracePeriodSeconds": 30}
	c.objects = map[string]any{
		"/api/v1/namespaces/ci/pods/job": pod,
		"/api/v1/nodes/spot-1":           meta("Node", "spot-1", map[string]any{"labels": map[string]any{"karpenter.sh/capacity-type": "spot"}}),
	}
	return guard.Place{ServiceAccount: dir, Mounts: filepath.Join(dir, "mountinfo"), Cluster: func() (*rest.Config, error) {
		return &rest.Config{Host: c.url, BearerToken: "the-jobs-own"}, nil
	}}
}

func TestAGuardInAPodTellsOfItAndOfWhatDoesNotProtectIt(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := newGuardedCluster(t)
	place := c.jobPlace()
	upgrade := []string{"--", program(t, "exit 0"), "upgrade", "web", "./chart", "-n", "prod"}
	code, _, errOut := c.guardAt(place, &bytes.Buffer{}, upgrade...)
	for _, want := range []string{
		"pod ci/job has 30s to end when it is evicted, and the deploy may take 30m0s", "no PodDisruptionBudget covers pod ci/job",
		"node spot-1 is spot capacity of Karpenter's",
	} {
		if code != 0 || strings.Count(errOut, "remark: "+want) != 1 {
			t.Errorf("exit status %d, not said once: %q; said %q", code, want, errOut)
		}
	}
	a := c.lease.Annotations
	if a[v1.AnnotationDeployPod] != "ci/job/u1" || a[v1.AnnotationDeployContainer] != "build" || a[v1.AnnotationDeployNode] != "spot-1" {
		t.Errorf("the lease tells of %v", a)
	}
	for line := range strings.Lines(c.traffic.String()) {
		own := strings.Contains(line, "the-jobs-own")
		if !own && strings.Contains(line, "/poddisruptionbudgets") || own && strings.Contains(line, "/leases") {
			t.Errorf("with the rights of another: %s", line)
		}
	}

	c.objects, c.forbidden = nil, []string{"pods"} // so in a cluster that is not the job's, or where the job may see nothing
	if code, _, errOut := c.guardAt(place, &bytes.Buffer{}, upgrade...); code != 0 || strings.Count(errOut, "remark: whether this place protects the deploy is not known in full") != 1 {
		t.Errorf("exit status %d, said %q", code, errOut)
	}
	if got := c.lease.Annotations[v1.AnnotationDeployPod] + c.lease.Annotations[v1.AnnotationDeployContainer]; got != "" {
		t.Errorf("the lease tells of %s, which the release's cluster does not have", got)
	}
}

// terminal is one at which nobody types.
func terminal(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What outlives its guard must not be taken for dead: neither when the guard says that its command ended, nor when it is silent
// and the deploy's timeout is past.
func TestWhatMayOutliveItsGuardIsNeverRecoveredByItself(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, c := range map[string]struct {
		command             string
		inPod, terminal     bool
		labelled, timeProof bool
	}{
		"helm itself":                               {"upgrade", false, false, true, true},
		"helm itself at a terminal":                 {"upgrade", false, true, true, true},
		"a plugin's helm":                           {"secrets upgrade", false, false, false, false},
		"a plugin's helm at a terminal":             {"secrets upgrade", false, true, false, false},
		"a plugin's helm in a pod":                  {"secrets upgrade", true, false, true, false},
		"a plugin's helm in a pod, at its terminal": {"secrets upgrade", true, true, false, false},
	} {
		cluster := newGuardedCluster(t)
		place, in := guard.Place{ServiceAccount: t.TempDir()}, io.Reader(&bytes.Buffer{})
		if c.inPod {
			place = cluster.jobPlace()
		}
		if c.terminal {
			in = terminal(t)
		}
		args := append([]string{"--progress=false", "--", program(t, `echo "$@"`)}, strings.Fields(c.command)...)
		code, out, errOut := cluster.guardAt(place, in, append(args, "web", "./chart", "-n", "prod")...)
		_, limited := cluster.lease.Annotations[v1.AnnotationDeployTimeout]
		if code != 0 || strings.Contains(out, "--labels=") != c.labelled || limited != c.timeProof {
			t.Errorf("%s: exit status %d, helm got %q, the lease's timeout is proof: %t", name, code, out, limited)
		}
		if said := strings.Contains(errOut, "is only reported"); said == c.labelled {
			t.Errorf("%s: said %q", name, errOut)
		}
	}
}

func TestARecoveryHasTheLimitsOfHelm(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     int
		timeout  time.Duration
	}{
		"the guarded helm's own": {"25", []string{"helm", "upgrade", "web", "./chart", "--history-max=3", "--timeout=7m"}, 3, 7 * time.Minute},
		"helm's variable":        {"25", []string{"helm", "upgrade", "web", "./chart"}, 25, 5 * time.Minute},
		"a script's":             {"0", []string{"./deploy.sh"}, 0, 0},
		"helm's default":         {"", []string{"helm", "upgrade", "web", "./chart"}, 10, 5 * time.Minute},
	} {
		s := &session{Config: Config{Getenv: func(variable string) string { return map[string]string{"HELM_MAX_HISTORY": c.variable}[variable] }}}
		f := &guardFlags{session: s, policy: "rollback", leaseDuration: time.Minute}
		if !helmline.Is(c.args) {
			f.release = "web"
		}
		o, err := f.toOptions(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if q := o.request(); q.HistoryMax != c.want || q.Timeout != c.timeout {
			t.Errorf("%s: a history of %d and a timeout of %s, want %d and %s", name, q.HistoryMax, q.Timeout, c.want, c.timeout)
		}
	}
}

func TestASecondGuardIsRefused(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := newGuardedCluster(t)
	helm := program(t, "echo started; sleep 600")
	ctx, stop := context.WithCancel(t.Context())
	started, w := io.Pipe()
	go func() {
		Run(ctx, Config{
			IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: w, ErrOut: io.Discard}, Clock: clock.RealClock{},
			Getenv: func(name string) string { return map[string]string{"HELM_KUBEAPISERVER": c.url}[name] },
		}, []string{"guard", "--timeout", "8s", "--started-by", "bob", "--", helm, "upgrade", "web", "./chart"})
		_ = w.Close()
	}()
	if _, err := io.ReadFull(started, make([]byte, len("started"))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, started) }()
	code, out, errOut := c.guard("--timeout", "5s", "--", helm, "upgrade", "web", "./chart")
	if code != exitGuard || out != "" || !strings.Contains(errOut, "release default/web is being deployed by bob") {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
	code, out, errOut = c.guard("--wait-for-lock=1m", "--", program(t, "echo second"), "upgrade", "web", "./chart")
	if code != 0 || out != "second\n" || !strings.Contains(errOut, "waiting for its end") {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
	stop()
}

func TestWrongCallsOfGuardHaveTheGuardsExitStatus(t *testing.T) {
	c := newGuardedCluster(t)
	for args, want := range map[string]string{
		"":                                             "name the command to run after --",
		"--policy force -- helm upgrade web c":         `"force" is no policy`,
		"--allow-policy x -- helm upgrade web c":       `"x" is no policy`,
		"--lease-duration 1500ms -- helm list":         "whole number of seconds",
		"--timeout -1s -- helm list":                   "cannot be negative",
		"--frobnicate -- helm list":                    "unknown flag",
		"-- ./deploy.sh":                               "name the release that ./deploy.sh deploys with --release",
		"--release Web -- ./deploy.sh":                 "no name of a release",
		"-- helm frobnicate web":                       "name it with --release",
		"-- helm upgrade --frob web " + passwordMarker: "flag --frob is not known here",
		"-n prod -- helm upgrade web c":                "come from helm's own flags",
		"--release db -- helm upgrade web c":           "leave --release out",
		"--require-lease -- helm install ./chart -g":   "a release whose name helm makes up",
	} {
		code, out, errOut := c.guard(strings.Fields(args)...)
		if code != exitGuard || out != "" || !strings.Contains(errOut, want) || strings.Contains(errOut, passwordMarker) {
			t.Errorf("guard %s: exit status %d, printed %q, said %q, want %q", args, code, out, errOut, want)
		}
	}
}

func TestACommandThatDoesNotStartHasTheStatusOfEnv(t *testing.T) {
	c := newGuardedCluster(t)
	none := filepath.Join(t.TempDir(), "helm")
	if code, _, errOut := c.guard("--", none, "list"); code != 127 || !strings.Contains(errOut, "run the command: ") {
		t.Errorf("exit status %d, said %q", code, errOut)
	}
	if err := os.WriteFile(none, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := c.guard("--", none, "list"); code != 126 {
		t.Errorf("exit status %d", code)
	}
}

func TestASignalThatEndsTheContextFirstIsStillTheGuards(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	o := &guardOptions{session: &session{Config: Config{Clock: now}}}
	signals := make(chan os.Signal)
	if got := o.signalled(t.Context(), signals); got != nil {
		t.Errorf("got %v without a signal", got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { signals <- syscall.SIGTERM }() // to whoever waits
	if got := o.signalled(ctx, signals); got != syscall.SIGTERM {
		t.Errorf("got %v, want the signal that comes after the context's end", got)
	}

	none := make(chan os.Signal)
	go func() {
		for !now.HasWaiters() {
			runtime.Gosched()
		}
		now.Step(signalLate)
	}()
	if got := o.signalled(ctx, none); got != nil {
		t.Errorf("got %v, want none after %s", got, signalLate)
	}
}

func TestASignalBeforeTheCommandEndsTheGuard(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	c := newGuardedCluster(t)
	duration := int32(180)
	c.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tidemark-deploy-web", ResourceVersion: "1"}}
	c.lease.Spec.LeaseDurationSeconds = &duration
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM) // as the program's main does
	defer stop()
	waiting, w := io.Pipe()
	go func() {
		_, _ = io.ReadFull(waiting, make([]byte, len("remark: ")))
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, waiting)
	}()
	code := Run(ctx, Config{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: w}, Clock: clock.RealClock{},
		Getenv: func(name string) string { return map[string]string{"HELM_KUBEAPISERVER": c.url}[name] },
	}, []string{"guard", "--wait-for-lock=1h", "--", program(t, "echo ran"), "upgrade", "web", "./chart"})
	if code != 143 || c.writes > 0 {
		t.Errorf("exit status %d, %d writes", code, c.writes)
	}
}
