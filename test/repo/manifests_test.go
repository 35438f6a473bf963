package repo

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
)

const manifestDir = "deploy/manifests"

// install is what `kubectl apply -k deploy/manifests` creates.
type install struct {
	namespaces          []corev1.Namespace
	serviceAccounts     []corev1.ServiceAccount
	services            []corev1.Service
	deployments         []appsv1.Deployment
	budgets             []policyv1.PodDisruptionBudget
	priorityClasses     []schedulingv1.PriorityClass
	clusterRoles        []rbacv1.ClusterRole
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
}

// add decodes a document into its type; a field that the type does not have is an error.
func (in *install) add(document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Namespace":
		return decode(document, &in.namespaces)
	case "v1 ServiceAccount":
		return decode(document, &in.serviceAccounts)
	case "v1 Service":
		return decode(document, &in.services)
	case "apps/v1 Deployment":
		return decode(document, &in.deployments)
	case "policy/v1 PodDisruptionBudget":
		return decode(document, &in.budgets)
	case "scheduling.k8s.io/v1 PriorityClass":
		return decode(document, &in.priorityClasses)
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return decode(document, &in.clusterRoles)
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return decode(document, &in.clusterRoleBindings)
	case "rbac.authorization.k8s.io/v1 Role":
		return decode(document, &in.roles)
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		return decode(document, &in.roleBindings)
	}
	return errors.New("no test knows " + kind.APIVersion + " " + kind.Kind + ": add it")
}

func decode[T any](document []byte, into *[]T) error {
	var object T
	if err := yaml.UnmarshalStrict(document, &object); err != nil {
		return err
	}
	*into = append(*into, object)
	return nil
}

// kustomization is the part of a kustomization.yaml that is used here; any other field is an error.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Labels     []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
	Images []struct {
		Name   string `json:"name"`
		NewTag string `json:"newTag"`
	} `json:"images"`
}

func readKustomization(t *testing.T) kustomization {
	t.Helper()
	var k kustomization
	if err := yaml.UnmarshalStrict([]byte(read(t, manifestDir+"/kustomization.yaml")), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

func readInstall(t *testing.T) *install {
	t.Helper()
	in := &install{}
	for _, resource := range readKustomization(t).Resources {
		reader := yamlstream.NewDocumentDecoder(io.NopCloser(strings.NewReader(read(t, manifestDir+"/"+resource))))
		for {
			document := make([]byte, 1<<16)
			n, err := reader.Read(document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", resource, err)
			}
			if document = bytes.TrimSpace(document[:n]); len(bytes.Trim(document, "-\n ")) == 0 {
				continue
			}
			if err := in.add(document); err != nil {
				t.Fatalf("%s: %v", resource, err)
			}
		}
	}
	return in
}

func TestManifestsAreCompleteAndHaveNoUnknownField(t *testing.T) {
	in := readInstall(t)
	for what, n := range map[string]int{
		"Namespace": len(in.namespaces), "ServiceAccount": len(in.serviceAccounts), "Service": len(in.services),
		"Deployment": len(in.deployments), "PodDisruptionBudget": len(in.budgets), "PriorityClass": len(in.priorityClasses),
		"ClusterRole": len(in.clusterRoles), "ClusterRoleBinding": len(in.clusterRoleBindings),
		"Role": len(in.roles), "RoleBinding": len(in.roleBindings),
	} {
		if n != 1 {
			t.Errorf("%d objects of kind %s, want 1", n, what)
		}
	}
}

func TestKustomizationListsEveryManifest(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, manifestDir))
	if err != nil {
		t.Fatal(err)
	}
	k := readKustomization(t)
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".yaml") && name != "kustomization.yaml" && !slices.Contains(k.Resources, name) {
			t.Errorf("kustomization.yaml does not list %s", name)
		}
	}
}

func TestInstallHangsTogether(t *testing.T) {
	in := readInstall(t)
	deployment := in.deployments[0]
	pod := deployment.Spec.Template

	for what, namespace := range map[string]string{
		"Namespace": in.namespaces[0].Name, "ServiceAccount": in.serviceAccounts[0].Namespace, "Deployment": deployment.Namespace,
		"Service": in.services[0].Namespace, "PodDisruptionBudget": in.budgets[0].Namespace, "Role": in.roles[0].Namespace,
		"RoleBinding": in.roleBindings[0].Namespace,
	} {
		if namespace != v1.DefaultNamespace {
			t.Errorf("%s is in namespace %q, want %q", what, namespace, v1.DefaultNamespace)
		}
	}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: pod.Spec.ServiceAccountName, Namespace: v1.DefaultNamespace}
	for _, subjects := range [][]rbacv1.Subject{in.clusterRoleBindings[0].Subjects, in.roleBindings[0].Subjects} {
		if !slices.Equal(subjects, []rbacv1.Subject{account}) {
			t.Errorf("rights are bound to %v, want %v", subjects, account)
		}
	}
	if got := in.serviceAccounts[0].Name; got != pod.Spec.ServiceAccountName {
		t.Errorf("the pod runs as %q, the ServiceAccount is %q", pod.Spec.ServiceAccountName, got)
	}
	if got := in.clusterRoleBindings[0].RoleRef.Name; got != in.clusterRoles[0].Name {
		t.Errorf("the ClusterRoleBinding names %q", got)
	}
	if got := in.roleBindings[0].RoleRef.Name; got != in.roles[0].Name {
		t.Errorf("the RoleBinding names %q", got)
	}
	if got := in.priorityClasses[0].Name; got != pod.Spec.PriorityClassName {
		t.Errorf("the pod's priority class is %q, the manifest's is %q", pod.Spec.PriorityClassName, got)
	}
	for what, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "PodDisruptionBudget": in.budgets[0].Spec.Selector.MatchLabels,
		"Service": in.services[0].Spec.Selector,
	} {
		for key, value := range selector {
			if pod.Labels[key] != value {
				t.Errorf("the selector of the %s wants %s=%s, which the pod does not carry", what, key, value)
			}
		}
	}
}

func TestControllerPodIsLockedDown(t *testing.T) {
	pod := readInstall(t).deployments[0].Spec.Template.Spec
	if c := pod.SecurityContext; c == nil || !isTrue(c.RunAsNonRoot) || c.SeccompProfile == nil ||
		c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context: %+v", c)
	}
	if len(pod.Volumes) != 0 || pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod needs neither volumes nor anything of its host")
	}
	for _, container := range pod.Containers {
		c := container.SecurityContext
		if c == nil || !isTrue(c.ReadOnlyRootFilesystem) || c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
			t.Errorf("container %s: security context %+v", container.Name, c)
		}
		if c.Capabilities == nil || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(c.Capabilities.Add) != 0 {
			t.Errorf("container %s: capabilities %+v", container.Name, c.Capabilities)
		}
		if container.LivenessProbe == nil || container.ReadinessProbe == nil || container.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s lacks a probe or a memory limit", container.Name)
		}
	}
}

// What the controller may write in the whole cluster is this and no more. A new right needs a line here, on purpose.
func TestClusterRoleIsTheLeastThatWorks(t *testing.T) {
	writable := map[string][]string{
		"apps/deployments":     {"patch"},
		"apps/statefulsets":    {"patch"},
		"apps/daemonsets":      {"patch"},
		"batch/cronjobs":       {"patch"},
		"argoproj.io/rollouts": {"patch"},
		"/events":              {"create", "patch"},
		"events.k8s.io/events": {"create", "patch"},
		"authorization.k8s.io/selfsubjectaccessreviews": {"create"},
	}
	readOnly := []string{"get", "list", "watch"}
	for _, rule := range readInstall(t).clusterRoles[0].Rules {
		if len(rule.NonResourceURLs) > 0 {
			t.Errorf("a right on URLs: %v", rule.NonResourceURLs)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if !slices.Contains(readOnly, verb) && !slices.Contains(writable[group+"/"+resource], verb) {
						t.Errorf("the ClusterRole may %s %s/%s", verb, group, resource)
					}
				}
			}
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// TestTheControllerNeverRunsCommandsInPods looks at every role that is shipped: what looks into pods, or speaks to them through the
// API server, is for people with rights of their own.
func TestTheControllerNeverRunsCommandsInPods(t *testing.T) {
	roles := 0
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---") {
			var role rbacv1.ClusterRole
			if yaml.Unmarshal([]byte(document), &role) != nil || role.Kind != "ClusterRole" && role.Kind != "Role" {
				continue
			}
			roles++
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if resource == "*" || strings.HasPrefix(resource, "pods/") || strings.HasSuffix(resource, "/*") {
						t.Errorf("%s: %s %s has a right on %s", path, role.Kind, role.Name, resource)
					}
				}
			}
		}
		return nil
	})
	if err != nil || roles < 2 {
		t.Errorf("looked at %d roles, %v", roles, err)
	}
}
