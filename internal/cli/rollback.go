package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/revision"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// rollbackFlags are the flags of rollback.
type rollbackFlags struct {
	*session
	to            int64
	restoreSource bool
	wait          bool
	timeout       time.Duration
	dryRun        string
	output        string
}

// rollbackOptions are what rollback does.
type rollbackOptions struct {
	genericiooptions.IOStreams
	clock clock.WithTicker
	look  func(context.Context) (*revisions.History, error)
	// to is the number of the revision; 0 leaves the choice to the program.
	to            int64
	restoreSource bool
	wait          bool
	timeout       time.Duration
	dryRun        string
	// output is the format of the document on Out; with one, the words for people go to ErrOut. "" for words only.
	output  string
	remarks []string
}

func newRollback(s *session, name string) *cobra.Command {
	flags := &rollbackFlags{session: s, timeout: 15 * time.Minute, dryRun: dryRunNone}
	cmd := &cobra.Command{
		Use:   "rollback (KIND/NAME | KIND NAME)",
		Short: "Bring a revision of a workload back, its image together with its configuration",
		Long: fill(name, `
			Bring a revision of a Deployment, StatefulSet, DaemonSet or of one of Argo's Rollouts back: its whole
			pod template, and with it the copies of configuration that the template names (mode pin). It writes
			with your own rights, and only the template and the change cause.

			Without --to-revision it goes to the newest other revision of which a pod is known to have been
			available, so it passes over one that was superseded before anything ran. What is passed over is
			said. Where nothing is known of any revision, it goes to the newest, and says that.

			It refuses to go to a revision of which a copy is gone: its pods could not start. A revision that is
			not pinned can be brought back, but its pods read what is applied; that is said with the objects that
			differ from what it was released with, as far as Tidemark noted them.

			The configuration that is applied stays as it is, and Tidemark holds it back until the next real
			change. With --restore-source the content of the copies is put back into the objects they were made
			of as well, after the template, so that nothing rolls twice. Every other workload that reads those
			objects gets it too, and what manages them, such as Argo CD, Flux or Helm, may take it back.

			With --wait it follows the rollout until it is done, has failed, or --timeout is over. It has failed
			when somebody puts another template there meanwhile.

			Exit status: 0 when it is done, also when there was nothing to do; 2 on any error, and when the rollout
			that it waits for failed or was not done in time.`),
		Example: examples(name, `
			# Back to what last worked, and wait for it
			tidemark rollback deployment/web --wait

			# What that would be
			tidemark diff deployment/web
			tidemark rollback deployment/web --dry-run=client

			# To a certain revision, with the ConfigMaps themselves
			tidemark history statefulset/db
			tidemark rollback statefulset/db --to-revision 3 --restore-source

			# In a script: the revision that it went to
			tidemark rollback deployment/web -o json | jq .to.revision`),
		ValidArgsFunction: s.completeOneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args)
			if err != nil {
				return err
			}
			if err := o.validate(cmd.Flags().Changed("to-revision"), cmd.Flags().Changed("timeout")); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags.addFlags(cmd)
	return cmd
}

func (f *rollbackFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Int64Var(&f.to, "to-revision", 0, "Number of the revision to go to, as \"history\" lists it.")
	flags.BoolVar(&f.restoreSource, "restore-source", false, "Also put the content of the copies back into the ConfigMaps and Secrets they were made of.")
	flags.BoolVar(&f.wait, "wait", false, "Wait until the rollout is done or has failed.")
	flags.DurationVar(&f.timeout, "timeout", f.timeout, "How long --wait waits; 0 for as long as it takes.")
	flags.StringVar(&f.dryRun, "dry-run", f.dryRun,
		"Write nothing: \"client\" says what would be written, \"server\" also asks the API server whether it would be.")
	flags.Lookup("dry-run").NoOptDefVal = dryRunServer
	flags.StringVarP(&f.output, "output", "o", "", "Output format: json or yaml; what is said for people goes to standard error then.")
	completeFormat(cmd, rollbackFormats)
	offer(cmd, "dry-run", fixed(dryRunNone, dryRunClient, dryRunServer))
	offer(cmd, "to-revision", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.completeRevisions(cmd, args), noFiles
	})
}

var rollbackFormats = []string{"json", "yaml"}

func (f *rollbackFlags) toOptions(args []string) (*rollbackOptions, error) {
	if err := checkFormat(f.output, rollbackFormats...); err != nil {
		return nil, err
	}
	look, err := f.look(args)
	return &rollbackOptions{
		IOStreams: f.IOStreams, clock: f.Clock, look: look,
		to: f.to, restoreSource: f.restoreSource, wait: f.wait, timeout: f.timeout, dryRun: f.dryRun, output: f.output,
	}, err
}

func (o *rollbackOptions) validate(toGiven, timeoutGiven bool) error {
	switch {
	case toGiven && o.to < 1:
		return usagef("--to-revision: %d is no number of a revision", o.to)
	case o.dryRun != dryRunNone && o.dryRun != dryRunClient && o.dryRun != dryRunServer:
		return usagef("--dry-run: %q is none of %s, %s and %s", o.dryRun, dryRunNone, dryRunClient, dryRunServer)
	case o.wait && o.dryRun != dryRunNone:
		return usagef("--wait does not go with --dry-run: there is nothing to wait for")
	case timeoutGiven && !o.wait:
		return usagef("--timeout is for --wait")
	case o.timeout < 0:
		return usagef("--timeout: %s is negative", o.timeout)
	}
	return nil
}

// run decides on what it read, writes the template, then the sources, and waits.
func (o *rollbackOptions) run(ctx context.Context) error {
	h, err := o.look(ctx)
	if err != nil {
		return err
	}
	o.remark(h.Remarks...)
	p, err := planRollback(h, o.to)
	if err != nil {
		return err
	}
	if o.wait && !p.nothing && h.Unfinishable() != "" {
		return fmt.Errorf("--wait: %s is never done by itself (%s): leave --wait out", h.Target, h.Unfinishable())
	}
	o.remark(p.remarks...)
	if o.restoreSource {
		if err := o.prepareSources(ctx, h, &p); err != nil {
			return err
		}
	}
	if err := o.write(ctx, h, p); err != nil {
		return err
	}
	if o.output != "" {
		if err := printDocument(o.Out, o.output, o.document(h, p)); err != nil {
			return err
		}
	}
	if !o.wait || p.nothing {
		return nil
	}
	return o.await(ctx, h.String(), func(ctx context.Context) (revisions.Progress, error) { return h.Progress(ctx, p.to) })
}

func (o *rollbackOptions) remark(texts ...string) {
	o.remarks = append(o.remarks, texts...)
	for _, t := range texts {
		fmt.Fprintln(o.ErrOut, "remark:", t)
	}
}

func (o *rollbackOptions) say(format string, args ...any) error {
	out := o.Out
	if o.output != "" {
		out = o.ErrOut
	}
	_, err := fmt.Fprintf(out, format+"\n", args...)
	return err
}

// note marks what was not really done.
func (o *rollbackOptions) note() string {
	if o.dryRun == dryRunNone {
		return ""
	}
	return " (" + o.dryRun + " dry run)"
}

// prepareSources finds out what is to be put back into the sources, and whether the API server would take it, before
// anything is written.
func (o *rollbackOptions) prepareSources(ctx context.Context, h *revisions.History, p *rollbackPlan) error {
	changes, remarks, err := h.SourceChanges(ctx, p.to)
	if err != nil {
		return err
	}
	p.sources = changes
	o.remark(remarks...)
	for _, c := range changes {
		if o.dryRun != dryRunClient {
			if err := h.WriteSource(ctx, c, true); err != nil {
				return err
			}
		}
		switch c.Manager {
		case "":
			o.remark("what applies " + c.Object.Relative(h.Namespace) + " from Git or a chart, if anything does, may take its old content away again")
		default:
			o.remark(c.Manager + " manages " + c.Object.Relative(h.Namespace) + ", and may take its old content away again: put it right there too")
		}
	}
	return nil
}

// write writes the template, and then the sources. In this order nothing rolls twice: the pods of the revision read its
// copies whatever is applied, and what is put back then is what the copies hold. The other way round the present revision
// would roll to the old content first.
func (o *rollbackOptions) write(ctx context.Context, h *revisions.History, p rollbackPlan) error {
	if p.nothing {
		if err := o.say("%s is at revision %s already: nothing to do", h.Target, p.to.Text()); err != nil {
			return err
		}
	} else {
		if o.dryRun != dryRunClient {
			if err := h.GoBack(ctx, p.to, o.dryRun == dryRunServer); err != nil {
				return err
			}
		}
		if err := o.say("%s is rolled back to revision %s%s", h.Target, p.to.Text(), o.note()); err != nil {
			return err
		}
		for _, line := range p.changes {
			if err := o.say("  %s", line); err != nil {
				return err
			}
		}
	}
	for _, c := range p.sources {
		name := c.Object.Relative(h.Namespace)
		if o.dryRun == dryRunNone {
			if err := h.WriteSource(ctx, c, false); err != nil {
				return fmt.Errorf("the template is written, but not every source: %w; what is missing is in %s", err, c.Copy)
			}
		}
		if err := o.say("%s has the content of its copy %s again%s", name, c.Copy, o.note()); err != nil {
			return err
		}
	}
	return nil
}

// document is what a script wants to know of what was done.
func (o *rollbackOptions) document(h *revisions.History, p rollbackPlan) v1.Rollback {
	d := v1.Rollback{
		APIVersion: v1.APIVersion, Kind: v1.KindRollback, Workload: referenceTo(h), Unchanged: p.nothing,
		To: revisionDocument(h, p.to, nil, false), Remarks: o.remarks,
	}
	if o.dryRun != dryRunNone {
		d.DryRun = o.dryRun
	}
	if current, has := revision.Current(h.Revisions); has {
		from := revisionDocument(h, current, nil, false)
		d.From = &from
	}
	for _, c := range p.sources {
		d.Sources = append(d.Sources, v1.RestoredSource{Object: c.Object.String(), Copy: c.Copy})
	}
	return d
}
