package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"tidemark.dev/tidemark/lab/sample"
)

// exitNoCommand is what a shell reports for a command that it does not find.
const exitNoCommand = 127

// ExecSync runs a probe's or a hook's command. In a container that is not the sample program a command that the
// runtime does not know succeeds, so that the probes of any manifest pass.
func (r *Runtime) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	c, err := r.findRunning(id)
	if err != nil {
		return nil, nil, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var out, errOut bytes.Buffer
	code := r.execute(ctx, c, command, &out, &errOut)
	if _, plain := c.program.(idle); plain && code == exitNoCommand {
		code = 0
	}
	return out.Bytes(), errOut.Bytes(), exitError(command, code)
}

// Exec returns a URL at which the API server carries the streams of `kubectl exec`.
func (r *Runtime) Exec(_ context.Context, request *rt.ExecRequest) (*rt.ExecResponse, error) {
	return r.stream.GetExec(request)
}

func (r *Runtime) findRunning(id string) (*container, error) {
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.state != rt.ContainerState_CONTAINER_RUNNING {
		return nil, errNotRunning
	}
	return c, nil
}

// execute runs one of the few commands that exist in every container.
func (r *Runtime) execute(ctx context.Context, c *container, command []string, out, errOut io.Writer) int {
	if len(command) == 0 {
		return exitNoCommand
	}
	switch name := path.Base(command[0]); name {
	case "sample":
		return sample.Exec(command[1:], r.beside(c), out, errOut)
	case "env", "cat":
		return sample.Exec(append([]string{name}, command[1:]...), r.beside(c), out, errOut)
	case "true":
		return 0
	case "false":
		return 1
	case "sleep":
		return sleep(ctx, command[1:], errOut)
	}
	fmt.Fprintf(errOut, "%s: the lab has no such command\n", command[0])
	return exitNoCommand
}

func (r *Runtime) beside(c *container) sample.Beside {
	return sample.Beside{
		Env:   c.env,
		Files: c.mounts,
		State: func() (sample.State, error) {
			if s, ok := c.program.(simulated); ok {
				return s.process.State(), nil
			}
			return sample.State{}, errors.New("the sample program does not run here")
		},
		Exit: func(code int) error {
			if s, ok := c.program.(simulated); ok {
				s.process.Exit(code)
				return nil
			}
			// Not waited for: the command that asks runs in the container that ends.
			go r.exit(c, int32(code))
			return nil
		},
	}
}

func sleep(ctx context.Context, args []string, errOut io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(errOut, "usage: sleep SECONDS")
		return 1
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		fmt.Fprintln(errOut, "usage: sleep SECONDS")
		return 1
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return 0
	case <-ctx.Done():
		return exitKilled
	}
}

func exitError(command []string, code int) error {
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command %q exited with %d", command, code), Code: code}
}

// serveStreams opens the server that GetExec's URLs point at.
func (r *Runtime) serveStreams() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	if r.stream, err = streaming.NewServer(config, streams{r}); err != nil {
		listener.Close()
		return err
	}
	server := &http.Server{Handler: r.stream, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // ends when the runtime is shut down
	r.stop = func() { server.Close() }
	return nil
}

// streams executes commands whose streams are carried to a client.
type streams struct{ runtime *Runtime }

// Exec implements streaming.Runtime.
func (s streams) Exec(ctx context.Context, id string, command []string, _ io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize) error {
	c, err := s.runtime.findRunning(id)
	if err != nil {
		return err
	}
	var complaints io.Writer = errOut
	if tty || errOut == nil {
		complaints = out
	}
	return exitError(command, s.runtime.execute(ctx, c, command, out, complaints))
}

// Attach implements streaming.Runtime.
func (streams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("the lab cannot attach to a container")
}

// PortForward implements streaming.Runtime.
func (streams) PortForward(context.Context, string, int32, io.ReadWriteCloser) error {
	return errors.New("the lab does not forward ports: dial with the lab's client")
}
