package guard

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if key, value, _ := strings.Cut(p, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestTheStarterIsWhoTheCISystemNames(t *testing.T) {
	for want, variables := range map[string][]string{
		"ann":           {"GITHUB_TRIGGERING_ACTOR=ann", "GITLAB_USER_LOGIN=bob"},
		"bob":           {"GITLAB_USER_LOGIN=bob"},
		"carl@shop.com": {"BUILDKITE_BUILD_CREATOR_EMAIL=carl@shop.com"},
		"dora":          {"CIRCLE_USERNAME= dora \nx"},
		"abbott":        {"BUILD_USER_ID=abbott"},
		"robot9":        {"CIRCLE_USERNAME=robot9"},
		"":              {},
	} {
		if got := Starter(env(variables...)); got != want {
			t.Errorf("%v: %q, want %q", variables, got, want)
		}
	}
	for _, bot := range []string{"dependabot[bot]", "renovate[bot]", "project_123_bot_9f", "deploy-bot", "bot", "ci-bot@shop.com", "github-actions", "timer", "SCMChange"} {
		if got := Starter(env("GITHUB_TRIGGERING_ACTOR=" + bot)); got != "" {
			t.Errorf("%s is taken for a person", bot)
		}
	}
}

func TestTheJobIsLinkedTo(t *testing.T) {
	for want, variables := range map[string][]string{
		"https://github.com/shop/web/actions/runs/7/attempts/2": {"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=shop/web", "GITHUB_RUN_ID=7", "GITHUB_RUN_ATTEMPT=2"},
		"https://gitlab.com/shop/-/jobs/1":                      {"CI_JOB_URL=https://gitlab.com/shop/-/jobs/1"},
		"https://buildkite.com/shop/web/builds/1#j":             {"BUILDKITE_BUILD_URL=https://buildkite.com/shop/web/builds/1", "BUILDKITE_JOB_ID=j"},
		"https://circleci.com/1":                                {"CIRCLE_BUILD_URL=https://circleci.com/1"},
		"https://jenkins/job/1/":                                {"BUILD_URL=https://ann:S3cretMarker@jenkins/job/1/"},
		"":                                                      {"BUILD_URL=no link", "GITHUB_RUN_ID=7"},
	} {
		if got := Job(env(variables...)); got != want {
			t.Errorf("%v: %q, want %q", variables, got, want)
		}
	}
}

func TestAPodIsKnownByItsToken(t *testing.T) {
	dir := t.TempDir()
	write := func(payload string) {
		token := "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
		if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place := Place{ServiceAccount: dir, Mounts: filepath.Join(dir, "mountinfo")}
	if place.Pod() != nil {
		t.Error("a pod without a token")
	}
	write(`{"kubernetes.io":{"namespace":"ci","node":{"name":"n1","uid":"x"},"pod":{"name":"job","uid":"u1"}}}`)
	job := Pod{NamespacedName: types.NamespacedName{Namespace: "ci", Name: "job"}, UID: "u1", Node: "n1"}
	if got := place.Pod(); got == nil || *got != job {
		t.Errorf("pod %+v", got)
	}
	for _, other := range []string{`{}`, `no`, `{"kubernetes.io":{"namespace":"ci","serviceaccount":{"name":"x"}}}`} {
		if write(other); place.Pod() != nil {
			t.Errorf("%s names a pod", other)
		}
	}
}

func TestAContainerIsKnownByWhatTheKubeletMountsIntoIt(t *testing.T) {
	for name, c := range map[string]struct{ mounts, want string }{
		"a root file system of its own": {"1002 990 0:211 / / rw,relatime - overlay overlay rw\n" +
			"1010 1002 8:1 /var/lib/kubelet/pods/u1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n" +
			"1011 1002 8:1 /var/lib/kubelet/pods/u1/containers/build/1f2e3d4c /dev/termination-log rw,relatime - ext4 /dev/sda1 rw\n", "build"},
		"/var on a disk of its own":     {"7 1 8:2 /lib/kubelet/pods/u1/containers/runner/0 /dev/termination-log rw - xfs /dev/sdb rw\n", "runner"},
		"a message mounted elsewhere":   {"7 1 8:2 /k/pods/u1/containers/runner/0 /tmp/last\\040words rw - xfs /dev/sdb rw\n", "runner"},
		"another pod's, mounted inside": {"7 1 8:2 /lib/kubelet/pods/u2/containers/runner/0 /mnt rw - xfs /dev/sdb rw\n", ""},
		"all containers, mounted":       {"7 1 8:2 /lib/kubelet/pods/u1/containers /mnt rw - xfs /dev/sdb rw\n", ""},
		"nothing that tells":            {"1 0 8:1 / / rw - ext4 /dev/sda1 rw\nbroken\n", ""},
	} {
		file := filepath.Join(t.TempDir(), "mountinfo")
		if err := os.WriteFile(file, []byte(c.mounts), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (Place{Mounts: file}).container("u1"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// place is a cluster with a job's pod on a node.
func place(change func(*corev1.Pod, *corev1.Node, *policyv1.PodDisruptionBudget)) client.WithWatch {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "job", UID: "u1", Labels: map[string]string{"app": "runner"}}}
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "node-1", ptr.To[int64](3600)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{}}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "runners"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "runner"}}
	change(pod, node, budget)
	return fake.NewClientBuilder().WithObjects(pod, node, budget).Build()
}

var job = Pod{NamespacedName: types.NamespacedName{Namespace: "ci", Name: "job"}, UID: "u1"}

func TestAPlaceThatCannotProtectADeployIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod, *corev1.Node, *policyv1.PodDisruptionBudget)
		want   []string
	}{
		"a good place": {func(*corev1.Pod, *corev1.Node, *policyv1.PodDisruptionBudget) {}, nil},
		"too little time to end": {func(p *corev1.Pod, _ *corev1.Node, _ *policyv1.PodDisruptionBudget) {
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
		}, []string{"terminationGracePeriodSeconds"}},
		"no budget": {func(_ *corev1.Pod, _ *corev1.Node, b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels["app"] = "other"
		}, []string{"no PodDisruptionBudget covers pod ci/job"}},
		"a spot node without a budget": {func(_ *corev1.Pod, n *corev1.Node, b *policyv1.PodDisruptionBudget) {
			n.Labels["eks.amazonaws.com/capacityType"] = "SPOT"
			b.Spec.Selector.MatchLabels["app"] = "other"
		}, []string{"no PodDisruptionBudget covers", "node node-1 is a Spot Instance of AWS"}},
		"a preemptible node": {func(_ *corev1.Pod, n *corev1.Node, _ *policyv1.PodDisruptionBudget) {
			n.Labels["cloud.google.com/gke-preemptible"] = "true"
		}, []string{"a preemptible VM of Google Cloud"}},
	} {
		got := job.Warnings(t.Context(), place(c.change), 30*time.Minute)
		if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatThePlaceForbidsToSeeIsOneNote(t *testing.T) {
	inner := place(func(*corev1.Pod, *corev1.Node, *policyv1.PodDisruptionBudget) {})
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	c := interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	})
	known := job
	known.Node = "node-1"
	got := known.Warnings(t.Context(), c, time.Minute)
	if len(got) != 1 || !strings.Contains(got[0], "get pod ci/job (forbidden), get node node-1 (forbidden)") {
		t.Errorf("%q", got)
	}
	if known.KnownTo(t.Context(), c) || !known.KnownTo(t.Context(), inner) {
		t.Error("who knows the pod")
	}
	known.UID = "u2"
	if known.KnownTo(t.Context(), inner) {
		t.Error("another pod of the name is taken for it")
	}
}
