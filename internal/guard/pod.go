package guard

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Place is how a program finds the pod that it runs in, if it runs in one. The zero value goes by what a kubelet gives each
// container.
type Place struct {
	// ServiceAccount is the directory with the token of the pod's service account. Default
	// /var/run/secrets/kubernetes.io/serviceaccount.
	ServiceAccount string
	// Mounts is the file that lists the program's mounts, as proc(5) has them. Default /proc/self/mountinfo.
	Mounts string
	// Cluster leads to the API server of the pod's cluster with the rights of its service account. Default [rest.InClusterConfig].
	Cluster func() (*rest.Config, error)
}

// Pod is the pod that a guard runs in.
type Pod struct {
	types.NamespacedName
	UID types.UID
	// Container that it runs in; "" where that is not known.
	Container string
	// Node that it runs on; "" where that is not known.
	Node string
}

// Pod reads in which pod this program runs from the token of the pod's service account, which names it; nil where it runs in
// none, or has no token.
func (p Place) Pod() *Pod {
	dir := cmp.Or(p.ServiceAccount, "/var/run/secrets/kubernetes.io/serviceaccount")
	token, err := os.ReadFile(filepath.Join(dir, "token")) //nolint:gosec // the kubelet put it there
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if err != nil || len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	type named struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	}
	var claims struct {
		Kubernetes struct {
			Namespace string `json:"namespace"`
			Pod       named  `json:"pod"`
			Node      named  `json:"node"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return nil
	}
	k := claims.Kubernetes
	if k.Namespace == "" || k.Pod.Name == "" || k.Pod.UID == "" {
		return nil
	}
	return &Pod{types.NamespacedName{Namespace: k.Namespace, Name: k.Pod.Name}, k.Pod.UID, p.container(k.Pod.UID), k.Node.Name}
}

// container is the container of the pod in which this program runs; "" where that cannot be told. The kubelet mounts a file of
// its own for the termination message into each container, from pods/UID/containers/NAME below its directory.
func (p Place) container(pod types.UID) string {
	mounts, err := os.ReadFile(cmp.Or(p.Mounts, "/proc/self/mountinfo"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		const root = 3 // the field with the path of what is mounted
		fields := strings.Fields(line)
		if len(fields) <= root {
			continue
		}
		_, below, is := strings.Cut(fields[root], "/pods/"+string(pod)+"/containers/")
		if name, _, isDir := strings.Cut(below, "/"); is && isDir {
			return name
		}
	}
	return ""
}

// Config leads to the API server of the pod's cluster.
func (p Place) Config() (*rest.Config, error) {
	if p.Cluster != nil {
		return p.Cluster()
	}
	return rest.InClusterConfig()
}

// KnownTo reports whether the cluster has this very pod. In another cluster it would be missed, and its guard taken for dead.
func (p Pod) KnownTo(ctx context.Context, c client.Reader) bool {
	pod := &corev1.Pod{}
	return c.Get(ctx, p.NamespacedName, pod) == nil && pod.UID == p.UID
}

// interruptible are the labels by which the large clouds mark nodes that they take back at any time.
var interruptible = []struct{ label, value, name string }{
	{"cloud.google.com/gke-spot", "true", "a Spot VM of Google Cloud"},
	{"cloud.google.com/gke-preemptible", "true", "a preemptible VM of Google Cloud"},
	{"eks.amazonaws.com/capacityType", "SPOT", "a Spot Instance of AWS"},
	{"karpenter.sh/capacity-type", "spot", "spot capacity of Karpenter's"},
	{"node.kubernetes.io/lifecycle", "spot", "spot capacity"},
	{"kubernetes.azure.com/scalesetpriority", "spot", "a Spot VM of Azure"},
	{"oci.oraclecloud.com/oke-is-preemptible", "true", "a preemptible instance of Oracle Cloud"},
}

// Warnings say where the place in which the guard runs cannot protect a deploy that takes up to timeout. The reader has the
// rights of the pod's own service account; what they do not allow to be seen is one note.
func (p Pod) Warnings(ctx context.Context, c client.Reader, timeout time.Duration) []string {
	var out, blind []string
	see := func(what string, err error) bool {
		if err != nil {
			reason := "not readable"
			if apierrors.IsForbidden(err) {
				reason = "forbidden"
			}
			blind = append(blind, what+" ("+reason+")")
		}
		return err == nil
	}
	pod := &corev1.Pod{}
	if see("get pod "+p.String(), c.Get(ctx, p.NamespacedName, pod)) {
		out = append(out, shortGrace(pod, timeout)...)
		budgets := &policyv1.PodDisruptionBudgetList{}
		if see("list poddisruptionbudgets in namespace "+p.Namespace, c.List(ctx, budgets, client.InNamespace(p.Namespace))) && !covered(pod, budgets) {
			out = append(out, fmt.Sprintf("no PodDisruptionBudget covers pod %s, so a drain of its node ends the deploy at any time: "+
				"give jobs that deploy one with maxUnavailable: 0", p))
		}
		if pod.Spec.NodeName != "" {
			p.Node = pod.Spec.NodeName
		}
	}
	node := &corev1.Node{}
	if p.Node != "" && see("get node "+p.Node, c.Get(ctx, types.NamespacedName{Name: p.Node}, node)) {
		for _, i := range interruptible {
			if node.Labels[i.label] == i.value {
				out = append(out, fmt.Sprintf("node %s is %s, which is taken back at short notice, and no PodDisruptionBudget stops that: "+
					"run deploys on other nodes", p.Node, i.name))
			}
		}
	}
	if len(blind) > 0 {
		out = append(out, "whether this place protects the deploy is not known in full: the job's service account may not "+strings.Join(blind, ", "))
	}
	return out
}

func shortGrace(pod *corev1.Pod, timeout time.Duration) []string {
	seconds := pod.Spec.TerminationGracePeriodSeconds
	if seconds == nil || timeout <= 0 || time.Duration(*seconds)*time.Second >= timeout {
		return nil
	}
	return []string{fmt.Sprintf("pod %s has %ds to end when it is evicted, and the deploy may take %s: raise terminationGracePeriodSeconds",
		client.ObjectKeyFromObject(pod), *seconds, timeout)}
}

func covered(pod *corev1.Pod, budgets *policyv1.PodDisruptionBudgetList) bool {
	for i := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(budgets.Items[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}
