package controlplane

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"tidemark.dev/tidemark/lab/cluster/pki"
	"tidemark.dev/tidemark/lab/cluster/traffic"
)

const (
	serviceRange = "10.96.0.0/16"
	// shutdownTimeout is how long the API server waits for open watches. Kubelets' informers never end theirs.
	shutdownTimeout = time.Second
)

func serverIdentity() pki.Identity {
	return pki.Identity{
		Name:  "kube-apiserver",
		Hosts: []string{"localhost", "kubernetes.default.svc"},
		IPs:   []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
}

func (c *ControlPlane) startAPIServer(ctx context.Context, etcdURL string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.url = "https://" + listener.Addr().String()
	completed, err := c.apiServerOptions(ctx, listener, etcdURL)
	if err != nil {
		listener.Close()
		return err
	}
	c.apiServer = launch("kube-apiserver", func(ctx context.Context) error {
		return runAPIServer(ctx, completed, c.options.Requests)
	})
	return c.awaitAPIServer(ctx)
}

func (c *ControlPlane) apiServerOptions(ctx context.Context, listener net.Listener, etcdURL string) (options.CompletedOptions, error) {
	o := options.NewServerRunOptions()
	o.SecureServing.Listener = listener
	o.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	o.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	flags := o.Flags()
	evictionDelay := strconv.FormatInt(int64(c.options.EvictionDelay/time.Second), 10)
	if err := parse(flags.FlagSets, []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.files.accountPublic,
		"--service-account-signing-key-file=" + c.files.accountKey,
		"--client-ca-file=" + c.files.authority,
		"--tls-cert-file=" + c.files.serverCert,
		"--tls-private-key-file=" + c.files.serverKey,
		"--kubelet-client-certificate=" + c.files.kubeletCert,
		"--kubelet-client-key=" + c.files.kubeletKey,
		"--kubelet-certificate-authority=" + c.files.authority,
		"--kubelet-preferred-address-types=ExternalIP",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-priority-and-fairness=true",
		"--default-not-ready-toleration-seconds=" + evictionDelay,
		"--default-unreachable-toleration-seconds=" + evictionDelay,
		"--endpoint-reconciler-type=none", // it would refuse a loopback address
		"--allow-privileged=true",
		"--profiling=false",
		"--feature-gates=" + c.options.FeatureGates,
	}); err != nil {
		return options.CompletedOptions{}, err
	}
	// Feature gates are the process's: this sets them for every component.
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("set feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("complete options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return options.CompletedOptions{}, fmt.Errorf("validate options: %w", utilerrors.NewAggregate(errs))
	}
	return completed, nil
}

// runAPIServer is the command's own Run, with requests counted and a short wait for open watches at the end.
func runAPIServer(ctx context.Context, o options.CompletedOptions, requests *traffic.Counter) error {
	config, err := app.NewConfig(o)
	if err != nil {
		return fmt.Errorf("build configuration: %w", err)
	}
	// The aggregator is the outermost of the three servers in one: only its handler chain is served.
	front := &config.Aggregator.GenericConfig.Config
	front.BuildHandlerChainFunc = requests.HandlerChain(front.BuildHandlerChainFunc)
	completed, err := config.Complete()
	if err != nil {
		return fmt.Errorf("complete configuration: %w", err)
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return fmt.Errorf("create servers: %w", err)
	}
	chain.GenericAPIServer.ShutdownTimeout = shutdownTimeout
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return prepared.Run(ctx)
}

// awaitAPIServer waits until the API server calls itself ready and has made the default namespace.
func (c *ControlPlane) awaitAPIServer(ctx context.Context) error {
	config, err := c.RESTConfig(pki.Identity{Name: "lab", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	config.UserAgent = "lab"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-c.apiServer.failed:
			return false, fmt.Errorf("ended while starting, see the log")
		default:
		}
		if last = client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); last != nil {
			return false, nil
		}
		_, last = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until ready: %w (last answer: %v)", err, last)
	}
	return nil
}
