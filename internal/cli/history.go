package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster/revisions"
)

// historyFlags are the flags of history.
type historyFlags struct {
	*session
	output    string
	noHeaders bool
}

// historyOptions are what history does.
type historyOptions struct {
	genericiooptions.IOStreams
	look      func(context.Context) (*revisions.History, error)
	output    string
	noHeaders bool
}

func newHistory(s *session, name string) *cobra.Command {
	flags := &historyFlags{session: s}
	cmd := &cobra.Command{
		Use:   "history (KIND/NAME | KIND NAME)",
		Short: "List the revisions of a workload with the configuration that each reads",
		Long: fill(name, `
			List the revisions of a workload that the cluster has retained, the newest last: its ReplicaSets or
			ControllerRevisions. It needs nothing installed, and only the right to read.

			CONFIGURATION names the copy that the pods of a revision read of each object: the number of the copy,
			"absent" where the object was absent on purpose, "applied" where they read whatever is applied when
			they start. A star marks what the revision before has otherwise.

			REACHABLE says what a rollback to the revision would bring back: "in full" its image with each copy
			that it names; "not pinned" its image alone; "in part" where some ConfigMaps are pinned and others
			are not; "no" where a copy is gone. Secrets that are not pinned do not count, because one that was
			rotated must not come back.

			PODS counts the running pods by revision. "-o wide" adds whether a revision ever had an available
			pod, and how that is known. Kubernetes keeps no record of it; where Tidemark noted none either, that
			is unknown.

			Exit status: 0, or 2 on any error.`),
		Example: examples(name, `
			tidemark history deployment/web
			tidemark history -n shop statefulset db -o wide

			# Revisions that a rollback cannot bring back in full
			tidemark history deployment/web -o json | jq '.items[] | select(.reach != "in-full")'`),
		ValidArgsFunction: s.completeOneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: wide, json, yaml or name.")
	cmd.Flags().BoolVar(&flags.noHeaders, "no-headers", false, "Leave out the header line.")
	completeFormat(cmd, historyFormats)
	return cmd
}

var historyFormats = []string{"wide", "json", "yaml", "name"}

func (f *historyFlags) toOptions(args []string) (*historyOptions, error) {
	if err := checkFormat(f.output, historyFormats...); err != nil {
		return nil, err
	}
	look, err := f.look(args)
	return &historyOptions{IOStreams: f.IOStreams, look: look, output: f.output, noHeaders: f.noHeaders}, err
}

func (o *historyOptions) run(ctx context.Context) error {
	h, err := o.look(ctx)
	if err != nil {
		return err
	}
	for _, r := range h.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
	switch o.output {
	case "json", "yaml":
		return printDocument(o.Out, o.output, historyDocument(h))
	case "name":
		return printRevisionNames(o.Out, h)
	}
	return printHistory(o.Out, h, o.output == "wide", !o.noHeaders)
}
