// Package rewrite points the references of a pod at the snapshots that its pins name.
//
// The same function is in deploy/policy as CEL, which the API server runs when a pod is created; the acceptance tests hold
// the two against each other. Where the API server is too old for that, this one runs in a webhook.
package rewrite

import (
	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Pod replaces, in the spec of a pod of the namespace, each name of a pinned object by the name that its pin gives, and
// changes nothing else: in the environment, volumes and projected volumes of main and init containers, restartable ones too.
// Image pull secrets, Secrets of volume drivers and ephemeral containers are never pinned, nor is kube-root-ca.crt.
//
// A name that a pin of the same kind gives is a snapshot, and stays, even where it is pinned itself. So a pod that is
// rewritten already is not changed, whatever its pins: with a=b and b=c, a becomes b, and b stays.
func Pod(spec *corev1.PodSpec, pins snapshot.Pins, namespace string) (changed bool) {
	given := namesOf(pins, namespace)
	visit(spec, func(r reference) {
		if name, pinned := given[r.kind][*r.name]; pinned {
			*r.name, changed = name, true
		}
	})
	return changed
}

// clusterTrust is the ConfigMap with the cluster's CA, which is never configuration.
const clusterTrust = "kube-root-ca.crt"

// names say by kind which name a reference gets in place of which.
type names map[workload.ObjectKind]map[string]string

// namesOf leaves out what no reference is rewritten by: pins of other namespaces and of kube-root-ca.crt, and pins of what is
// itself the snapshot that another pin gives.
func namesOf(pins snapshot.Pins, namespace string) names {
	snapshots := map[workload.Object]bool{}
	for o, name := range pins {
		if o.Namespace == namespace && !isClusterTrust(o) {
			snapshots[workload.Object{Kind: o.Kind, Namespace: namespace, Name: name}] = true
		}
	}
	n := names{workload.ConfigMap: {}, workload.Secret: {}}
	for o, name := range pins {
		if o.Namespace == namespace && !isClusterTrust(o) && !snapshots[o] {
			n[o.Kind][o.Name] = name
		}
	}
	return n
}

func isClusterTrust(o workload.Object) bool {
	return o.Kind == workload.ConfigMap && o.Name == clusterTrust
}
