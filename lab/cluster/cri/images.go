package cri

import (
	"context"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/wire"
)

// Images is the image service of the runtime's node: every image exists.
type Images struct{ runtime *Runtime }

// Images returns the node's image service.
func (r *Runtime) Images() Images { return Images{r} }

// ImageStatus reports any image as present. While starts may be held before their environment is read it reports
// every image as absent: only the pull that follows says for which pod it is.
func (i Images) ImageStatus(_ context.Context, image *rt.ImageSpec, _ bool) (*rt.ImageStatusResponse, error) {
	if i.runtime.options.Delays.Holds(wire.BeforeEnvironment, i.runtime.options.Node) {
		return &rt.ImageStatusResponse{}, nil
	}
	return &rt.ImageStatusResponse{Image: &rt.Image{Id: image.GetImage(), RepoTags: []string{image.GetImage()}, Size: 1, Spec: image}}, nil
}

// PullImage takes as long as the delays of the pod say.
func (i Images) PullImage(ctx context.Context, image *rt.ImageSpec, _ *rt.AuthConfig, sandbox *rt.PodSandboxConfig) (string, error) {
	pod := sandbox.GetMetadata()
	subject := wire.Subject{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Node: i.runtime.options.Node}
	if err := i.runtime.options.Delays.Wait(ctx, wire.BeforeEnvironment, subject); err != nil {
		return "", err
	}
	return image.GetImage(), nil
}

// ListImages lists nothing: the garbage collection of images has nothing to do.
func (Images) ListImages(context.Context, *rt.ImageFilter) ([]*rt.Image, error) { return nil, nil }

// RemoveImage has nothing to remove.
func (Images) RemoveImage(context.Context, *rt.ImageSpec) error { return nil }

// ImageFsInfo reports a nearly empty file system.
func (Images) ImageFsInfo(context.Context) (*rt.ImageFsInfoResponse, error) {
	usage := []*rt.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &rt.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &rt.UInt64Value{Value: 1 << 20},
		InodesUsed: &rt.UInt64Value{Value: 10},
	}}
	return &rt.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

// Close is the kubelet's; the images outlive it.
func (Images) Close(context.Context) error { return nil }
