package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	// execPatience is how long one command in a container may take.
	execPatience = 15 * time.Second
	// execOutput bounds what a command may print; an environment, or the value of a key, has at most 1 MiB.
	execOutput = 2 << 20
)

// Execs runs commands in containers with a person's own rights, as `kubectl exec` does. The controller has none of it.
type Execs struct {
	config *rest.Config
	client rest.Interface
}

// NewExecs makes it from a person's connection.
func NewExecs(config *rest.Config) (*Execs, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &Execs{config, c}, nil
}

// Run runs a command, and gives what it printed. A *ForbiddenExecError says that the right is missing; any other error is the
// command's, or that of whoever should have run it.
func (e *Execs) Run(ctx context.Context, namespace, pod, container string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, execPatience)
	defer cancel()
	request := e.client.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	spdy, err := remotecommand.NewSPDYExecutor(e.config, http.MethodPost, request.URL())
	if err != nil {
		return nil, err
	}
	sockets, err := remotecommand.NewWebSocketExecutor(e.config, http.MethodGet, request.URL().String())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	var out bounded
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard})
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, errors.New("it takes too long")
	case apierrors.IsForbidden(err):
		return nil, &ForbiddenExecError{namespace}
	case out.cut:
		return nil, fmt.Errorf("it prints more than %d MiB", execOutput>>20)
	}
	return out.Bytes(), err
}

// ForbiddenExecError says that the caller may not run commands in containers.
type ForbiddenExecError struct{ Namespace string }

// Error names the right.
func (e *ForbiddenExecError) Error() string {
	return "missing the right to create pods/exec in namespace " + e.Namespace
}

// bounded keeps what is written to it up to [execOutput].
type bounded struct {
	bytes.Buffer
	cut bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > execOutput {
		b.cut = true
		return 0, errors.New("too much")
	}
	return b.Buffer.Write(p)
}
