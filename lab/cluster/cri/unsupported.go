package cri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unsupported is the part of the interface that the lab's kubelets do not need.
type unsupported struct{}

var errUnsupported = status.Error(codes.Unimplemented, "not supported by the lab's runtime")

func (unsupported) Attach(context.Context, *rt.AttachRequest) (*rt.AttachResponse, error) {
	return nil, errUnsupported
}

func (unsupported) PortForward(context.Context, *rt.PortForwardRequest) (*rt.PortForwardResponse, error) {
	return nil, errUnsupported
}

func (unsupported) CheckpointContainer(context.Context, *rt.CheckpointContainerRequest) error {
	return errUnsupported
}

func (unsupported) CheckpointPod(context.Context, *rt.CheckpointPodRequest) error {
	return errUnsupported
}

func (unsupported) RestorePod(context.Context, *rt.RestorePodRequest) (*rt.RestorePodResponse, error) {
	return nil, errUnsupported
}

func (unsupported) GetContainerEvents(context.Context, chan *rt.ContainerEventResponse, func(rt.RuntimeService_GetContainerEventsClient)) error {
	return errUnsupported
}

func (unsupported) UpdatePodSandboxResources(context.Context, *rt.UpdatePodSandboxResourcesRequest) (*rt.UpdatePodSandboxResourcesResponse, error) {
	return &rt.UpdatePodSandboxResourcesResponse{}, nil
}

func (unsupported) ContainerStats(context.Context, string) (*rt.ContainerStats, error) {
	return &rt.ContainerStats{}, nil
}

func (unsupported) ListContainerStats(context.Context, *rt.ContainerStatsFilter) ([]*rt.ContainerStats, error) {
	return nil, nil
}

func (unsupported) PodSandboxStats(context.Context, string) (*rt.PodSandboxStats, error) {
	return nil, errUnsupported
}

func (unsupported) ListPodSandboxStats(context.Context, *rt.PodSandboxStatsFilter) ([]*rt.PodSandboxStats, error) {
	return nil, nil
}

func (unsupported) ListMetricDescriptors(context.Context) ([]*rt.MetricDescriptor, error) {
	return nil, nil
}

func (unsupported) ListPodSandboxMetrics(context.Context) ([]*rt.PodSandboxMetrics, error) {
	return nil, nil
}
