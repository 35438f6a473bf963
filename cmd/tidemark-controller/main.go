// Command tidemark-controller makes changes of configuration take effect in a cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"tidemark.dev/tidemark/internal/app"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

// run returns the exit status of the program.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

func command() *cobra.Command {
	o := app.Defaults()
	if ns := os.Getenv("POD_NAMESPACE"); ns != "" {
		o.Namespace = ns
	}
	o.UserAgent = "tidemark-controller/" + version
	var kubeconfig string
	var development bool
	cmd := &cobra.Command{
		Use:           "tidemark-controller",
		Short:         "Makes a change of configuration take effect on every pod, by the workload's own rollout",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = zap.New(zap.UseDevMode(development))
			ctrl.SetLogger(o.Log)
			klog.SetLogger(o.Log)
			cfg, err := app.LoadConfig(kubeconfig)
			if err != nil {
				return err
			}
			o.Config = cfg
			a, err := app.New(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.Start(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; default: the pod's service account, else $KUBECONFIG, else ~/.kube/config")
	cmd.Flags().BoolVar(&development, "log-development", false, "log in a form for people rather than as JSON")
	o.AddFlags(cmd.Flags())
	return cmd
}
