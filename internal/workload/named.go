package workload

import (
	"fmt"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
)

// namedBy lists the annotations that name objects, with the kind that each names.
var namedBy = []struct {
	annotation string
	kind       ObjectKind
}{
	{v1.AnnotationExtraConfigMaps, ConfigMap},
	{v1.AnnotationExtraSecrets, Secret},
	{v1.WaveExtraConfigMaps, ConfigMap},
	{v1.WaveExtraSecrets, Secret},
}

// Named lists the objects that the annotations of a workload name as read through the API. Items are separated by
// commas, trimmed, and either "name" or "namespace/name"; an item that is neither, or is the cluster's kube-root-ca.crt,
// gives an error that names the annotation, and does not hinder the others.
func Named(namespace string, annotations map[string]string) ([]Reference, []error) {
	var refs []Reference
	var errs []error
	seen := map[Object]bool{}
	for _, n := range namedBy {
		for item := range strings.SplitSeq(annotations[n.annotation], ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			o, err := parseNamed(n.kind, item, namespace)
			if err != nil {
				errs = append(errs, fmt.Errorf("annotation %s: %w", n.annotation, err))
				continue
			}
			if !seen[o] {
				seen[o] = true
				refs = append(refs, Reference{Object: o, Source: SourceNamed, Optional: true})
			}
		}
	}
	return refs, errs
}

func parseNamed(kind ObjectKind, item, namespace string) (Object, error) {
	o := Object{Kind: kind, Namespace: namespace, Name: item}
	if ns, name, ok := strings.Cut(item, "/"); ok {
		o.Namespace, o.Name = strings.TrimSpace(ns), strings.TrimSpace(name)
	}
	if !validNamespace(o.Namespace) || !validName(o.Name) {
		return Object{}, fmt.Errorf("item %q is no object: write NAME or NAMESPACE/NAME", item)
	}
	if o.isClusterTrust() {
		return Object{}, fmt.Errorf("item %q is the cluster's own and never configuration", item)
	}
	return o, nil
}
