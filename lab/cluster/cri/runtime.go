// Package cri is a container runtime that runs no images.
//
// It implements cri-api's internal interfaces, which the kubelet calls without gRPC. A container whose command is
// the sample program runs it in this process; any other container runs for ever and does nothing. What each
// container was given is recorded.
package cri

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"

	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/record"
	"tidemark.dev/tidemark/lab/wire"
)

// Options describe the runtime of one node.
type Options struct {
	Node      string
	NodeIP    string // the address of pods on the node's own network
	PodPrefix string // the first two bytes of the addresses of all other pods, such as "10.100"
	Directory string // for sockets, so its path must be short
	Starts    *record.Store
	Delays    *delay.Table
	Kinds     Kinds
}

// Kinds returns what part each container of a pod plays. The interface between kubelet and runtime does not say.
type Kinds func(ctx context.Context, namespace, pod, uid string) (map[string]wire.Kind, error)

// Runtime is the container runtime of one node.
type Runtime struct {
	unsupported
	options Options
	stream  streaming.Server
	stop    func() // of the streaming server

	mu         sync.Mutex // guards what follows and the changeable parts of sandboxes and containers
	sandboxes  map[string]*sandbox
	containers map[string]*container
	addresses  uint16
	sockets    map[wire.Address]string
	socketSeq  int
}

// New returns a runtime without pods.
func New(options Options) (*Runtime, error) {
	if err := os.MkdirAll(options.Directory, 0o755); err != nil {
		return nil, fmt.Errorf("make runtime directory: %w", err)
	}
	r := &Runtime{
		options:    options,
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		sockets:    map[wire.Address]string{},
	}
	if err := r.serveStreams(); err != nil {
		return nil, fmt.Errorf("serve exec: %w", err)
	}
	return r, nil
}

// Shutdown closes the streaming server. Containers run on until the process ends: a kubelet would restart them.
func (r *Runtime) Shutdown() { r.stop() }

// Exit ends the running containers that the selector picks and returns how many there were.
func (r *Runtime) Exit(selector wire.Selector, code int32) int {
	count := 0
	for _, c := range r.running(selector) {
		if r.exit(c, code) {
			count++
		}
	}
	return count
}

// Running returns the running containers that the selector picks, with their files as they are now.
func (r *Runtime) Running(selector wire.Selector) ([]wire.Container, error) {
	var list []wire.Container
	for _, c := range r.running(selector) {
		now, err := c.mounts.snapshot()
		if err != nil {
			return nil, fmt.Errorf("read files of %s/%s: %w", c.pod().Namespace, c.pod().Name, err)
		}
		list = append(list, wire.Container{Start: r.options.Starts.Get(c.seq), FilesNow: now.files})
	}
	return list, nil
}

func (r *Runtime) running(selector wire.Selector) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*container
	for _, c := range r.containers {
		if c.state == rt.ContainerState_CONTAINER_RUNNING && selector.Matches(r.subject(c)) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *container) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

func (r *Runtime) subject(c *container) wire.Subject {
	pod := c.pod()
	return wire.Subject{Namespace: pod.Namespace, Pod: pod.Name, Container: c.name(), Node: r.options.Node}
}

// Socket returns the unix socket behind a pod's address.
func (r *Runtime) Socket(address wire.Address) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, ok := r.sockets[address]
	return path, ok
}

func (r *Runtime) newSocketPath() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.socketSeq++
	return filepath.Join(r.options.Directory, fmt.Sprintf("%d.sock", r.socketSeq))
}

// Version answers as a runtime that speaks version 1 of the interface.
func (r *Runtime) Version(context.Context, string) (*rt.VersionResponse, error) {
	return &rt.VersionResponse{Version: "0.1.0", RuntimeName: "lab", RuntimeVersion: "0.1.0", RuntimeApiVersion: "v1"}, nil
}

// Status says that the runtime and the network are ready.
func (r *Runtime) Status(context.Context, bool) (*rt.StatusResponse, error) {
	return &rt.StatusResponse{Status: &rt.RuntimeStatus{Conditions: []*rt.RuntimeCondition{
		{Type: rt.RuntimeReady, Status: true},
		{Type: rt.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig names a cgroup driver, though there are no cgroups.
func (r *Runtime) RuntimeConfig(context.Context) (*rt.RuntimeConfigResponse, error) {
	return &rt.RuntimeConfigResponse{Linux: &rt.LinuxRuntimeConfiguration{CgroupDriver: rt.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig accepts the pod address range and does not use it.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *rt.RuntimeConfig) error { return nil }

// Close is the kubelet's; the runtime outlives it.
func (r *Runtime) Close(context.Context) error { return nil }

func newID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails, by its contract
	return hex.EncodeToString(id[:])
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %s not found", what, id)
}

func labelsMatch(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
