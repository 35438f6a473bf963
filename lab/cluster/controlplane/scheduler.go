package controlplane

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"tidemark.dev/tidemark/lab/cluster/pki"
)

func (c *ControlPlane) startScheduler() error {
	kubeconfig, err := c.writeKubeconfig("scheduler.kubeconfig", pki.Identity{Name: "system:kube-scheduler"})
	if err != nil {
		return err
	}
	o := options.NewOptions()
	if err := parse(o.Flags.FlagSets, []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false", // its end calls os.Exit
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}); err != nil {
		return err
	}
	c.scheduler = launch("kube-scheduler", func(ctx context.Context) error {
		config, scheduler, err := app.Setup(ctx, o)
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		return app.Run(ctx, config, scheduler)
	})
	return nil
}
