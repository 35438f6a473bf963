package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/notify"
)

// installs are the kustomizations of which people apply one.
var installs = []string{"manifests", "pin", "podwebhook"}

func build(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// controllerIn is the controller's Deployment in what was built.
func controllerIn(t *testing.T, built resmap.ResMap) appsv1.Deployment {
	t.Helper()
	var all []appsv1.Deployment
	for _, r := range built.Resources() {
		if r.GetKind() != "Deployment" {
			continue
		}
		document, err := r.AsYAML()
		if err == nil {
			err = decode(document, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d Deployments, want the controller's", len(all))
	}
	return all[0]
}

func TestEachInstallCanBeBuilt(t *testing.T) {
	for _, name := range installs {
		t.Run(name, func(t *testing.T) {
			mountsAreThere(t, controllerIn(t, build(t, filepath.Join(root, "deploy", name))))
		})
	}
}

// mountsAreThere wants a volume for each mount.
func mountsAreThere(t *testing.T, d appsv1.Deployment) {
	t.Helper()
	spec := d.Spec.Template.Spec
	for _, m := range spec.Containers[0].VolumeMounts {
		if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("there is no volume %s to mount at %s", m.Name, m.MountPath)
		}
	}
}

// TestNotificationsFitEachInstall adds the component of docs/notifications.md to each install.
func TestNotificationsFitEachInstall(t *testing.T) {
	deploy, err := filepath.Abs(filepath.Join(root, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range installs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := func(part string) string {
				relative, err := filepath.Rel(dir, filepath.Join(deploy, part))
				if err != nil {
					t.Fatal(err)
				}
				return relative
			}
			kustomization := fmt.Sprintf("resources: [%q]\ncomponents: [%q]\n", to(name), to("notifications"))
			if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
				t.Fatal(err)
			}
			plain, built := controllerIn(t, build(t, filepath.Join(deploy, name))), build(t, dir)
			d := controllerIn(t, built)
			mountsAreThere(t, d)
			holdsAll(t, "volume", names(plain.Spec.Template.Spec.Volumes, volumeName), names(d.Spec.Template.Spec.Volumes, volumeName))
			was, c := plain.Spec.Template.Spec.Containers[0], d.Spec.Template.Spec.Containers[0]
			holdsAll(t, "mount", names(was.VolumeMounts, mountName), names(c.VolumeMounts, mountName))
			holdsAll(t, "argument", was.Args, c.Args)
			config := flagOf(t, c.Args, "--notify-config")
			credentials := flagOf(t, c.Args, "--notify-credentials")
			for _, path := range []string{filepath.Dir(config), credentials} {
				if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
					t.Errorf("nothing is mounted at %s", path)
				}
			}
			parsesIn(t, built, filepath.Base(config))
		})
	}
}

func volumeName(v corev1.Volume) string     { return v.Name }
func mountName(m corev1.VolumeMount) string { return m.Name }

func names[T any](all []T, name func(T) string) []string {
	var out []string
	for _, one := range all {
		out = append(out, name(one))
	}
	return out
}

// holdsAll wants all that was there before, and more.
func holdsAll(t *testing.T, what string, before, after []string) {
	t.Helper()
	for _, one := range before {
		if !slices.Contains(after, one) {
			t.Errorf("%s %s is gone", what, one)
		}
	}
	if len(after) <= len(before) {
		t.Errorf("no %s was added", what)
	}
}

func flagOf(t *testing.T, args []string, name string) string {
	t.Helper()
	for _, arg := range args {
		if value, is := strings.CutPrefix(arg, name+"="); is {
			return value
		}
	}
	t.Fatalf("the controller has no %s: %v", name, args)
	return ""
}

// parsesIn wants a configuration of notifications, in the ConfigMap that was built, that the controller accepts.
func parsesIn(t *testing.T, built resmap.ResMap, file string) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() != "ConfigMap" {
			continue
		}
		document, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		cm := &corev1.ConfigMap{}
		if err := yaml.UnmarshalStrict(document, cm); err != nil {
			t.Fatal(err)
		}
		if text, has := cm.Data[file]; has {
			if _, err := notify.ParseConfig([]byte(text)); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("no ConfigMap has %s", file)
}
