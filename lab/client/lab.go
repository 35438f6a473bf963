package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidemark.dev/tidemark/lab/wire"
)

const (
	startTimeout = 3 * time.Minute
	stopTimeout  = 30 * time.Second
)

// Options describe a lab. The zero value of a field takes the binary's own default.
type Options struct {
	Binary string // default: as the package finds it
	// Nodes is the number of nodes; 0 means the default, 3. For a control plane without nodes see NoNodes.
	Nodes   int
	NoNodes bool

	Kubeconfig             string        // file to write; default: in the lab's directory, see Lab.Kubeconfig
	SyncFrequency          time.Duration // how long an edit may take to reach mounted files; default 2s
	CrashLoopMax           time.Duration // cap of the back-off between restarts; default 2s
	NodeMonitorGracePeriod time.Duration // silence after which a node is NotReady; default 12s. Nodes renew their Leases every sixth of it
	EvictionDelay          time.Duration // how long pods stay bound to a NotReady node; default 300s
	FeatureGates           map[string]bool
}

// Lab is a running lab.
type Lab struct {
	binary  string
	status  wire.Status
	config  *rest.Config
	control control
	command *exec.Cmd
	stdin   io.WriteCloser // its end ends the lab
	stderr  *tailBuffer
	ended   chan struct{} // closed when the process has ended
	waitErr error         // set before ended is closed
	stop    sync.Once
	stopErr error

	argoMu sync.Mutex
	argo   *ArgoRollouts // the last one started, if any
}

// Start starts a lab and returns when all its nodes are ready. The lab runs until Stop is called or this process
// ends; ctx only bounds the start.
func Start(ctx context.Context, o Options) (*Lab, error) {
	binary, err := findBinary(o.Binary)
	if err != nil {
		return nil, err
	}
	l := &Lab{binary: binary, stderr: &tailBuffer{}, ended: make(chan struct{})}
	ready, err := l.launch(o.args())
	if err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	if err := l.await(ctx, ready); err != nil {
		l.kill()
		return nil, fmt.Errorf("start the lab: %w%s", err, l.stderr.addition())
	}
	if l.config, err = clientcmd.BuildConfigFromFlags("", l.status.Kubeconfig); err != nil {
		return nil, errors.Join(fmt.Errorf("read the lab's kubeconfig: %w", err), l.Stop())
	}
	l.config.QPS = -1 // a client-side limit would only slow tests down
	l.control = newControl(l.status.Control)
	return l, nil
}

func (o Options) args() []string {
	args := []string{"up", "--die-with-parent"}
	if o.Nodes > 0 || o.NoNodes {
		args = append(args, "--nodes", strconv.Itoa(o.Nodes))
	}
	if o.Kubeconfig != "" {
		args = append(args, "--kubeconfig", o.Kubeconfig)
	}
	for flag, value := range map[string]time.Duration{
		"--sync-frequency":            o.SyncFrequency,
		"--crash-loop-max":            o.CrashLoopMax,
		"--node-monitor-grace-period": o.NodeMonitorGracePeriod,
		"--eviction-delay":            o.EvictionDelay,
	} {
		if value > 0 {
			args = append(args, flag, value.String())
		}
	}
	var gates []string
	for gate, on := range o.FeatureGates {
		gates = append(gates, fmt.Sprintf("%s=%t", gate, on))
	}
	if len(gates) > 0 {
		args = append(args, "--feature-gates", strings.Join(gates, ","))
	}
	return args
}

// launch starts the process. The channel gets its first line.
func (l *Lab) launch(args []string) (<-chan string, error) {
	// Not bound to a context: the lab outlives the call that starts it, until Stop.
	l.command = exec.Command(l.binary, args...) //nolint:noctx // as said
	l.command.Stderr = l.stderr
	// A group of its own: an interrupt from the terminal reaches only the test, which then stops the lab.
	l.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if l.stdin, err = l.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := l.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.command.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err == nil {
			ready <- line
		}
		_, _ = io.Copy(io.Discard, stdout)
		l.waitErr = l.command.Wait()
		close(l.ended)
	}()
	return ready, nil
}

func (l *Lab) await(ctx context.Context, ready <-chan string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	select {
	case line := <-ready:
		if err := json.Unmarshal([]byte(line), &l.status); err != nil {
			return fmt.Errorf("read its first line %q: %w", line, err)
		}
		return nil
	case <-l.ended:
		return errors.Join(errEnded, l.waitErr)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the lab with what was started beside it, and waits until its process is gone and its directory removed.
func (l *Lab) Stop() error {
	l.stop.Do(func() { l.stopErr = errors.Join(l.stopArgo(), l.shutdown()) })
	return l.stopErr
}

func (l *Lab) shutdown() error {
	_ = l.stdin.Close()
	select {
	case <-l.ended:
	case <-time.After(stopTimeout):
		l.kill()
		return fmt.Errorf("stop the lab: killed after %v", stopTimeout)
	}
	if l.waitErr != nil {
		return fmt.Errorf("stop the lab: %w%s", l.waitErr, l.stderr.addition())
	}
	return nil
}

func (l *Lab) kill() {
	_ = l.stdin.Close()
	_ = l.command.Process.Kill()
	<-l.ended
}

// Ended is closed when the lab's process has ended.
func (l *Lab) Ended() <-chan struct{} { return l.ended }

// Status returns where everything of the lab is.
func (l *Lab) Status() wire.Status { return l.status }

// Nodes returns the names of the nodes.
func (l *Lab) Nodes() []string { return l.status.Nodes }

// Kubeconfig returns the path of a kubeconfig with all rights.
func (l *Lab) Kubeconfig() string { return l.status.Kubeconfig }

// LogFile returns the path of the log of every component. It is gone when the lab has stopped.
func (l *Lab) LogFile() string { return l.status.Log }

// RESTConfig returns a fresh configuration of a client with all rights and no rate limit.
func (l *Lab) RESTConfig() *rest.Config { return rest.CopyConfig(l.config) }

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu      sync.Mutex
	content []byte
}

const tailBufferSize = 16 << 10

func (t *tailBuffer) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.content = append(t.content, text...)
	if over := len(t.content) - tailBufferSize; over > 0 {
		t.content = append([]byte(nil), t.content[over:]...)
	}
	return len(text), nil
}

// addition returns the content as an addition to an error.
func (t *tailBuffer) addition() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.content) == 0 {
		return ""
	}
	return "\n" + strings.TrimRight(string(t.content), "\n")
}
