package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tidemark.dev/tidemark/lab/wire"
)

// StartContainer starts the program: it reads its files once, the record takes what was read, and the program runs.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	c, err := r.find(id)
	if err != nil {
		return err
	}
	err = r.options.Delays.Wait(ctx, wire.BeforeStart, r.subject(c))
	if err == nil {
		err = r.start(c)
	}
	if err != nil {
		r.failStart(c, err)
		return fmt.Errorf("start container %s: %w", c.name(), err)
	}
	return nil
}

func (r *Runtime) start(c *container) error {
	started := time.Now()
	files, err := c.mounts.snapshot()
	if err != nil {
		return fmt.Errorf("read mounted files: %w", err)
	}
	log := &logWriter{path: c.logPath}
	message := &termination{}
	program := r.newProgram(c, files, log, message)
	read := time.Now()

	r.mu.Lock()
	defer r.mu.Unlock()
	if c.state != rt.ContainerState_CONTAINER_CREATED || c.sandbox.state != rt.PodSandboxState_SANDBOX_READY {
		return errors.New("stopped before it was started")
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	c.program, c.started, c.state = program, started, rt.ContainerState_CONTAINER_RUNNING
	c.seq = r.options.Starts.Append(r.describe(c, files, read))
	go r.run(ctx, c, message)
	return nil
}

func (r *Runtime) run(ctx context.Context, c *container, message *termination) {
	code := int32(c.program.run(ctx))
	c.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.forced != nil {
		code = *c.forced
	}
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	r.markExited(c, code, reason, message.get())
	r.options.Starts.Finish(c.seq, c.finished, code, c.message)
}

// failStart leaves the container the way containerd does, or the kubelet would try again without backing off.
func (r *Runtime) failStart(c *container, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.state == rt.ContainerState_CONTAINER_CREATED {
		c.started = time.Now()
		r.markExited(c, exitStartFailed, "StartError", err.Error())
	}
}

func (r *Runtime) describe(c *container, files snapshot, read time.Time) wire.Start {
	pod := c.pod()
	env := make(map[string][]byte, len(c.env))
	for key, value := range c.env {
		env[key] = []byte(value)
	}
	return wire.Start{
		Namespace: pod.GetNamespace(), Pod: pod.GetName(), PodUID: pod.GetUid(), PodIP: c.sandbox.ip, Node: r.options.Node,
		Container: c.name(), ContainerID: c.id, Kind: c.kind, Attempt: c.attempt(),
		Image: c.config.GetImage().GetUserSpecifiedImage(), Command: c.config.GetCommand(), Args: c.config.GetArgs(),
		Created: c.created, Started: c.started, Read: read,
		Environment: env, Files: files.files,
	}
}
