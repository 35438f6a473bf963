// Package node runs real kubelets over the lab's container runtime.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"

	"tidemark.dev/tidemark/lab/cluster/controlplane"
	"tidemark.dev/tidemark/lab/cluster/cri"
	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/pki"
	"tidemark.dev/tidemark/lab/cluster/record"
)

// Max is how many nodes a lab can have: their addresses are numbered in one byte.
const Max = 100

// Options describe one node.
type Options struct {
	Index     int    // from 0; the node is named node-<index>
	Directory string // with a short path

	SyncFrequency   time.Duration // how long a change of a mounted ConfigMap may take to reach the files
	CrashLoopMaxGap time.Duration // cap of the back-off between restarts
	LeaseDuration   time.Duration // of the node's Lease, which the kubelet renews every quarter of it

	ControlPlane *controlplane.ControlPlane
	Admin        kubernetes.Interface // acts for the lab, not for the node
	Starts       *record.Store
	Delays       *delay.Table
}

// Node is a running kubelet.
type Node struct {
	options Options
	name    string
	address string // loopback address of the kubelet's server
	runtime *cri.Runtime
	cancel  context.CancelFunc
	dialer  *connrotation.Dialer
	cut     atomic.Bool
}

// errCut is what a partitioned kubelet gets for an answer.
var errCut = errors.New("the lab has cut this node off")

// Start registers the node and runs its kubelet.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{options: o, name: fmt.Sprintf("node-%d", o.Index), address: loopbackAddress(o.Index)}
	n.dialer = connrotation.NewDialer(n.dial)
	if err := n.register(ctx); err != nil {
		return nil, fmt.Errorf("register %s: %w", n.name, err)
	}
	var err error
	n.runtime, err = cri.New(cri.Options{
		Node: n.name, NodeIP: n.nodeIP(), PodPrefix: fmt.Sprintf("10.%d", 100+o.Index),
		Directory: filepath.Join(o.Directory, "run"),
		Starts:    o.Starts, Delays: o.Delays, Kinds: containerKinds(o.Admin),
	})
	if err != nil {
		return nil, fmt.Errorf("start runtime of %s: %w", n.name, err)
	}
	if err := n.run(); err != nil {
		n.Stop()
		return nil, fmt.Errorf("run kubelet of %s: %w", n.name, err)
	}
	return n, nil
}

// Name returns the name of the Node object.
func (n *Node) Name() string { return n.name }

// Runtime returns the node's container runtime.
func (n *Node) Runtime() *cri.Runtime { return n.runtime }

// Partition cuts the kubelet off the API server, or lets it connect again. Its containers run on either way.
func (n *Node) Partition(cut bool) {
	n.cut.Store(cut)
	n.dialer.CloseAll()
}

// Stop ends the kubelet as far as a kubelet can be ended: its informers and heartbeats run for ever, so they are
// cut off.
func (n *Node) Stop() {
	if n.cancel != nil {
		n.cancel()
	}
	n.Partition(true)
	n.runtime.Shutdown()
}

func (n *Node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.cut.Load() {
		return nil, errCut
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return dialer.DialContext(ctx, network, address)
}

func (n *Node) nodeIP() string { return fmt.Sprintf("10.77.0.%d", n.options.Index+1) }

// loopbackAddress gives every kubelet an address of its own, so that its server can have a fixed port and no two
// labs on one machine are in each other's way.
func loopbackAddress(index int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid&0xff, index+1)
}

// register makes the Node object with its addresses. A kubelet whose cloud provider is external keeps them, and
// does not ask the machine for its name and interfaces.
func (n *Node) register(ctx context.Context) error {
	nodes := n.options.Admin.CoreV1().Nodes()
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
		v1.LabelHostname:     n.name,
		v1.LabelTopologyZone: fmt.Sprintf("zone-%d", n.options.Index%2),
	}}}
	created, err := nodes.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	created.Status.Addresses = []v1.NodeAddress{
		{Type: v1.NodeInternalIP, Address: n.nodeIP()},
		{Type: v1.NodeExternalIP, Address: n.address},
		{Type: v1.NodeHostName, Address: n.name},
	}
	if _, err := nodes.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set addresses: %w", err)
	}
	return nil
}

// run starts the kubelet the way its command does, with dependencies of our own.
func (n *Node) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	if err := os.MkdirAll(n.options.Directory, 0o755); err != nil {
		return err
	}
	clients, err := n.clients()
	if err != nil {
		return err
	}
	server, err := n.writeServerFiles()
	if err != nil {
		return err
	}
	configuration, err := n.configuration(server)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	dependencies := n.dependencies(ctx, clients, server)
	auth, startAuth, err := kubeletapp.BuildAuth(types.NodeName(n.name), clients.api, *configuration)
	if err != nil {
		return fmt.Errorf("build authorization: %w", err)
	}
	startAuth(ctx.Done())
	dependencies.Auth = auth
	return kubeletapp.RunKubelet(ctx, &options.KubeletServer{KubeletFlags: n.flags(), KubeletConfiguration: *configuration}, dependencies)
}

// clients are the kubelet's own, with the node's certificate, over the dialer that a partition cuts.
type clients struct {
	config         *rest.Config
	api, heartbeat kubernetes.Interface
}

func (n *Node) clients() (clients, error) {
	config, err := n.options.ControlPlane.RESTConfig(pki.Identity{Name: "system:node:" + n.name, Groups: []string{"system:nodes"}})
	if err != nil {
		return clients{}, err
	}
	config.Dial = n.dialer.DialContext
	config.UserAgent = "kubelet/" + n.name
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	impatient := rest.CopyConfig(config)
	impatient.Timeout = 10 * time.Second
	heartbeat, err := kubernetes.NewForConfig(impatient)
	if err != nil {
		return clients{}, err
	}
	return clients{config: config, api: api, heartbeat: heartbeat}, nil
}

// serverFiles are the certificate and key of the kubelet's server.
type serverFiles struct{ certificate, key string }

func (n *Node) writeServerFiles() (serverFiles, error) {
	files := serverFiles{
		certificate: filepath.Join(n.options.Directory, "server.crt"),
		key:         filepath.Join(n.options.Directory, "server.key"),
	}
	pair, err := n.options.ControlPlane.Authority().Issue(pki.Identity{
		Name: "system:node:" + n.name, Groups: []string{"system:nodes"}, Hosts: []string{n.name}, IPs: []net.IP{net.ParseIP(n.address)},
	})
	if err != nil {
		return files, err
	}
	if err := os.WriteFile(files.certificate, pair.Certificate, 0o600); err != nil {
		return files, err
	}
	return files, os.WriteFile(files.key, pair.Key, 0o600)
}
