package cri

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"
	"sync"

	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
)

// program is what runs in a container.
type program interface {
	// run returns the exit code, when the program ends by itself or soon after ctx is done.
	run(ctx context.Context) int
}

// idle stands for any program that the runtime does not know: it runs until it is told to stop.
type idle struct{}

func (idle) run(ctx context.Context) int {
	<-ctx.Done()
	return 0
}

// ended is a program that ends at once.
type ended struct{ code int }

func (e ended) run(context.Context) int { return e.code }

// simulated is the sample program.
type simulated struct{ process *sample.Process }

func (s simulated) run(ctx context.Context) int { return s.process.Run(ctx) }

// newProgram starts the program of a container, which is the moment at which it reads its files.
func (r *Runtime) newProgram(c *container, files snapshot, log io.Writer, message *termination) program {
	args, ok := sampleArgs(c.config.GetImage().GetImage(), c.config.GetCommand(), c.config.GetArgs())
	switch {
	case !ok && c.kind == wire.Init:
		return ended{}
	case !ok:
		return idle{}
	case sample.IsCommand(args):
		return ended{code: sample.Exec(args, r.beside(c), log, log)}
	}
	options, err := sample.Parse(args, log)
	if err != nil {
		message.set(err.Error())
		return ended{code: sample.ExitUsage}
	}
	return simulated{sample.Start(options, sample.Host{
		Env:       c.env,
		Files:     c.mounts,
		Out:       log,
		Listen:    func(port int) (net.Listener, error) { return r.listen(c, port) },
		Terminate: message.set,
	}, files)}
}

// sampleArgs returns the arguments for the sample program, if that is what the container runs: its command is named
// sample, or it has none and its image is named sample or something-sample.
func sampleArgs(image string, command, args []string) ([]string, bool) {
	if len(command) > 0 {
		return append(command[1:len(command):len(command)], args...), path.Base(command[0]) == "sample"
	}
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return args, name == "sample" || strings.HasSuffix(name, "-sample")
}

// listen opens a unix socket in place of a port of the pod.
func (r *Runtime) listen(c *container, port int) (net.Listener, error) {
	address := wire.Address{PodIP: c.sandbox.ip, Port: port}
	socket := r.newSocketPath()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.sockets[address]; taken {
		listener.Close()
		return nil, fmt.Errorf("port %d is in use", port)
	}
	r.sockets[address] = socket
	return &podListener{Listener: listener, close: func() { r.unlisten(address, socket) }}, nil
}

func (r *Runtime) unlisten(address wire.Address, socket string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sockets, address)
	_ = os.Remove(socket)
}

// podListener gives the pod's port back when it is closed.
type podListener struct {
	net.Listener
	once  sync.Once
	close func()
}

// Close may be called more than once.
func (l *podListener) Close() error {
	l.once.Do(l.close)
	return l.Listener.Close()
}

// termination holds a termination message.
type termination struct {
	mu   sync.Mutex
	text string
}

func (t *termination) set(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = text
}

func (t *termination) get() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}
