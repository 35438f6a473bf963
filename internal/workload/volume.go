package workload

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volume adds the references of one volume; subPath, a clean one, narrows the keys to those that appear at it or under it.
func (w *walker) volume(v *corev1.Volume, r Reference, subPath string) {
	if s := v.ConfigMap; s != nil {
		w.files(r, SourceVolume, w.object(ConfigMap, s.Name), s.Items, s.Optional, subPath)
	}
	if s := v.Secret; s != nil {
		w.files(r, SourceVolume, w.object(Secret, s.SecretName), s.Items, s.Optional, subPath)
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if s := p.ConfigMap; s != nil {
			w.files(r, SourceProjected, w.object(ConfigMap, s.Name), s.Items, s.Optional, subPath)
		}
		if s := p.Secret; s != nil {
			w.files(r, SourceProjected, w.object(Secret, s.Name), s.Items, s.Optional, subPath)
		}
	}
}

func (w *walker) files(r Reference, source Source, object Object, items []corev1.KeyToPath, optional *bool, subPath string) {
	r.Source, r.Object, r.Optional = source, object, isTrue(optional)
	top, _, _ := strings.Cut(subPath, "/")
	if strings.HasPrefix(top, "..") {
		subPath, top = "", "" // into the kubelet's own files of the volume: any key may be meant
	}
	if len(items) == 0 {
		// Without items each key is a file at the top of the volume.
		if top != "" {
			r.Keys = []string{top}
		}
		w.add(r)
		return
	}
	r.Keys = []string{}
	for _, i := range items {
		r.Required = append(r.Required, i.Key) // a missing item keeps the whole volume from being mounted
		if meets(path.Clean(i.Path), subPath) {
			r.Keys = append(r.Keys, i.Key)
		}
	}
	slices.Sort(r.Keys)
	r.Keys = slices.Compact(r.Keys)
	slices.Sort(r.Required)
	r.Required = slices.Compact(r.Required)
	w.add(r)
}

// currentData is the link through which the kubelet swaps all files of a volume at once. A sub-path may lead through it.
const currentData = "..data"

// cleanSubPath brings a sub-path into the form in which [walker.files] compares it: "a/b", or "" for the volume itself.
func cleanSubPath(subPath string) string {
	subPath = path.Clean(subPath)
	if subPath == "." {
		return ""
	}
	return strings.TrimPrefix(subPath, currentData+"/")
}

// meets reports whether the file is what the sub-path shows, lies under it, or stands in its way. Where nothing is at the
// sub-path the kubelet makes an empty directory, so a file that comes to stand in its way matters as well.
func meets(file, subPath string) bool {
	return subPath == "" || file == subPath ||
		strings.HasPrefix(file, subPath+"/") || strings.HasPrefix(subPath, file+"/")
}

// driverSecrets names the Secrets of the pod's namespace that the driver of the volume is handed.
func driverSecrets(v *corev1.Volume) []string {
	var names []string
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	if s := v.CSI; s != nil {
		local(s.NodePublishSecretRef)
	}
	if s := v.CephFS; s != nil {
		local(s.SecretRef)
	}
	if s := v.Cinder; s != nil {
		local(s.SecretRef)
	}
	if s := v.FlexVolume; s != nil {
		local(s.SecretRef)
	}
	if s := v.ISCSI; s != nil {
		local(s.SecretRef)
	}
	if s := v.RBD; s != nil {
		local(s.SecretRef)
	}
	if s := v.ScaleIO; s != nil {
		local(s.SecretRef)
	}
	if s := v.StorageOS; s != nil {
		local(s.SecretRef)
	}
	if s := v.AzureFile; s != nil {
		names = append(names, s.SecretName)
	}
	return names
}

func isTrue(b *bool) bool { return b != nil && *b }
