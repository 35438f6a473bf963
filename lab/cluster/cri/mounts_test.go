package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/sample"
)

// volume writes a volume the way the kubelet does: keys are links through ..data into a version's directory.
func volume(t *testing.T, plugin string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pods", "uid", "volumes", "kubernetes.io~"+plugin, "name")
	writeVersion(t, dir, "..1", files)
	return dir
}

func writeVersion(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, version, name)
		try(t, os.MkdirAll(filepath.Dir(path), 0o755))
		try(t, os.WriteFile(path, []byte(content), 0o644))
		if link := filepath.Join(dir, name); filepath.Dir(name) == "." {
			_ = os.Remove(link)
			try(t, os.Symlink(filepath.Join("..data", name), link))
		}
	}
	try(t, os.MkdirAll(filepath.Join(dir, version), 0o755))
	try(t, os.Symlink(version, filepath.Join(dir, "..new")))
	try(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mounted(at, host string) *rt.Mount { return &rt.Mount{ContainerPath: at, HostPath: host} }

func text(files map[string][]byte) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, fmt.Sprintf("%s=%s", name, files[name]))
	}
	return fmt.Sprint(lines)
}

func TestSnapshotHoldsConfigurationOnly(t *testing.T) {
	m := mounts{
		mounted("/cfg/secret/", volume(t, "secret", map[string]string{"key": "s"})),
		mounted("/cfg", volume(t, "configmap", map[string]string{"a": "1", "deep/b": "2", "secret": "hidden"})),
		mounted("/all", volume(t, "projected", map[string]string{"c": "3"})),
		mounted("/scratch", volume(t, "empty-dir", map[string]string{"d": "4"})),
		mounted(tokenMount, volume(t, "projected", map[string]string{"token": "t"})),
	}
	s, err := m.snapshot()
	try(t, err)
	if got, want := text(s.files), "[/all/c=3 /cfg/a=1 /cfg/deep/b=2 /cfg/secret/key=s]"; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
}

func TestSnapshotStaysWhenTheVolumeChanges(t *testing.T) {
	dir := volume(t, "configmap", map[string]string{"a": "1"})
	m := mounts{mounted("/cfg", dir), mounted("/other", t.TempDir())}
	s, err := m.snapshot()
	try(t, err)
	writeVersion(t, dir, "..2", map[string]string{"a": "2", "b": "3"})
	old, err := s.ReadFile("/cfg/a")
	try(t, err)
	now, err := m.ReadFile("/cfg/../cfg/a")
	try(t, err)
	if string(old) != "1" || string(now) != "2" {
		t.Errorf("snapshot has %s, the mount %s", old, now)
	}
	oldNames, err := s.List("/cfg")
	try(t, err)
	nowNames, err := m.List("/cfg")
	try(t, err)
	if fmt.Sprint(oldNames, nowNames) != "[a] [a b]" {
		t.Errorf("snapshot lists %v, the mount %v", oldNames, nowNames)
	}
	if _, err := s.ReadFile("/cfg/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the new version: %v", err)
	}
	if _, err := s.List("/cfg/a"); !errors.Is(err, sample.ErrNotDirectory) {
		t.Errorf("list of a file: %v", err)
	}
	if _, err := s.List("/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of nothing: %v", err)
	}
	if names, err := s.List("/other"); err != nil || len(names) != 0 {
		t.Errorf("what is not configuration shows through: %v %v", names, err)
	}
}

func TestSnapshotOfSubPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume-subpaths", "cfg", "app")
	try(t, os.MkdirAll(dir, 0o755))
	file := filepath.Join(dir, "0")
	try(t, os.WriteFile(file, []byte("pinned"), 0o644))
	m := mounts{mounted("/etc/app.conf", file), mounted("/etc/gone", filepath.Join(dir, "removed"))}
	s, err := m.snapshot()
	try(t, err)
	if got := text(s.files); got != "[/etc/app.conf=pinned]" {
		t.Errorf("files are %s", got)
	}
	if names, err := s.List("/etc/gone"); err != nil || len(names) != 0 {
		t.Errorf("a directory that the kubelet removed: %v %v", names, err)
	}
}

func TestPathsAreMatchedByWholeNames(t *testing.T) {
	m := mounts{mounted("/cfg", "/host/cfg"), mounted("/cfg/deep", "/host/deep"), mounted("/", "/host/root")}
	for path, want := range map[string]string{
		"/cfg/a": "/host/cfg/a", "/cfg": "/host/cfg", "/cfg/deep/a": "/host/deep/a", "/cfgs/a": "/host/root/cfgs/a",
	} {
		if got, err := m.hostPath(path); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", path, got, err, want)
		}
	}
}
