package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newKubectlCommand only shows in the help that there is such a command.
func newKubectlCommand() *cobra.Command {
	return &cobra.Command{Use: "kubectl ...", Short: "Run the real kubectl", DisableFlagParsing: true, Run: func(*cobra.Command, []string) {}}
}

// runKubectl is kubectl's own main: args begin with the word kubectl.
func runKubectl(args []string) int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     args,
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
			WithDiscoveryBurst(300).WithDiscoveryQPS(50.0).WithWarningPrinter(streams),
		IOStreams: streams,
	})
	command.SetArgs(args[1:])
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err) // prints the error and exits with its code
	}
	return 0
}
