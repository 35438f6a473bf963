package podtemplate

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rolloutEphemeral is the annotation in which Argo's controller notes the metadata that it put on a ReplicaSet's template for a time.
const rolloutEphemeral = "rollout.argoproj.io/ephemeral-metadata"

// OfReplicaSet takes the template out of a ReplicaSet, with all fields that the API has, and takes off what the controller
// put on it: the hash, which is the named label, and, by Argo, metadata and anti-affinity for the time of a canary. It is then
// off the ReplicaSet's own template too.
func OfReplicaSet(u *unstructured.Unstructured, hash string) map[string]any {
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	dropLabel(template, "labels", hash)
	if hash == LabelRolloutHash {
		var ephemeral map[string]map[string]string
		_ = json.Unmarshal([]byte(u.GetAnnotations()[rolloutEphemeral]), &ephemeral) // as Argo: what cannot be read is none
		for field, added := range ephemeral {
			for name := range added {
				dropLabel(template, field, name)
			}
		}
		dropInjectedAntiAffinity(template)
	}
	if err := unstructured.SetNestedMap(u.Object, template, "spec", "template"); err != nil {
		panic(fmt.Sprintf("put template back: %v", err)) // it was there
	}
	return template
}

// dropLabel removes a label, or an annotation, from a template's metadata.
func dropLabel(template map[string]any, field, name string) {
	unstructured.RemoveNestedField(template, "metadata", field, name)
	if left, found, _ := unstructured.NestedMap(template, "metadata", field); found && len(left) == 0 {
		unstructured.RemoveNestedField(template, "metadata", field)
	}
}

// dropInjectedAntiAffinity removes the terms that keep canary and stable pods apart, which Argo puts on ReplicaSets. They are
// told by the hash that they select.
func dropInjectedAntiAffinity(template map[string]any) {
	path := []string{"spec", "affinity", "podAntiAffinity"}
	for list, inner := range map[string][]string{
		"preferredDuringSchedulingIgnoredDuringExecution": {"podAffinityTerm"},
		"requiredDuringSchedulingIgnoredDuringExecution":  nil,
	} {
		terms, found, _ := unstructured.NestedSlice(template, append(slices.Clone(path), list)...)
		if !found {
			continue
		}
		kept := slices.DeleteFunc(terms, func(term any) bool { return selectsHash(term, inner) })
		if len(kept) == 0 {
			unstructured.RemoveNestedField(template, append(slices.Clone(path), list)...)
			continue
		}
		_ = unstructured.SetNestedSlice(template, kept, append(slices.Clone(path), list)...) // it was there
	}
	for n := len(path); n > 1; n-- {
		if left, found, _ := unstructured.NestedMap(template, path[:n]...); found && len(left) == 0 {
			unstructured.RemoveNestedField(template, path[:n]...)
		}
	}
}

func selectsHash(term any, inner []string) bool {
	fields, ok := term.(map[string]any)
	if !ok {
		return false
	}
	expressions, _, _ := unstructured.NestedSlice(fields, append(slices.Clone(inner), "labelSelector", "matchExpressions")...)
	return slices.ContainsFunc(expressions, func(e any) bool {
		m, ok := e.(map[string]any)
		return ok && m["key"] == LabelRolloutHash
	})
}
