package policy_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/deploy/policy"
)

// shipped is what the files hold.
type shipped struct {
	mutating           []admissionregistrationv1.MutatingAdmissionPolicy
	mutatingBindings   []admissionregistrationv1.MutatingAdmissionPolicyBinding
	validating         []admissionregistrationv1.ValidatingAdmissionPolicy
	validatingBindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

func read(t *testing.T) (all shipped, text string) {
	t.Helper()
	err := fs.WalkDir(policy.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) == "kustomization.yaml" {
			return err
		}
		content, err := fs.ReadFile(policy.FS, name)
		if err != nil {
			return err
		}
		text += string(content)
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			all.add(t, name, []byte(document))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, text
}

func (s *shipped) add(t *testing.T, name string, document []byte) {
	t.Helper()
	var kind metav1.TypeMeta
	err := yaml.Unmarshal(document, &kind)
	switch kind.Kind {
	case "MutatingAdmissionPolicy":
		err = decode(document, &s.mutating)
	case "MutatingAdmissionPolicyBinding":
		err = decode(document, &s.mutatingBindings)
	case "ValidatingAdmissionPolicy":
		err = decode(document, &s.validating)
	case "ValidatingAdmissionPolicyBinding":
		err = decode(document, &s.validatingBindings)
	default:
		t.Errorf("%s: no test knows kind %q: add it", name, kind.Kind)
	}
	if err != nil || kind.APIVersion != admissionregistrationv1.SchemeGroupVersion.String() {
		t.Errorf("%s: apiVersion %s, %v", name, kind.APIVersion, err)
	}
}

func decode[T any](document []byte, into *[]T) error {
	var object T
	err := yaml.UnmarshalStrict(document, &object)
	*into = append(*into, object)
	return err
}

func TestEachPolicyIsBoundUnderItsOwnName(t *testing.T) {
	all, _ := read(t)
	var policies, bindings []string
	for i := range all.mutating {
		policies = append(policies, all.mutating[i].Name)
	}
	for i := range all.validating {
		policies = append(policies, all.validating[i].Name)
	}
	for i := range all.mutatingBindings {
		bindings = append(bindings, all.mutatingBindings[i].Name)
		if b := &all.mutatingBindings[i]; b.Spec.PolicyName != b.Name || b.Spec.MatchResources != nil {
			t.Errorf("binding %s binds %s to %v", b.Name, b.Spec.PolicyName, b.Spec.MatchResources)
		}
	}
	for i := range all.validatingBindings {
		bindings = append(bindings, all.validatingBindings[i].Name)
		if b := &all.validatingBindings[i]; b.Spec.PolicyName != b.Name || b.Spec.MatchResources != nil ||
			!slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("binding %s binds %s to %v, with %v", b.Name, b.Spec.PolicyName, b.Spec.MatchResources, b.Spec.ValidationActions)
		}
	}
	slices.Sort(policies)
	slices.Sort(bindings)
	want := []string{"tidemark-absent", v1.PolicyPin, "tidemark-snapshots"}
	if !slices.Equal(policies, want) || !slices.Equal(bindings, want) {
		t.Errorf("policies %v, bindings %v, want %v of each", policies, bindings, want)
	}
}

// What a policy matches is what its failure stops: a rule that matched more would stop the cluster.
func TestPoliciesFailClosedOnWhatIsTidemarksAlone(t *testing.T) {
	all, _ := read(t)
	pin := all.mutating[0].Spec
	if len(all.mutating) != 1 || *pin.FailurePolicy != admissionregistrationv1.Fail || pin.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy ||
		len(pin.MatchConditions) != 1 || len(pin.Mutations) != 1 {
		t.Errorf("the policy on pods: %+v", pin)
	}
	for _, p := range all.validating {
		m := p.Spec.MatchConstraints
		narrow := m.ObjectSelector != nil && m.ObjectSelector.MatchLabels[v1.LabelSnapshot] == v1.True ||
			slices.Equal(m.ResourceRules[0].ResourceNames, []string{v1.AbsentName})
		if *p.Spec.FailurePolicy != admissionregistrationv1.Fail || len(m.ResourceRules) != 1 || !narrow {
			t.Errorf("policy %s: failurePolicy %s, %+v", p.Name, *p.Spec.FailurePolicy, m)
		}
		for _, v := range p.Spec.Validations {
			if v.Message == "" || *v.Reason != metav1.StatusReasonForbidden {
				t.Errorf("policy %s: a refusal says %q, for the reason %v", p.Name, v.Message, v.Reason)
			}
		}
	}
}

func TestNamesInExpressionsAreThoseOfTheContract(t *testing.T) {
	_, text := read(t)
	for _, name := range []string{
		"object.metadata.annotations['" + v1.AnnotationPins + "']", "annotation " + v1.AnnotationPins + ": entry",
		v1.LabelSnapshot + `: "true"`, "labels[?'" + v1.LabelSnapshot + "']", "resourceNames: [" + v1.AbsentName + "]", "startsWith('" + v1.Domain + "/')",
		"group('" + v1.Domain + "').resource('snapshots')",
	} {
		if !strings.Contains(text, name) {
			t.Errorf("no policy says %s", name)
		}
	}
}

func TestKustomizationsListEveryFile(t *testing.T) {
	for _, directory := range []string{"rewriting", "protection"} {
		content, err := fs.ReadFile(policy.FS, directory+"/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var k struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Resources  []string `json:"resources"`
		}
		if err := yaml.UnmarshalStrict(content, &k); err != nil {
			t.Fatal(err)
		}
		files, err := fs.Glob(policy.FS, directory+"/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != len(k.Resources)+1 {
			t.Errorf("%s has the files %v and lists %v", directory, files, k.Resources)
		}
	}
}
