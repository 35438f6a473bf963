// Package cluster is the lab: a real Kubernetes in one process.
//
// The process can hold one cluster in its life. Kubernetes components keep state in package variables and some
// call os.Exit, so a second cluster needs a second process.
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"tidemark.dev/tidemark/lab/cluster/control"
	"tidemark.dev/tidemark/lab/cluster/controlplane"
	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/node"
	"tidemark.dev/tidemark/lab/cluster/pki"
	"tidemark.dev/tidemark/lab/cluster/record"
	"tidemark.dev/tidemark/lab/cluster/traffic"
	"tidemark.dev/tidemark/lab/wire"
)

// nodesReady bounds the wait for all nodes.
const nodesReady = 2 * time.Minute

// Options describe a cluster.
type Options struct {
	Nodes      int
	Directory  string // exists, has a short path
	Kubeconfig string // file to write
	Control    string // unix socket to open
	Log        string // file that the caller sends the logs to, for the status

	SyncFrequency          time.Duration
	CrashLoopMaxGap        time.Duration
	NodeMonitorGracePeriod time.Duration
	EvictionDelay          time.Duration
	FeatureGates           string
}

// Cluster is a running lab.
type Cluster struct {
	options      Options
	controlPlane *controlplane.ControlPlane
	admin        kubernetes.Interface
	nodes        []*node.Node
	control      *control.Server
	starts       record.Store
	delays       *delay.Table
	requests     *traffic.Counter
	stopOnce     sync.Once
	stopAsked    chan struct{}
}

// Start returns when all nodes are ready.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Nodes < 0 || options.Nodes > node.Max {
		return nil, fmt.Errorf("a lab has 0 to %d nodes", node.Max)
	}
	c := &Cluster{options: options, delays: delay.NewTable(), requests: traffic.NewCounter(), stopAsked: make(chan struct{})}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := node.ShareCollectors(); err != nil {
		return err
	}
	var err error
	c.controlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Directory:              c.options.Directory,
		FeatureGates:           c.options.FeatureGates,
		NodeMonitorGracePeriod: c.options.NodeMonitorGracePeriod,
		EvictionDelay:          c.options.EvictionDelay,
		Requests:               c.requests,
	})
	if err != nil {
		return fmt.Errorf("start control plane: %w", err)
	}
	if err := c.connect(); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	for index := range c.options.Nodes {
		if err := c.startNode(ctx, index); err != nil {
			return err
		}
	}
	if err := c.awaitNodes(ctx); err != nil {
		return fmt.Errorf("wait for nodes: %w", err)
	}
	c.control, err = control.Serve(c.options.Control, c)
	return err
}

// Stop ends the cluster, kubelets first. It may be called on a cluster that started in part.
func (c *Cluster) Stop() {
	for _, n := range c.nodes {
		n.Stop()
	}
	if c.controlPlane != nil {
		c.controlPlane.Stop()
	}
	if c.control != nil {
		c.control.Close()
	}
}

// Done is closed when the cluster should be stopped, because it was asked to over the control socket.
func (c *Cluster) Done() <-chan struct{} { return c.stopAsked }

// Failed is closed when a part of the control plane ended by itself.
func (c *Cluster) Failed() <-chan struct{} { return c.controlPlane.Failed() }

// connect makes the clients that act for the lab, and the file with which people and tests do.
func (c *Cluster) connect() error {
	own, err := c.controlPlane.RESTConfig(pki.Identity{Name: "lab", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	own.UserAgent = "lab"
	if c.admin, err = kubernetes.NewForConfig(own); err != nil {
		return err
	}
	person, err := c.controlPlane.RESTConfig(pki.Identity{Name: "admin", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	return controlplane.WriteKubeconfig(c.options.Kubeconfig, person)
}

func (c *Cluster) startNode(ctx context.Context, index int) error {
	n, err := node.Start(ctx, node.Options{
		Index:           index,
		Directory:       filepath.Join(c.options.Directory, fmt.Sprintf("n%d", index)),
		SyncFrequency:   c.options.SyncFrequency,
		CrashLoopMaxGap: c.options.CrashLoopMaxGap,
		LeaseDuration:   c.options.NodeMonitorGracePeriod * 2 / 3,
		ControlPlane:    c.controlPlane,
		Admin:           c.admin,
		Starts:          &c.starts,
		Delays:          c.delays,
	})
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, n)
	return nil
}

func (c *Cluster) awaitNodes(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, nodesReady, true, func(ctx context.Context) (bool, error) {
		list, err := c.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		ready := 0
		for _, n := range list.Items {
			if slices.ContainsFunc(n.Status.Conditions, func(condition v1.NodeCondition) bool {
				return condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue
			}) {
				ready++
			}
		}
		return ready == c.options.Nodes, nil
	})
}

// Status implements control.Lab.
func (c *Cluster) Status() wire.Status {
	status := wire.Status{
		PID: os.Getpid(), Server: c.controlPlane.URL(), Kubeconfig: c.options.Kubeconfig,
		Control: c.options.Control, Directory: c.options.Directory, Log: c.options.Log, Nodes: []string{},
	}
	for _, n := range c.nodes {
		status.Nodes = append(status.Nodes, n.Name())
	}
	return status
}
