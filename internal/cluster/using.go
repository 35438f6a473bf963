package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/workload"
)

// Using lists the workloads that use one of the config objects, which are of the namespaces. A workload may name an object of
// another namespace, so all namespaces are listed; where that is not permitted those of the objects are, and the rest is remarked as
// unknown. Kinds that may not be listed at all are remarked, those that the cluster does not serve passed over.
func Using(ctx context.Context, c client.Reader, kinds []Kind, namespaces []string, objects func(workload.Object) bool) (found []Target, remarks []string, err error) {
	var unseen []string // kinds of which only the objects' namespaces may be listed
	for _, k := range kinds {
		err := eachUsing(ctx, c, k, "", objects, &found)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case err != nil && !apierrors.IsForbidden(err):
			return nil, nil, fmt.Errorf("list %s: %w", Plural(k.GroupVersionKind), err)
		case err == nil:
			continue
		}
		seen := false
		for _, ns := range namespaces {
			err := eachUsing(ctx, c, k, ns, objects, &found)
			switch {
			case apierrors.IsForbidden(err):
				needs := Right{Verb: "list", Resource: Plural(k.GroupVersionKind), Namespace: ns}
				remarks = append(remarks, needs.Missing()+": which of them use what is given is unknown")
			case err != nil:
				return nil, nil, fmt.Errorf("list %s: %w", Plural(k.GroupVersionKind), err)
			default:
				seen = true
			}
		}
		if seen {
			unseen = append(unseen, Plural(k.GroupVersionKind))
		}
	}
	if len(unseen) > 0 {
		needs := Right{Verb: "list", Resource: strings.Join(unseen, ", ")}
		remarks = append(remarks, needs.Missing()+": which of other namespaces use what is given, by "+
			"annotations that name it with its namespace, is unknown")
	}
	return found, remarks, nil
}

// eachUsing adds the workloads of one kind in a namespace, "" for all, that use one of the objects. It adds none with an error.
func eachUsing(ctx context.Context, c client.Reader, k Kind, namespace string, objects func(workload.Object) bool, to *[]Target) error {
	var found []Target
	err := EachItem(ctx, c, k.NewList, PageSize, func(obj client.Object) {
		template, err := k.Template(obj)
		if err != nil {
			return // the template is elsewhere, and that is listed by itself
		}
		_, uses, _ := ConsumptionOf(obj.GetNamespace(), obj.GetAnnotations(), template)
		if slices.ContainsFunc(uses, func(u workload.Consumption) bool { return objects(u.Object) }) {
			found = append(found, Target{Kind: k, Namespace: obj.GetNamespace(), Name: obj.GetName()})
		}
	}, client.InNamespace(namespace))
	if err == nil {
		*to = append(*to, found...)
	}
	return err
}
