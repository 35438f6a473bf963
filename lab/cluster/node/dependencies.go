package node

import (
	"context"

	cadvisor "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubelet"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubeletserver "k8s.io/kubernetes/pkg/kubelet/server"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/mount-utils"
)

// dependencies are what a kubelet takes from its machine. The volumes are the real ones: a ConfigMap's is a plain
// directory whose content the kubelet's atomic writer exchanges.
func (n *Node) dependencies(ctx context.Context, c clients, server serverFiles) *kubelet.Dependencies {
	d := &kubelet.Dependencies{
		KubeClient:                c.api,
		HeartbeatClient:           c.heartbeat,
		EventClient:               c.api.CoreV1(),
		RemoteRuntimeService:      n.runtime,
		RemoteImageService:        n.runtime.Images(),
		CAdvisorInterface:         &machine{cadvisortest.Fake{NodeName: n.name}},
		ContainerManager:          containerManager{cm.NewStubContainerManager()},
		OSInterface:               operatingSystem{},
		Mounter:                   mount.NewFakeMounter(nil),
		Subpather:                 pinnedSubpath{},
		HostUtil:                  hostUtil{hostutil.NewHostUtil()},
		OOMAdjuster:               oom.NewFakeOOMAdjuster(),
		VolumePlugins:             volumePlugins(),
		PodStartupLatencyTracker:  kubeletutil.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: kubeletutil.NewNodeStartupLatencyTracker(klog.Background()),
		TLSOptions: &kubeletserver.TLSOptions{
			CertFile: server.certificate, KeyFile: server.key, ClientCAFile: n.options.ControlPlane.ClientCAFile(),
		},
	}
	withholdRecorder(d, n.eventRecorder(ctx, c))
	return d
}

func (n *Node) eventRecorder(ctx context.Context, c clients) record.EventRecorderLogger {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: c.api.CoreV1().Events("")})
	return broadcaster.NewRecorder(legacyscheme.Scheme, v1.EventSource{Component: "kubelet", Host: n.name})
}

func volumePlugins() []volume.VolumePlugin {
	var plugins []volume.VolumePlugin
	plugins = append(plugins, emptydir.ProbeVolumePlugins()...)
	plugins = append(plugins, secret.ProbeVolumePlugins()...)
	plugins = append(plugins, configmap.ProbeVolumePlugins()...)
	plugins = append(plugins, downwardapi.ProbeVolumePlugins()...)
	return append(plugins, projected.ProbeVolumePlugins()...)
}

// machine is a large one, so that the scheduler never runs out of it.
type machine struct{ cadvisortest.Fake }

func (m *machine) MachineInfo(klog.Logger) (*cadvisor.MachineInfo, error) {
	return &cadvisor.MachineInfo{NumCores: 64, MemoryCapacity: 256 << 30, InstanceID: cadvisor.InstanceID(m.NodeName)}, nil
}

// containerManager is that of a machine without cgroups.
type containerManager struct{ cm.ContainerManager }

// NewPodContainerManager implements cm.ContainerManager.
func (m containerManager) NewPodContainerManager() cm.PodContainerManager {
	return podContainerManager{m.ContainerManager.NewPodContainerManager()}
}

// podContainerManager reports no limits, where the stub's error would fill the log.
type podContainerManager struct{ cm.PodContainerManager }

// GetPodCgroupConfig implements cm.PodContainerManager.
func (podContainerManager) GetPodCgroupConfig(*v1.Pod, v1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil
}
