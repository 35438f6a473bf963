package cri

import (
	"context"
	"fmt"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/wire"
)

// sandbox is the frame of one pod.
type sandbox struct {
	id      string
	config  *rt.PodSandboxConfig
	handler string
	created time.Time
	ip      string // also set on the node's own network
	kinds   map[string]wire.Kind
	state   rt.PodSandboxState
}

func (s *sandbox) onNodeNetwork() bool {
	return namespaces(s.config).GetNetwork() == rt.NamespaceMode_NODE
}

func namespaces(config *rt.PodSandboxConfig) *rt.NamespaceOption {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

// RunPodSandbox gives a pod its address.
func (r *Runtime) RunPodSandbox(ctx context.Context, config *rt.PodSandboxConfig, handler string) (string, error) {
	pod := config.GetMetadata()
	kinds, err := r.options.Kinds(ctx, pod.GetNamespace(), pod.GetName(), pod.GetUid())
	if err != nil {
		return "", fmt.Errorf("find kinds of containers: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox{id: newID(), config: config, handler: handler, created: time.Now(), ip: r.options.NodeIP, kinds: kinds}
	if !s.onNodeNetwork() {
		s.ip = r.nextAddress()
	}
	r.sandboxes[s.id] = s
	return s.id, nil
}

// nextAddress never gives an address twice, so that a stale one reaches nobody. Call with mu held.
func (r *Runtime) nextAddress() string {
	r.addresses++
	return fmt.Sprintf("%s.%d.%d", r.options.PodPrefix, r.addresses/250, r.addresses%250+1)
}

// StopPodSandbox ends what still runs in the pod.
func (r *Runtime) StopPodSandbox(_ context.Context, id string) error {
	r.mu.Lock()
	s := r.sandboxes[id]
	if s != nil {
		s.state = rt.PodSandboxState_SANDBOX_NOTREADY
	}
	var running []*container
	for _, c := range r.containers {
		if c.sandbox == s && c.state == rt.ContainerState_CONTAINER_RUNNING {
			running = append(running, c)
		}
	}
	r.mu.Unlock()
	for _, c := range running {
		r.exit(c, exitKilled)
	}
	return nil
}

// RemovePodSandbox forgets the pod and its containers. The record keeps their starts.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sandboxes, id)
	for key, c := range r.containers {
		if c.sandbox.id == id {
			delete(r.containers, key)
		}
	}
	return nil
}

// PodSandboxStatus echoes what the kubelet asked for, or it would make the sandbox anew.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*rt.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[id]
	if !ok {
		return nil, notFound("sandbox", id)
	}
	network := &rt.PodSandboxNetworkStatus{}
	if !s.onNodeNetwork() {
		network.Ip = s.ip
	}
	return &rt.PodSandboxStatusResponse{Status: &rt.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.created.UnixNano(), Network: network,
		Linux:  &rt.LinuxPodSandboxStatus{Namespaces: &rt.Namespace{Options: namespaces(s.config)}},
		Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
	}}, nil
}

// ListPodSandbox returns the pods that the filter picks.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *rt.PodSandboxFilter) ([]*rt.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*rt.PodSandbox
	for _, s := range r.sandboxes {
		if filter.GetId() != "" && filter.GetId() != s.id ||
			filter.GetState() != nil && filter.GetState().State != s.state ||
			!labelsMatch(filter.GetLabelSelector(), s.config.Labels) {
			continue
		}
		list = append(list, &rt.PodSandbox{
			Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.created.UnixNano(),
			Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
		})
	}
	return list, nil
}
