package node

import (
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// serverPort is the port that every kubelet has.
const serverPort = 10250

func (n *Node) flags() options.KubeletFlags {
	f := options.NewKubeletFlags()
	f.RootDirectory = n.options.Directory
	f.CertDirectory = filepath.Join(n.options.Directory, "pki")
	f.HostnameOverride = n.name
	f.CloudProvider = "external" // keeps the addresses that were registered
	f.MinimumGCAge = metav1.Duration{}
	f.MaxPerPodContainerCount = 1
	f.MaxContainerCount = -1
	return *f
}

// configuration is the kubelet's default without everything that needs root, cgroups or the network.
func (n *Node) configuration(server serverFiles) (*kubeletconfig.KubeletConfiguration, error) {
	c, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}
	n.configureServer(c, server)
	c.RegisterNode = true
	c.SyncFrequency.Duration = n.options.SyncFrequency
	c.NodeStatusUpdateFrequency.Duration = 4 * time.Second
	c.NodeLeaseDurationSeconds = int32(n.options.LeaseDuration.Seconds())
	c.CrashLoopBackOff.MaxContainerRestartPeriod = &metav1.Duration{Duration: n.options.CrashLoopMaxGap}
	c.ConfigMapAndSecretChangeDetectionStrategy = kubeletconfig.WatchChangeDetectionStrategy
	c.MaxPods = 250
	c.PodLogsDir = filepath.Join(n.options.Directory, "logs")
	c.ContainerRuntimeEndpoint = "lab://"
	c.ClusterDomain = "cluster.local"
	c.ClusterDNS = []string{"10.96.0.10"}
	c.RegistryPullQPS = 0
	c.SerializeImagePulls = false // one delayed pull must not hold another
	c.ImageGCHighThresholdPercent = 100

	c.StaticPodPath, c.StaticPodURL = "", ""
	c.CgroupsPerQOS = false
	c.EnforceNodeAllocatable = nil
	c.CPUCFSQuota = false
	c.EnableControllerAttachDetach = false
	c.MakeIPTablesUtilChains = false
	c.LocalStorageCapacityIsolation = false
	c.FailSwapOn = false
	c.FailCgroupV1 = false
	c.MaxOpenFiles, err = openFilesLimit()
	return c, err
}

func (n *Node) configureServer(c *kubeletconfig.KubeletConfiguration, server serverFiles) {
	c.EnableServer = true
	c.Address = n.address
	c.Port = serverPort
	c.ReadOnlyPort = 0
	c.HealthzPort = 0
	c.TLSCertFile, c.TLSPrivateKeyFile = server.certificate, server.key
	c.Authentication.X509.ClientCAFile = n.options.ControlPlane.ClientCAFile()
	c.Authentication.Anonymous.Enabled = false
	c.Authentication.Webhook.Enabled = false
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
}

// openFilesLimit is the limit that the process has already: only root may raise it.
func openFilesLimit() (int64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return int64(limit.Max), err
}
