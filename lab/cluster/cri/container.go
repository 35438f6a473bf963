package cri

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/wire"
)

// Exit codes with a meaning of their own.
const (
	exitKilled      = 137 // 128 + SIGKILL
	exitStartFailed = 128 // what containerd reports for a container that could not be started
)

// container is one instance: a restart makes another.
type container struct {
	id      string
	sandbox *sandbox
	config  *rt.ContainerConfig
	kind    wire.Kind
	env     map[string]string
	mounts  mounts
	logPath string
	created time.Time

	// Guarded by Runtime.mu.
	state    rt.ContainerState
	started  time.Time
	finished time.Time
	exitCode int32
	reason   string
	message  string
	forced   *int32 // exit code that was asked for from outside

	// Set once, before the state is RUNNING.
	seq     uint64 // in the record
	program program
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the state is EXITED
}

func (c *container) name() string                { return c.config.GetMetadata().GetName() }
func (c *container) attempt() uint32             { return c.config.GetMetadata().GetAttempt() }
func (c *container) pod() *rt.PodSandboxMetadata { return c.sandbox.config.GetMetadata() }
func (c *container) metadata() *rt.ContainerMetadata {
	return &rt.ContainerMetadata{Name: c.name(), Attempt: c.attempt()}
}

// CreateContainer takes what the kubelet read for the container: its environment and its mounts.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *rt.ContainerConfig, _ *rt.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[sandboxID]
	if !ok {
		return "", notFound("sandbox", sandboxID)
	}
	c := &container{
		id: newID(), sandbox: s, config: config, mounts: config.GetMounts(), created: time.Now(),
		logPath: filepath.Join(s.config.GetLogDirectory(), config.GetLogPath()),
		env:     map[string]string{}, ended: make(chan struct{}),
	}
	for _, e := range config.GetEnvs() {
		c.env[e.GetKey()] = string(e.GetValue())
	}
	if c.kind, ok = s.kinds[c.name()]; !ok {
		c.kind = wire.Ephemeral // added after the pod was made
	}
	r.containers[c.id] = c
	return c.id, nil
}

func (r *Runtime) find(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[id]
	if !ok {
		return nil, notFound("container", id)
	}
	return c, nil
}

// StopContainer tells the program to end and kills it when it takes longer than the timeout.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.find(id)
	if err != nil {
		return nil // gone is stopped
	}
	r.mu.Lock()
	state := c.state
	if state == rt.ContainerState_CONTAINER_CREATED {
		r.markExited(c, exitKilled, "Error", "")
	}
	r.mu.Unlock()
	if state != rt.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(time.Duration(timeout) * time.Second):
		r.exit(c, exitKilled)
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

// exit ends a running container with a code and waits until it has ended.
func (r *Runtime) exit(c *container, code int32) bool {
	r.mu.Lock()
	running := c.state == rt.ContainerState_CONTAINER_RUNNING
	if running && c.forced == nil {
		c.forced = &code
	}
	r.mu.Unlock()
	if running {
		c.cancel()
		<-c.ended
	}
	return running
}

// markExited may be called once. Call with mu held.
func (r *Runtime) markExited(c *container, code int32, reason, message string) {
	c.state, c.finished = rt.ContainerState_CONTAINER_EXITED, time.Now()
	c.exitCode, c.reason, c.message = code, reason, message
	close(c.ended)
}

// RemoveContainer forgets a container. The record keeps its start.
func (r *Runtime) RemoveContainer(_ context.Context, id string) error {
	c, err := r.find(id)
	if err != nil {
		return nil // gone is removed
	}
	r.exit(c, exitKilled)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
	return nil
}

// ListContainers returns the containers that the filter picks.
func (r *Runtime) ListContainers(_ context.Context, filter *rt.ContainerFilter) ([]*rt.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*rt.Container
	for _, c := range r.containers {
		if filter.GetId() != "" && filter.GetId() != c.id ||
			filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandbox.id ||
			filter.GetState() != nil && filter.GetState().State != c.state ||
			!labelsMatch(filter.GetLabelSelector(), c.config.Labels) {
			continue
		}
		image := c.config.GetImage()
		list = append(list, &rt.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.metadata(), State: c.state, CreatedAt: c.created.UnixNano(),
			Image: image, ImageRef: image.GetImage(), ImageId: image.GetImage(),
			Labels: c.config.Labels, Annotations: c.config.Annotations,
		})
	}
	return list, nil
}

// ContainerStatus reports one container.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*rt.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[id]
	if !ok {
		return nil, notFound("container", id)
	}
	image := c.config.GetImage()
	return &rt.ContainerStatusResponse{Status: &rt.ContainerStatus{
		Id: c.id, Metadata: c.metadata(), State: c.state,
		CreatedAt: nanoseconds(c.created), StartedAt: nanoseconds(c.started), FinishedAt: nanoseconds(c.finished),
		ExitCode: c.exitCode, Reason: c.reason, Message: c.message,
		Image: image, ImageRef: image.GetImage(), ImageId: image.GetImage(),
		Labels: c.config.Labels, Annotations: c.config.Annotations, Mounts: c.mounts, LogPath: c.logPath,
	}}, nil
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// UpdateContainerResources accepts a change of resources, of which there are none.
func (r *Runtime) UpdateContainerResources(context.Context, string, *rt.ContainerResources) error {
	return nil
}

// ReopenContainerLog does nothing: every line is appended to the file of that name.
func (r *Runtime) ReopenContainerLog(context.Context, string) error { return nil }

var errNotRunning = status.Error(codes.FailedPrecondition, "container is not running")
