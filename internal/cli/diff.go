package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/revision"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	*session
	output   string
	exitCode bool
}

// diffOptions are what diff does.
type diffOptions struct {
	genericiooptions.IOStreams
	look     func(context.Context) (*revisions.History, error)
	sides    []string
	output   string
	exitCode bool
}

func newDiff(s *session, name string) *cobra.Command {
	flags := &diffFlags{session: s}
	cmd := &cobra.Command{
		Use:   "diff (KIND/NAME | KIND NAME) [FROM [TO]]",
		Short: "Show how two revisions of a workload differ, with the configuration that each reads",
		Long: fill(name, `
			Show how two revisions of a workload differ: in images, in other fields of the pod template, and in
			configuration, key by key. It needs nothing installed, and only the right to read.

			FROM and TO are numbers of revisions, "current", or "applied": the present template with what is
			applied now. TO is the current revision where it is left out. Where both are, FROM is the revision
			that "rollback" would go to.

			A revision that is not pinned reads whatever is applied when its pods start, so two of them do not
			differ in configuration.

			Values of ConfigMaps are shown, those of many lines as a comparison of lines, and never where they
			look like a credential: of a file with several lines, such a line is withheld, or the file. Of
			Secrets only the names of keys are shown that were added, removed or changed.

			Exit status: 0, or 2 on any error. With --exit-code it is 1 when there is a difference.`),
		Example: examples(name, `
			# What a rollback would take back
			tidemark diff deployment/web

			# What changed from revision 3 to 5
			tidemark diff deployment/web 3 5

			# What is applied and does not run, after a rollback
			tidemark diff deployment/web current applied`),
		ValidArgsFunction: flags.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: json or yaml.")
	cmd.Flags().BoolVar(&flags.exitCode, "exit-code", false, "Exit with 1 when there is a difference.")
	completeFormat(cmd, diffFormats)
	return cmd
}

var diffFormats = []string{"json", "yaml"}

// complete offers the workload, then its revisions.
func (f *diffFlags) complete(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	offered, directive := f.completeOneWorkload(cmd, args, toComplete)
	if len(offered) > 0 || len(args) == 0 {
		return offered, directive
	}
	if _, rest, err := f.oneWorkload(args); err != nil || len(rest) > 1 {
		return nil, noFiles
	}
	return append(f.completeRevisions(cmd, args), sideCurrent, sideApplied), noFiles
}

func (f *diffFlags) toOptions(args []string) (*diffOptions, error) {
	if err := checkFormat(f.output, diffFormats...); err != nil {
		return nil, err
	}
	t, sides, err := f.oneWorkload(args)
	if err != nil {
		return nil, err
	}
	if len(sides) > 2 {
		return nil, usagef("two revisions are compared: unexpected argument %q", sides[2])
	}
	look, err := f.lookAt(t)
	return &diffOptions{IOStreams: f.IOStreams, look: look, sides: sides, output: f.output, exitCode: f.exitCode}, err
}

func (o *diffOptions) run(ctx context.Context) error {
	h, err := o.look(ctx)
	if err != nil {
		return err
	}
	from, to, err := o.choose(h)
	if err != nil {
		return err
	}
	d, err := compare(ctx, h, h, from, to)
	if err != nil {
		return err
	}
	if o.output != "" {
		err = printDocument(o.Out, o.output, d.Difference)
	} else {
		for _, r := range d.Remarks {
			fmt.Fprintln(o.ErrOut, "remark:", r)
		}
		err = printDifference(o.Out, d)
	}
	if err == nil && o.exitCode && d.Differs {
		return errDiffers
	}
	return err
}

// choose finds the two sides that the arguments name.
func (o *diffOptions) choose(h *revisions.History) (from, to side, err error) {
	names := append([]string{}, o.sides...)
	if len(names) == 0 {
		previous, has := revision.Previous(h.Revisions)
		if !has {
			return side{}, side{}, fmt.Errorf("%s has no other revision to compare with: name two sides, such as %s %s", h.Target, sideCurrent, sideApplied)
		}
		from = side{Revision: previous.Target, readings: previous.Target.Readings()}
	} else if from, err = sideOf(h, names[0]); err != nil {
		return side{}, side{}, err
	}
	name := sideCurrent
	if len(names) == 2 {
		name = names[1]
	}
	to, err = sideOf(h, name)
	return from, to, err
}
