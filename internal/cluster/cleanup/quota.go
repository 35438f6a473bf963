package cleanup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
)

// Quota is a quota of a namespace on config objects, as far as it is used.
type Quota struct {
	Namespace, Name string
	// Resource is "configmaps" or "secrets", in either of the spellings that quotas have.
	Resource   string
	Used, Hard int64
}

// String says it for people.
func (q Quota) String() string {
	return fmt.Sprintf("resourcequota/%s in namespace %s is nearly full: %d of %d %s", q.Name, q.Namespace, q.Used, q.Hard, q.Resource)
}

// countedResources are the quotas that copies of configuration count towards.
var countedResources = []corev1.ResourceName{corev1.ResourceConfigMaps, corev1.ResourceSecrets, "count/configmaps", "count/secrets"}

// full reports whether nine tenths or more are used.
func (q Quota) full() bool { return q.Hard > 0 && q.Used*10 >= q.Hard*9 }

// NearlyFull lists the quotas of the namespace ("" for all) that leave little room for further copies of configuration.
func NearlyFull(ctx context.Context, c client.Reader, namespace string) ([]Quota, error) {
	var out []Quota
	newList := func() client.ObjectList { return &corev1.ResourceQuotaList{} }
	err := cluster.EachItem(ctx, c, newList, cluster.PageSize, func(q *corev1.ResourceQuota) {
		for _, name := range countedResources {
			hard, limited := q.Status.Hard[name]
			used := q.Status.Used[name]
			found := Quota{Namespace: q.Namespace, Name: q.Name, Resource: string(name), Used: used.Value(), Hard: hard.Value()}
			if limited && found.full() {
				out = append(out, found)
			}
		}
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list resourcequotas: %w", err)
	}
	return out, nil
}

// tellQuotas adds the quotas that are nearly full, of the namespaces that have copies.
func (c Round) tellQuotas(ctx context.Context, out *Outcome) {
	all, err := NearlyFull(ctx, c.Client, c.Namespace)
	if apierrors.IsForbidden(err) {
		needs := cluster.Right{Verb: "list", Resource: "resourcequotas", Namespace: c.Namespace}
		out.Remarks = append(out.Remarks, needs.Missing()+": whether a quota is nearly full is not known")
		return
	}
	if err != nil {
		out.Remarks = append(out.Remarks, "whether a quota is nearly full is not known: "+err.Error())
		return
	}
	have := map[string]bool{}
	for _, item := range out.Items {
		have[item.Object.Namespace] = true
	}
	for _, q := range all {
		if have[q.Namespace] {
			out.Quotas = append(out.Quotas, q)
		}
	}
}
