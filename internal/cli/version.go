package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
)

// versionFlags are the flags of version.
type versionFlags struct {
	*session
	client bool
	output string
}

// versionOptions are what version does.
type versionOptions struct {
	genericiooptions.IOStreams
	build  Build
	flags  *genericclioptions.ConfigFlags // nil when the server is not asked
	output string
}

// versions is what `tidemark version -o json` prints.
type versions struct {
	Build
	// Go is the version of Go that the program was built with, Platform what it was built for.
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Server is the version of Kubernetes; absent when it was not asked or did not answer.
	Server string `json:"server,omitempty"`
}

func newVersion(s *session, name string) *cobra.Command {
	flags := &versionFlags{session: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long: fill(name, `
			Show the version of this program and, unless --client is given, of the cluster's Kubernetes. A
			cluster that does not answer is a remark, not an error.

			Exit status: 0, or 2 on an error in how it was called.`),
		Example: examples(name, `
			# Without asking the cluster
			tidemark version --client -o json`),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.toOptions()
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&flags.client, "client", false, "Show only the version of this program.")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: json or yaml.")
	completeFormat(cmd, versionFormats)
	return cmd
}

var versionFormats = []string{"json", "yaml"}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}

func (f *versionFlags) toOptions() (*versionOptions, error) {
	if err := checkFormat(f.output, versionFormats...); err != nil {
		return nil, err
	}
	o := &versionOptions{IOStreams: f.IOStreams, build: f.Build, output: f.output}
	if !f.client {
		o.flags = f.flags
	}
	return o, nil
}

func (o *versionOptions) run(ctx context.Context) error {
	v := versions{Build: o.build, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if o.flags != nil {
		server, err := o.server(ctx)
		if err != nil {
			fmt.Fprintln(o.ErrOut, "remark: the cluster does not tell its version:", err)
		}
		v.Server = server
	}
	if o.output != "" {
		return printDocument(o.Out, o.output, v)
	}
	text := fmt.Sprintf("Tidemark %s (%s, %s)\n", v.Version, v.Go, v.Platform)
	if v.Server != "" {
		text += fmt.Sprintf("Kubernetes %s\n", v.Server)
	}
	_, err := fmt.Fprint(o.Out, text)
	return err
}

// serverPatience is how long the cluster may take to tell its version.
const serverPatience = 5 * time.Second

func (o *versionOptions) server(ctx context.Context) (string, error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return "", err
	}
	config.Timeout = serverPatience
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	info, err := c.ServerVersionWithContext(ctx)
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}
