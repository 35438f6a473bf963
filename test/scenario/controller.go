package scenario

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tidemark.dev/tidemark/lab/client"
)

const (
	readyTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// Program is the controller's binary with its arguments.
type Program struct {
	Binary string
	Flags  []string
	// StandBy does not wait until the program leads.
	StandBy bool
	// Through is the address of what passes connections on to the API server; "" for none.
	Through string
}

// Controller is a running controller program.
type Controller struct {
	command *exec.Cmd
	dir     string
	metrics string // URL
	probe   string // URL
	log     *transcript
	ready   time.Time     // when it was ready
	ended   chan struct{} // closed when the process has ended
	waitErr error         // set before ended is closed
}

// Start starts the controller program with the rights of its service account, and returns when it leads.
func Start(ctx context.Context, lab *client.Lab, p Program) (*Controller, error) {
	config, err := lab.RESTConfigForServiceAccount(ctx, SystemNamespace, ServiceAccount)
	if err != nil {
		return nil, err
	}
	if p.Through != "" {
		config.Host = "https://" + p.Through
	}
	c := &Controller{log: &transcript{}, ended: make(chan struct{})}
	if c.dir, err = os.MkdirTemp("", "tidemark-controller-"); err != nil {
		return nil, err
	}
	if err := c.launch(config, p); err != nil {
		return nil, errors.Join(fmt.Errorf("start controller: %w", err), os.RemoveAll(c.dir))
	}
	if err := c.await(ctx, p.StandBy); err != nil {
		_ = c.Kill()
		return nil, fmt.Errorf("start controller: %w\n%s", err, c.Log())
	}
	c.ready = time.Now()
	return c, nil
}

// margin is more than the margins by which the times of pods may be off.
const margin = 4 * time.Second

// HasWatched waits until the program has watched for long enough to tell what pods loaded that are made after this call.
func (c *Controller) HasWatched(ctx context.Context) error {
	return Await(ctx, "the controller to have watched for "+margin.String(), func() error {
		if watched := time.Since(c.ready); watched < margin {
			return fmt.Errorf("it has for %v", watched)
		}
		return nil
	})
}

func (c *Controller) launch(config *rest.Config, p Program) error {
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := writeKubeconfig(config, kubeconfig); err != nil {
		return err
	}
	metrics, err := FreeAddress()
	if err != nil {
		return err
	}
	probe, err := FreeAddress()
	if err != nil {
		return err
	}
	c.metrics, c.probe = "http://"+metrics+"/metrics", "http://"+probe+"/readyz"
	args := []string{"--kubeconfig", kubeconfig, "--metrics-address", metrics, "--probe-address", probe, "--retry-period", "500ms"}
	c.command = exec.Command(p.Binary, append(args, p.Flags...)...)
	c.command.Stdout, c.command.Stderr = c.log, c.log
	// A group of its own: an interrupt from the terminal reaches only the test, which then stops the controller.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.command.Start(); err != nil {
		return err
	}
	go func() {
		c.waitErr = c.command.Wait()
		close(c.ended)
	}()
	return nil
}

func writeKubeconfig(config *rest.Config, path string) error {
	ca := config.CAData
	if len(ca) == 0 {
		var err error
		if ca, err = os.ReadFile(config.CAFile); err != nil {
			return err
		}
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["lab"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: ca}
	k.AuthInfos["controller"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	k.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "controller"}
	k.CurrentContext = "lab"
	return clientcmd.WriteToFile(*k, path)
}

func (c *Controller) await(ctx context.Context, standBy bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	for {
		err := c.isReady(ctx, standBy)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return errors.Join(errors.New("the process ended"), c.waitErr)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *Controller) isReady(ctx context.Context, standBy bool) error {
	if _, err := Get(ctx, c.probe); err != nil || standBy {
		return err
	}
	leads, err := c.Leads(ctx)
	if err == nil && !leads {
		err = errors.New("it does not lead")
	}
	return err
}

// Leads reports whether this instance is the one that writes.
func (c *Controller) Leads(ctx context.Context) (bool, error) {
	value, _, err := c.Metric(ctx, `leader_election_master_status{name="tidemark-controller"}`)
	return value == 1, err
}

// Metrics returns the program's metrics as served.
func (c *Controller) Metrics(ctx context.Context) (string, error) { return Get(ctx, c.metrics) }

// Metric returns the value of one series, written as in the exposition: name{label="value",...}, labels in order.
func (c *Controller) Metric(ctx context.Context, series string) (value float64, found bool, err error) {
	text, err := c.Metrics(ctx)
	if err != nil {
		return 0, false, err
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if number, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			value, err := strconv.ParseFloat(number, 64)
			return value, true, err
		}
	}
	return 0, false, lines.Err()
}

// Get reads a page; any status but 200 is an error.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}

// PID is the process's id.
func (c *Controller) PID() int { return c.command.Process.Pid }

// Log returns all that the program has logged.
func (c *Controller) Log() string { return c.log.String() }

// Ended is closed when the process has ended.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Stop tells the program to stop and waits for it. The error of a program that did not end well holds its log.
func (c *Controller) Stop() error {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		_ = c.Kill()
		return fmt.Errorf("stop controller: killed after %v\n%s", stopTimeout, c.Log())
	}
	if c.waitErr != nil { // also when the race detector found something: exit status 66
		return errors.Join(fmt.Errorf("controller: %w\n%s", c.waitErr, c.Log()), os.RemoveAll(c.dir))
	}
	return os.RemoveAll(c.dir)
}

// Kill ends the program as a crash of its machine would: without a chance to do anything.
func (c *Controller) Kill() error {
	_ = c.command.Process.Kill()
	<-c.ended
	return os.RemoveAll(c.dir)
}

// transcript keeps what is written to it.
type transcript struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write implements io.Writer.
func (t *transcript) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.content.Write(text)
}

// String returns all of it.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.content.String()
}
