package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	*session
	output  string
	reports bool
}

// explainOptions are what explain does.
type explainOptions struct {
	genericiooptions.IOStreams
	survey cluster.Survey
	output string
}

func newExplain(s *session, name string) *cobra.Command {
	flags := &explainFlags{session: s}
	cmd := &cobra.Command{
		Use:   "explain (KIND/NAME | KIND NAME)",
		Short: "Explain the verdict on one fleet",
		Long: fill(name, `
			Explain the verdict on the fleet of one workload: what its pod template reads, which change is applied
			and who wrote it, what each pod runs and by what evidence that is known, what the next pod to start
			would read and how that differs by key, also for a pod of an older revision that runs, and what
			Tidemark did last, or held, and why.

			Values of ConfigMaps are shown cut to a bounded length, and never where they look like a credential.
			Old values are those that the controller keeps in its history, of up to 1 KiB, and those in the copies
			of mode pin; of any other it is said "value not kept". Of Secrets only the names of keys are shown.

			Exit status: 0, or 2 on any error.`),
		Example: examples(name, `
			tidemark explain deployment/web
			tidemark explain -n shop statefulset db -o yaml

			# Also by what the programs say themselves, where the pods declare the port
			tidemark explain deployment/web --reports`),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 || len(args) == 1 && len(namesOf(args)) > 0 {
				return nil, noFiles
			}
			return s.completeWorkloads(cmd, args, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args)
			if err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: json or yaml.")
	cmd.Flags().BoolVar(&flags.reports, "reports", false, reportsUsage)
	completeFormat(cmd, explainFormats)
	return cmd
}

var explainFormats = []string{"json", "yaml"}

func (f *explainFlags) toOptions(args []string) (*explainOptions, error) {
	if err := checkFormat(f.output, explainFormats...); err != nil {
		return nil, err
	}
	kinds, err := f.allKinds()
	if err != nil {
		return nil, err
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	selected, err := selectWorkloads(args, namespace, kinds, f.mapper)
	if err != nil {
		return nil, err
	}
	survey, err := f.session.survey(selected.kinds)
	if err != nil {
		return nil, err
	}
	survey.Namespace, survey.Targets, survey.Values = namespace, selected.targets, true
	if f.reports {
		if survey.Reports, err = f.asker(survey.Now); err != nil {
			return nil, err
		}
	}
	return &explainOptions{IOStreams: f.IOStreams, survey: survey, output: f.output}, nil
}

func (o *explainOptions) validate() error {
	if len(o.survey.Targets) != 1 {
		return usagef("name one workload: KIND/NAME, such as deployment/web")
	}
	return nil
}

func (o *explainOptions) run(ctx context.Context) error {
	sight, err := o.survey.Read(ctx)
	if err != nil {
		return err
	}
	if err := notFound(sight.NotFound); err != nil {
		return err
	}
	w := sight.Workloads[0]
	events, remark, err := cluster.EventsOf(ctx, o.survey.Client, w)
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	if remark != "" {
		sight.Remarks = append(sight.Remarks, remark)
	}
	e := explained{judged: judged{Workload: w, Result: w.Judge()}, sight: sight, events: events}
	if w.Blind == "" {
		e.next = fleet.Next(w.Fleet)
	}
	if o.output != "" {
		return printDocument(o.Out, o.output, e.document())
	}
	for _, r := range sight.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
	return printExplanation(o.Out, e)
}
