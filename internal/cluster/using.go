package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/workload"
)

// Using lists the workloads of a namespace that use one of the config objects, by kind and name. Kinds that may not be listed are
// remarked, those that the cluster does not serve passed over.
func Using(ctx context.Context, c client.Reader, kinds []Kind, namespace string, objects func(workload.Object) bool) (found []Target, remarks []string, err error) {
	for _, k := range kinds {
		err := EachItem(ctx, c, k.NewList, PageSize, func(obj client.Object) {
			template, err := k.Template(obj)
			if err != nil {
				return // the template is elsewhere, and that is listed by itself
			}
			_, uses, _ := ConsumptionOf(namespace, obj.GetAnnotations(), template)
			if slices.ContainsFunc(uses, func(u workload.Consumption) bool { return objects(u.Object) }) {
				found = append(found, Target{Kind: k, Namespace: namespace, Name: obj.GetName()})
			}
		}, client.InNamespace(namespace))
		switch {
		case meta.IsNoMatchError(err):
		case apierrors.IsForbidden(err):
			needs := Right{Verb: "list", Resource: Plural(k.GroupVersionKind), Namespace: namespace}
			remarks = append(remarks, needs.Missing()+": which of them use what is given is unknown")
		case err != nil:
			return nil, nil, fmt.Errorf("list %s: %w", Plural(k.GroupVersionKind), err)
		}
	}
	return found, remarks, nil
}
