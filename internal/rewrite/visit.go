package rewrite

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/workload"
)

// reference is one place in a pod's spec that names a config object.
type reference struct {
	kind workload.ObjectKind
	name *string
	// container is the container that reads it; empty for volumes.
	container string
	// path leads to the name, from the pod on.
	path func() string
}

// visit calls found for each place of the spec that pins apply to.
func visit(spec *corev1.PodSpec, found func(reference)) {
	containers(spec.InitContainers, "spec.initContainers", found)
	containers(spec.Containers, "spec.containers", found)
	for i := range spec.Volumes {
		volume(&spec.Volumes[i], i, found)
	}
}

func containers(list []corev1.Container, in string, found func(reference)) {
	for i := range list {
		c := &list[i]
		at := func(kind workload.ObjectKind, name *string, field string, k int, part string) {
			found(reference{kind, name, c.Name, func() string { return fmt.Sprintf("%s[%d].%s[%d].%s.name", in, i, field, k, part) }})
		}
		for k := range c.EnvFrom {
			if s := c.EnvFrom[k].ConfigMapRef; s != nil {
				at(workload.ConfigMap, &s.Name, "envFrom", k, "configMapRef")
			}
			if s := c.EnvFrom[k].SecretRef; s != nil {
				at(workload.Secret, &s.Name, "envFrom", k, "secretRef")
			}
		}
		for k := range c.Env {
			from := c.Env[k].ValueFrom
			if from == nil {
				continue
			}
			if s := from.ConfigMapKeyRef; s != nil {
				at(workload.ConfigMap, &s.Name, "env", k, "valueFrom.configMapKeyRef")
			}
			if s := from.SecretKeyRef; s != nil {
				at(workload.Secret, &s.Name, "env", k, "valueFrom.secretKeyRef")
			}
		}
	}
}

func volume(v *corev1.Volume, i int, found func(reference)) {
	at := func(kind workload.ObjectKind, name *string, format string, args ...any) {
		found(reference{kind, name, "", func() string { return fmt.Sprintf("spec.volumes[%d].", i) + fmt.Sprintf(format, args...) }})
	}
	if s := v.ConfigMap; s != nil {
		at(workload.ConfigMap, &s.Name, "configMap.name")
	}
	if s := v.Secret; s != nil {
		at(workload.Secret, &s.SecretName, "secret.secretName")
	}
	if v.Projected == nil {
		return
	}
	for k := range v.Projected.Sources {
		if s := v.Projected.Sources[k].ConfigMap; s != nil {
			at(workload.ConfigMap, &s.Name, "projected.sources[%d].configMap.name", k)
		}
		if s := v.Projected.Sources[k].Secret; s != nil {
			at(workload.Secret, &s.Name, "projected.sources[%d].secret.name", k)
		}
	}
}
