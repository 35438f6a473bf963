// Command lab runs a real Kubernetes in one process.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes in one process",
		Long: "lab runs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and real kubelets in one process.\n" +
			"Containers run no image: what each was given is recorded.",
		SilenceUsage: true,
	}
	command.CompletionOptions.DisableDefaultCmd = true
	_ = pflag.CommandLine.MarkHidden("version") // a flag that Kubernetes' packages add to every command
	command.AddCommand(newUpCommand())
	return command
}
