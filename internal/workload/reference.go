package workload

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// Source says by which part of a pod template a config object is used.
type Source string

// The sources of references.
const (
	// SourceEnv is one key read into one environment variable.
	SourceEnv Source = "env"
	// SourceEnvFrom is a whole object read into environment variables.
	SourceEnvFrom Source = "envFrom"
	// SourceVolume is a volume of one object.
	SourceVolume Source = "volume"
	// SourceProjected is one source of a projected volume.
	SourceProjected Source = "projected"
	// SourceNamed is an object that an annotation names, because the program reads it through the API.
	SourceNamed Source = "named"
	// SourcePullSecret is a Secret used to pull images. It does not roll.
	SourcePullSecret Source = "imagePullSecret"
	// SourceEphemeral is any use by an ephemeral container. It does not roll.
	SourceEphemeral Source = "ephemeral"
	// SourceVolumeDriver is a Secret with which the driver of a volume (csi, cephfs, rbd and their like) gets at the
	// volume; no container sees it. It does not roll.
	SourceVolumeDriver Source = "volumeDriver"
)

// Rolls reports whether a change of what the source reads calls for a rollout.
func (s Source) Rolls() bool {
	return s != SourcePullSecret && s != SourceEphemeral && s != SourceVolumeDriver
}

// Role says which part of a pod's life a container has.
type Role string

// The roles of containers.
const (
	RoleInit      Role = "init"
	RoleSidecar   Role = "sidecar" // an init container that restarts, and stays
	RoleMain      Role = "main"
	RoleEphemeral Role = "ephemeral"
)

// Reference is one use of one config object by one container of a pod template, or by the pod as a whole.
type Reference struct {
	Object Object
	Source Source
	// Container is the container that reads it; empty for uses of the whole pod (image pull secrets, Secrets of volume
	// drivers, volumes that only ephemeral containers or none mount, objects named by annotation).
	Container string
	Role      Role
	// Keys are the keys read, sorted; nil means all.
	Keys []string
	// Required are the keys without which the pod cannot start, sorted: the key of an env, and every item of a volume,
	// also one that a sub-path leaves out of Keys. Always empty when Optional.
	Required []string
	// Optional says that a pod starts without the object.
	Optional bool
	// Prefix is put before each key of an envFrom.
	Prefix string
	// EnvName is the environment variable of an env.
	EnvName string
	// Volume and MountPath say where files appear; SubPath, which part of the volume.
	Volume, MountPath, SubPath string
	// Refreshed says that the kubelet replaces the files in place while the container runs.
	Refreshed bool
}

// References lists every use of a config object that the template makes in its namespace: environment, volumes and
// projected volumes of main, init and restartable init containers, with image pull secrets, Secrets of volume drivers and
// ephemeral containers as uses that do not roll. Left out are the cluster's own kube-root-ca.crt and service-account
// tokens, which are never configuration, and names that no object can have (the API accepts "a/b" as the ConfigMap of a
// volume): nothing can be read by them, and they could be taken for objects of other namespaces. A template that is nil or
// without containers has no references and is no error here.
func References(namespace string, template *corev1.PodTemplateSpec) []Reference {
	if template == nil {
		return nil
	}
	w := walker{namespace: namespace, spec: &template.Spec, mounted: map[string]bool{}}
	for i := range w.spec.InitContainers {
		c := &w.spec.InitContainers[i]
		role := RoleInit
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = RoleSidecar
		}
		w.container(c, role)
	}
	for i := range w.spec.Containers {
		w.container(&w.spec.Containers[i], RoleMain)
	}
	for i := range w.spec.EphemeralContainers {
		c := corev1.Container(w.spec.EphemeralContainers[i].EphemeralContainerCommon)
		w.container(&c, RoleEphemeral)
	}
	for i := range w.spec.Volumes {
		v := &w.spec.Volumes[i]
		if !w.mounted[v.Name] {
			w.volume(v, Reference{Volume: v.Name}, "")
		}
		for _, name := range driverSecrets(v) {
			w.add(Reference{Object: w.object(Secret, name), Source: SourceVolumeDriver, Volume: v.Name})
		}
	}
	for _, s := range w.spec.ImagePullSecrets {
		w.add(Reference{Object: w.object(Secret, s.Name), Source: SourcePullSecret, Optional: true})
	}
	return w.refs
}

// clusterTrust is the ConfigMap with the cluster's CA that every namespace has and every pod mounts.
const clusterTrust = "kube-root-ca.crt"

type walker struct {
	namespace string
	spec      *corev1.PodSpec
	mounted   map[string]bool
	refs      []Reference
}

func (w *walker) object(kind ObjectKind, name string) Object {
	return Object{Kind: kind, Namespace: w.namespace, Name: name}
}

func (w *walker) add(r Reference) {
	if !validName(r.Object.Name) || r.Object.isClusterTrust() {
		return
	}
	if r.Role == RoleEphemeral {
		r.Source = SourceEphemeral
	}
	if r.Optional {
		r.Required = nil
	}
	w.refs = append(w.refs, r)
}

func (w *walker) container(c *corev1.Container, role Role) {
	base := Reference{Container: c.Name, Role: role}
	for i := range c.EnvFrom {
		w.envFrom(&c.EnvFrom[i], base)
	}
	for i := range c.Env {
		w.env(&c.Env[i], base)
	}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		v := w.findVolume(m.Name)
		if v == nil {
			continue
		}
		if role != RoleEphemeral {
			w.mounted[v.Name] = true
		}
		r := base
		r.Volume, r.MountPath, r.SubPath = m.Name, m.MountPath, cmp.Or(m.SubPath, m.SubPathExpr)
		subPath := cleanSubPath(m.SubPath)
		r.Refreshed = subPath == "" && m.SubPathExpr == ""
		// An expression is expanded from the environment at start, so any key may be meant.
		w.volume(v, r, subPath)
	}
}

func (w *walker) envFrom(e *corev1.EnvFromSource, r Reference) {
	r.Source, r.Prefix = SourceEnvFrom, e.Prefix
	if s := e.ConfigMapRef; s != nil {
		r.Object, r.Optional = w.object(ConfigMap, s.Name), isTrue(s.Optional)
		w.add(r)
	}
	if s := e.SecretRef; s != nil {
		r.Object, r.Optional = w.object(Secret, s.Name), isTrue(s.Optional)
		w.add(r)
	}
}

func (w *walker) env(e *corev1.EnvVar, r Reference) {
	if e.ValueFrom == nil {
		return
	}
	r.Source, r.EnvName = SourceEnv, e.Name
	if s := e.ValueFrom.ConfigMapKeyRef; s != nil {
		r.Object, r.Optional = w.object(ConfigMap, s.Name), isTrue(s.Optional)
		r.Keys, r.Required = []string{s.Key}, []string{s.Key}
		w.add(r)
	}
	if s := e.ValueFrom.SecretKeyRef; s != nil {
		r.Object, r.Optional = w.object(Secret, s.Name), isTrue(s.Optional)
		r.Keys, r.Required = []string{s.Key}, []string{s.Key}
		w.add(r)
	}
}

func (w *walker) findVolume(name string) *corev1.Volume {
	for i := range w.spec.Volumes {
		if w.spec.Volumes[i].Name == name {
			return &w.spec.Volumes[i]
		}
	}
	return nil
}
