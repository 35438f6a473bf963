package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FindKind finds a kind of workload by a name as kubectl takes it: "deployment", "deployments", "deploy",
// "deployments.apps". The mapper, which knows short names, is asked only where the name is none of the kinds' own.
func FindKind(kinds []Kind, name string, mapper func() (meta.RESTMapper, error)) (Kind, error) {
	lower := strings.ToLower(name)
	for _, k := range kinds {
		Plural, singular := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
		switch lower {
		case k.Lower(), Plural.Resource, singular.Resource, Plural.GroupResource().String(), singular.GroupResource().String():
			return k, nil
		}
	}
	m, err := mapper()
	if err != nil {
		return Kind{}, fmt.Errorf("look up kind %q: %w", name, err)
	}
	resource, group := schema.ParseResourceArg(lower)
	var gvk schema.GroupVersionKind
	if resource != nil {
		gvk, err = m.KindFor(*resource)
	}
	if resource == nil || err != nil {
		gvk, err = m.KindFor(group.WithVersion(""))
	}
	if meta.IsNoMatchError(err) {
		return Kind{}, fmt.Errorf("the cluster serves no kind %q", name)
	}
	if err != nil {
		return Kind{}, fmt.Errorf("look up kind %q: %w", name, err)
	}
	for _, k := range kinds {
		if k.Group == gvk.Group && k.GroupVersionKind.Kind == gvk.Kind {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("%s of %s is not known as a kind of workload: add --kind %s/%s/%s=PATH.TO.TEMPLATE",
		gvk.Kind, gvk.GroupVersion(), gvk.Group, gvk.Version, gvk.Kind)
}

// Plural is the kind's resource as far as its name tells, for messages.
func Plural(gvk schema.GroupVersionKind) string {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return resource.Resource
}
