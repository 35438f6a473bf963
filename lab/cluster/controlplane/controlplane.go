// Package controlplane runs a whole Kubernetes control plane, etcd included, in this process.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/rest"

	"tidemark.dev/tidemark/lab/cluster/pki"
	"tidemark.dev/tidemark/lab/cluster/traffic"
)

// stopTimeout bounds the wait for a component that was told to stop.
const stopTimeout = 20 * time.Second

// Options describe a control plane.
type Options struct {
	Directory              string        // must have a short path: unix sockets are in it
	FeatureGates           string        // Name=bool,...
	NodeMonitorGracePeriod time.Duration // silence after which a node is NotReady
	EvictionDelay          time.Duration // how long pods stay bound to a node that is NotReady, unless they say
	Requests               *traffic.Counter
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	options   Options
	files     files
	authority *pki.Authority
	etcd      *embed.Etcd
	url       string

	// stopped in this order
	controllers *component
	scheduler   *component
	apiServer   *component
}

// Start returns once the API server is ready. Controllers and scheduler start meanwhile.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	c := &ControlPlane{options: options}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	var err error
	if c.authority, err = pki.NewAuthority("lab"); err != nil {
		return err
	}
	if c.files, err = writeFiles(c.options.Directory, c.authority); err != nil {
		return err
	}
	var etcdURL string
	if c.etcd, etcdURL, err = startEtcd(ctx, c.options.Directory); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	if err := c.startAPIServer(ctx, etcdURL); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	if err := c.startControllers(); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	if err := c.startScheduler(); err != nil {
		return fmt.Errorf("start kube-scheduler: %w", err)
	}
	return nil
}

// Stop ends the components, users of the API first. It may be called on a control plane that started in part.
func (c *ControlPlane) Stop() {
	for _, component := range []*component{c.controllers, c.scheduler, c.apiServer} {
		component.stop()
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
}

// URL returns the address of the API server.
func (c *ControlPlane) URL() string { return c.url }

// Authority returns what signs the lab's certificates.
func (c *ControlPlane) Authority() *pki.Authority { return c.authority }

// ClientCAFile returns the file with the certificate that clients' certificates are checked against.
func (c *ControlPlane) ClientCAFile() string { return c.files.authority }

// Failed is closed when a component ended that was not told to.
func (c *ControlPlane) Failed() <-chan struct{} {
	failed := make(chan struct{})
	go func() {
		select {
		case <-c.apiServer.failed:
		case <-c.controllers.failed:
		case <-c.scheduler.failed:
		}
		close(failed)
	}()
	return failed
}

// RESTConfig returns the configuration of a client with a certificate of its own and no rate limit.
func (c *ControlPlane) RESTConfig(of pki.Identity) (*rest.Config, error) {
	pair, err := c.authority.Issue(of)
	if err != nil {
		return nil, err
	}
	const protobuf = "application/vnd.kubernetes.protobuf"
	return &rest.Config{
		Host:            c.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.PEM(), CertData: pair.Certificate, KeyData: pair.Key},
		QPS:             -1,
		ContentConfig:   rest.ContentConfig{ContentType: protobuf, AcceptContentTypes: protobuf + ",application/json"},
	}, nil
}

// files are the paths of what the components only take as a file.
type files struct {
	authority                  string
	serverCert, serverKey      string
	kubeletCert, kubeletKey    string // the API server as a client of kubelets
	accountKey, accountPublic  string // signs service-account tokens
	controllersKC, schedulerKC string
}

func writeFiles(dir string, authority *pki.Authority) (files, error) {
	var f files
	server, err := authority.Issue(serverIdentity())
	if err != nil {
		return f, err
	}
	kubelet, err := authority.Issue(pki.Identity{Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}})
	if err != nil {
		return f, err
	}
	key, err := pki.NewKey()
	if err != nil {
		return f, err
	}
	private, err := pki.PrivatePEM(key)
	if err != nil {
		return f, err
	}
	public, err := pki.PublicPEM(key)
	if err != nil {
		return f, err
	}
	for _, file := range []struct {
		path    *string
		name    string
		content []byte
	}{
		{&f.authority, "ca.crt", authority.PEM()},
		{&f.serverCert, "apiserver.crt", server.Certificate},
		{&f.serverKey, "apiserver.key", server.Key},
		{&f.kubeletCert, "kubelet-client.crt", kubelet.Certificate},
		{&f.kubeletKey, "kubelet-client.key", kubelet.Key},
		{&f.accountKey, "sa.key", private},
		{&f.accountPublic, "sa.pub", public},
	} {
		*file.path = filepath.Join(dir, file.name)
		if err := os.WriteFile(*file.path, file.content, 0o600); err != nil {
			return f, fmt.Errorf("write %s: %w", file.name, err)
		}
	}
	return f, nil
}
