package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
)

// operatingSystem is the real one, except that nothing is written below /var/log.
type operatingSystem struct{ kubecontainer.RealOS }

// Symlink would link /var/log/containers/… to the container's log.
func (operatingSystem) Symlink(string, string) error { return nil }

// MkdirAll implements kubecontainer.OSInterface.
func (o operatingSystem) MkdirAll(path string, mode os.FileMode) error {
	if strings.HasPrefix(path, "/var/log") {
		return nil
	}
	return o.RealOS.MkdirAll(path, mode)
}

// hostUtil is the real one, without a mount.
type hostUtil struct{ *hostutil.HostUtil }

// MakeRShared would make the root directory a shared mount.
func (hostUtil) MakeRShared(string) error { return nil }

// pinnedSubpath stands for the bind mount of a subPath. What makes a mounted file stay as it was is that a bind
// mount holds on to an inode; so does a hard link.
type pinnedSubpath struct{}

// CleanSubPaths implements subpath.Interface.
func (pinnedSubpath) CleanSubPaths(podDir, volume string) error {
	return os.RemoveAll(filepath.Join(podDir, "volume-subpaths", volume))
}

// SafeMakeDir implements subpath.Interface.
func (pinnedSubpath) SafeMakeDir(dir, base string, mode os.FileMode) error {
	return os.MkdirAll(filepath.Join(base, dir), mode)
}

// PrepareSafeSubpath returns a link to the file that the subPath leads to now, or the directory itself: the kubelet
// makes a new one when the volume changes, so it stays as it was, or is gone.
func (pinnedSubpath) PrepareSafeSubpath(s subpath.Subpath) (string, func(), error) {
	target, err := filepath.EvalSymlinks(s.Path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", nil, err
	}
	if info.IsDir() {
		return target, nil, nil
	}
	dir := filepath.Join(s.PodDir, "volume-subpaths", s.VolumeName, s.ContainerName)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", nil, err
	}
	link := filepath.Join(dir, strconv.Itoa(s.VolumeMountIndex))
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return "", nil, err
	}
	if err := os.Link(target, link); err != nil {
		return "", nil, fmt.Errorf("pin subPath: %w", err)
	}
	return link, nil, nil
}
