package cri

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/sample"
)

// tokenMount is where the kubelet mounts the service account's token.
const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

// mounts are the files of a container as they are now: every mount, with the paths that the container sees.
type mounts []*rt.Mount

// ReadFile implements sample.Files.
func (m mounts) ReadFile(name string) ([]byte, error) {
	host, err := m.hostPath(name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(host)
}

// List implements sample.Files.
func (m mounts) List(dir string) ([]string, error) {
	host, err := m.hostPath(dir)
	if err != nil {
		return nil, err
	}
	return sample.Disk{}.List(host)
}

func (m mounts) hostPath(name string) (string, error) {
	var deepest *rt.Mount
	for _, mount := range m {
		if within(name, mount.ContainerPath) && (deepest == nil || len(mount.ContainerPath) > len(deepest.ContainerPath)) {
			deepest = mount
		}
	}
	if deepest == nil {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return filepath.Join(deepest.HostPath, strings.TrimPrefix(path.Clean(name), path.Clean(deepest.ContainerPath))), nil
}

func within(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// configuration returns the mounts that came from a ConfigMap, Secret, projected or subPath volume, the deeper
// ones last.
func (m mounts) configuration() mounts {
	picked := slices.DeleteFunc(slices.Clone(m), func(mount *rt.Mount) bool {
		if path.Clean(mount.ContainerPath) == tokenMount {
			return true
		}
		return !slices.ContainsFunc([]string{
			"/volumes/kubernetes.io~configmap/",
			"/volumes/kubernetes.io~secret/",
			"/volumes/kubernetes.io~projected/",
			"/volume-subpaths/",
		}, func(part string) bool { return strings.Contains(mount.HostPath, part) })
	})
	slices.SortStableFunc(picked, func(a, b *rt.Mount) int { return len(a.ContainerPath) - len(b.ContainerPath) })
	return picked
}

// snapshot is the configuration of a container as it was read once. Whatever else is mounted shows through.
type snapshot struct {
	files map[string][]byte // by path in the container
	roots []string          // where configuration is mounted
	live  mounts
}

// snapshot reads all configuration files once.
func (m mounts) snapshot() (snapshot, error) {
	s := snapshot{files: map[string][]byte{}, live: m}
	for _, mount := range m.configuration() {
		root := path.Clean(mount.ContainerPath)
		for name := range s.files { // hidden by the deeper mount
			if within(name, root) {
				delete(s.files, name)
			}
		}
		files, err := readMount(mount.HostPath)
		if err != nil {
			return snapshot{}, fmt.Errorf("read mount %s: %w", root, err)
		}
		for name, content := range files {
			s.files[path.Join(root, name)] = content
		}
		s.roots = append(s.roots, root)
	}
	return s, nil
}

// readMount returns the files of a mount by their path below it, which is "" for a mounted file.
func readMount(host string) (map[string][]byte, error) {
	const attempts = 10
	var err error
	for range attempts {
		var files map[string][]byte
		if files, err = readVersion(host); !errors.Is(err, fs.ErrNotExist) {
			return files, err
		}
		if _, gone := os.Stat(host); errors.Is(gone, fs.ErrNotExist) {
			// A directory mounted by subPath is gone once its volume was refreshed, as it is with a bind mount.
			return nil, nil
		}
		// The kubelet replaced the volume's content while it was read: begin again with the new one.
	}
	return nil, err
}

// readVersion reads one version of a volume. The kubelet changes all files of a volume at once, by pointing the
// link ..data at another directory; following that link first gives files that belong together.
func readVersion(host string) (map[string][]byte, error) {
	root, err := filepath.EvalSymlinks(filepath.Join(host, "..data"))
	if err != nil {
		if root, err = filepath.EvalSymlinks(host); err != nil {
			return nil, err
		}
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files[strings.TrimPrefix(strings.TrimPrefix(name, root), "/")] = content
		return nil
	})
	return files, err
}

// ReadFile implements sample.Files.
func (s snapshot) ReadFile(name string) ([]byte, error) {
	if !s.covers(name) {
		return s.live.ReadFile(name)
	}
	content, ok := s.files[path.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(content), nil
}

// List implements sample.Files.
func (s snapshot) List(dir string) ([]string, error) {
	if !s.covers(dir) {
		return s.live.List(dir)
	}
	dir = path.Clean(dir)
	if _, ok := s.files[dir]; ok {
		return nil, sample.ErrNotDirectory
	}
	var names []string
	found := slices.Contains(s.roots, dir)
	for name := range s.files {
		if within(name, dir) {
			found = true
			if path.Dir(name) == dir {
				names = append(names, path.Base(name))
			}
		}
	}
	if !found {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	slices.Sort(names)
	return names, nil
}

func (s snapshot) covers(name string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool { return within(name, root) })
}
