package podtemplate

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// completed returns a copy of a pod template with the defaults that Kubernetes gives to templates, which is less than it gives
// to pods. What is the same to every version of the API counts as the same here: the old name of the service account's field.
func completed(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t := template.DeepCopy()
	s := &t.Spec
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = ""
	fill(&s.DNSPolicy, corev1.DNSClusterFirst)
	fill(&s.RestartPolicy, corev1.RestartPolicyAlways)
	fill(&s.SchedulerName, corev1.DefaultSchedulerName)
	point(&s.SecurityContext, corev1.PodSecurityContext{})
	point(&s.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range s.Volumes {
		completeVolume(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		completeContainer(&s.InitContainers[i], s.HostNetwork)
	}
	for i := range s.Containers {
		completeContainer(&s.Containers[i], s.HostNetwork)
	}
	toMilli(s.Overhead)
	if s.Resources != nil {
		toMilli(s.Resources.Limits)
		toMilli(s.Resources.Requests)
	}
	return t
}

// fill gives a field that is not set its default.
func fill[T comparable](field *T, standard T) {
	var unset T
	if *field == unset {
		*field = standard
	}
}

// point gives an optional field that is not set its default.
func point[T any](field **T, standard T) {
	if *field == nil {
		*field = &standard
	}
}

func completeContainer(c *corev1.Container, hostNetwork bool) {
	fill(&c.ImagePullPolicy, pullPolicy(c.Image))
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		fill(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork { // some versions write what is required anyway
			fill(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		completeField(from.FieldRef)
		if from.FileKeyRef != nil {
			point(&from.FileKeyRef.Optional, false)
		}
	}
	toMilli(c.Resources.Limits)
	toMilli(c.Resources.Requests)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		completeProbe(p)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil {
			completeHTTP(h.HTTPGet)
		}
	}
}

// pullPolicy is the default for an image: one without tag and digest is the latest.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digested := strings.Cut(image, "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if tag == "latest" || !tagged && !digested {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func completeField(f *corev1.ObjectFieldSelector) {
	if f != nil {
		fill(&f.APIVersion, "v1")
	}
}

func completeProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	fill(&p.TimeoutSeconds, 1)
	fill(&p.PeriodSeconds, 10)
	fill(&p.SuccessThreshold, 1)
	fill(&p.FailureThreshold, 3)
	completeHTTP(p.HTTPGet)
	if p.GRPC != nil {
		point(&p.GRPC.Service, "")
	}
}

func completeHTTP(h *corev1.HTTPGetAction) {
	if h != nil {
		fill(&h.Path, "/")
		fill(&h.Scheme, corev1.URISchemeHTTP)
	}
}

func completeVolume(v *corev1.Volume) {
	if reflect.ValueOf(v.VolumeSource).IsZero() {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		fill(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		point(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		point(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		point(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		point(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		completeItems(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		completeProjected(v.Projected)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		point(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		toMilli(claim.Resources.Limits)
		toMilli(claim.Resources.Requests)
	}
	completeStorage(v)
}

func completeItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		completeField(items[i].FieldRef)
	}
}

func completeProjected(p *corev1.ProjectedVolumeSource) {
	point(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			completeItems(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			point(&t.ExpirationSeconds, int64(time.Hour.Seconds()))
		}
	}
}

// completeStorage completes the volumes of storage systems.
func completeStorage(v *corev1.Volume) {
	if v.ISCSI != nil {
		fill(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		fill(&v.RBD.RBDPool, "rbd")
		fill(&v.RBD.RadosUser, "admin")
		fill(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		point(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		point(&v.AzureDisk.FSType, "ext4")
		point(&v.AzureDisk.ReadOnly, false)
		point(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}

// toMilli rounds quantities up as the API does.
func toMilli(list corev1.ResourceList) {
	const milli = -3
	for name, quantity := range list {
		quantity.RoundUp(milli)
		list[name] = quantity
	}
}
