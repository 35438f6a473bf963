package controlplane

import (
	"context"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"tidemark.dev/tidemark/lab/cluster/pki"
)

// controllers are those that workloads, their configuration and the namespaces around them need. Left out is what
// needs a cloud, volumes or certificates.
func controllers() []string {
	return []string{
		"deployment-controller",
		"replicaset-controller",
		"replicationcontroller-controller",
		"statefulset-controller",
		"daemonset-controller",
		"job-controller",
		"cronjob-controller",
		"ttl-after-finished-controller",
		"endpoints-controller",
		"endpointslice-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"root-ca-certificate-publisher-controller", // every pod mounts what it publishes
		"clusterrole-aggregation-controller",
		"namespace-controller",
		"resourcequota-controller",
		"garbage-collector-controller",
		"pod-garbage-collector-controller",
		"node-lifecycle-controller",
		"taint-eviction-controller",
		"disruption-controller",
		"validatingadmissionpolicy-status-controller",
	}
}

func (c *ControlPlane) startControllers() error {
	kubeconfig, err := c.writeKubeconfig("controllers.kubeconfig", pki.Identity{Name: "system:kube-controller-manager"})
	if err != nil {
		return err
	}
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	flags := o.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	o.ParsedFlags = &flags
	if err := parse(flags.FlagSets, []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false", // its end calls os.Exit
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.files.accountKey,
		"--root-ca-file=" + c.files.authority,
		"--controllers=" + strings.Join(controllers(), ","),
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=" + c.options.NodeMonitorGracePeriod.String(),
		"--node-eviction-rate=10",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--kube-api-content-type=application/vnd.kubernetes.protobuf",
	}); err != nil {
		return err
	}
	// The configuration outlives this call, so it must not hang on a context that ends with the start.
	config, err := o.Config(context.Background(), app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return err
	}
	c.controllers = launch("kube-controller-manager", func(ctx context.Context) error {
		return app.Run(ctx, config.Complete())
	})
	return nil
}
