package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// statusFlags are the flags of status.
type statusFlags struct {
	*session
	allNamespaces bool
	selector      string
	output        string
	watch         bool
	interval      time.Duration
	exitCode      bool
	noHeaders     bool
}

// statusOptions are what status does.
type statusOptions struct {
	genericiooptions.IOStreams
	clock clock.WithTicker
	// look reads what the arguments select, in the namespace or, where it is "", in all.
	look      func(context.Context) (*cluster.Sight, error)
	namespace string
	// named says that workloads are named, selected that they are selected by labels.
	named, selected bool

	output    string
	watch     bool
	interval  time.Duration
	exitCode  bool
	noHeaders bool
	// withNamespace shows a column of namespaces.
	withNamespace bool
}

func newStatus(s *session, name string) *cobra.Command {
	flags := &statusFlags{session: s, interval: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME... | KIND [NAME...]]",
		Short: "Show how far fleets are from the configuration that is applied",
		Long: fill(name, `
			Show every fleet, the pods of one workload each, with a verdict, since when it holds, and why.

			Verdicts: in-step (every pod loaded what is applied), rolling (more than one version, within the
			time that a rollout should take), split (beyond it), dormant (one version, older than the applied
			one), rolled-back (on an older version on purpose), waiting (something required is missing), held
			(a wanted rollout is held), unpinned (in mode pin, pods do not read what their pins say, as nothing
			heeded those when they started), unfinished (a rollout that waits for somebody leaves more than one
			revision running, for longer than tidemark.dev/unfinished-after), unknown (the evidence does not
			decide).

			With no controller installed there are only the times of writes that objects' metadata tell of. They
			prove nothing: such a fleet is unknown, and possibly-dormant where a write is recorded after its
			containers started.

			PODS counts the running pods by what they loaded: "18 applied, 6 older". Pods of which that is not
			known are "unknown", pods that do not run yet "starting".

			Exit status: 0, or 2 on any error. With --exit-code it is 1 when a fleet is not in step: split,
			dormant, possibly dormant, rolling, waiting, held, unpinned, unfinished or rolled back. A fleet that
			is only unknown does not count, nor does what may not be read.`),
		Example: examples(name, `
			# The fleets of the namespace
			tidemark status

			# Two workloads of namespace shop, with everything that is known
			tidemark status -n shop deployment/web statefulset/db -o yaml

			# In a pipeline: fail when anything in the cluster is not in step
			tidemark status --all-namespaces --exit-code

			# What changes, as it changes
			tidemark status --watch

			# Names of fleets with pods known to be behind
			tidemark status -A -o json | jq -r '.items[] | select(.behind > 0) | .workload.name'`),
		ValidArgsFunction: s.completeWorkloads,
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
	flags.register(cmd)
	completeFormat(cmd, statusFormats)
	return cmd
}

func (f *statusFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Show the fleets of all namespaces.")
	set.StringVarP(&f.selector, "selector", "l", "", "Show only workloads whose labels match, such as app=web.")
	set.StringVarP(&f.output, "output", "o", "", "Output format: wide, json, yaml or name.")
	set.BoolVarP(&f.watch, "watch", "w", false, "After the list, show each fleet again when it changes, until interrupted.")
	set.DurationVar(&f.interval, "interval", f.interval, "How often --watch looks, at most.")
	set.BoolVar(&f.exitCode, "exit-code", false, "Exit with 1 when a fleet is not in step.")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Leave out the header line.")
}

var statusFormats = []string{"wide", "json", "yaml", "name"}

func (f *statusFlags) toOptions(args []string) (*statusOptions, error) {
	if err := checkFormat(f.output, statusFormats...); err != nil {
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
	if f.allNamespaces {
		namespace = ""
	}
	selected, err := selectWorkloads(args, namespace, kinds, f.mapper)
	if err != nil {
		return nil, err
	}
	survey, err := f.session.survey(selected.kinds)
	if err != nil {
		return nil, err
	}
	survey.Namespace, survey.Targets = namespace, selected.targets
	if f.selector != "" {
		if survey.Selector, err = labels.Parse(f.selector); err != nil {
			return nil, usagef("--selector: %w", err)
		}
	}
	return &statusOptions{
		IOStreams: f.IOStreams, clock: f.Clock,
		look: survey.Read, namespace: namespace, named: len(selected.targets) > 0, selected: survey.Selector != nil,
		output: f.output, watch: f.watch, interval: f.interval, exitCode: f.exitCode, noHeaders: f.noHeaders,
		withNamespace: f.allNamespaces,
	}, nil
}

func (o *statusOptions) validate() error {
	switch {
	case o.named && o.withNamespace:
		return usagef("--all-namespaces does not go with names: a workload is named in one namespace")
	case o.named && o.selected:
		return usagef("--selector does not go with names")
	case o.interval <= 0:
		return usagef("--interval: %s is not positive", o.interval)
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context) error {
	if o.watch {
		return o.runWatch(ctx)
	}
	sight, err := o.look(ctx)
	if err != nil {
		return err
	}
	fleets := judge(sight.Workloads)
	o.remark(sight.Remarks)
	if err := o.print(fleets, sight); err != nil {
		return err
	}
	if err := notFound(sight.NotFound); err != nil {
		return err
	}
	return o.status(allInStep(fleets))
}

func (o *statusOptions) print(fleets []judged, sight *cluster.Sight) error {
	switch o.output {
	case "json", "yaml":
		list := v1.FleetList{
			APIVersion: v1.APIVersion, Kind: v1.KindFleetList, Time: seconds(sight.Now),
			Items: []v1.Fleet{}, Remarks: sight.Remarks,
		}
		for _, j := range fleets {
			list.Items = append(list.Items, j.document())
		}
		return printDocument(o.Out, o.output, list)
	case "name":
		return printNames(o.Out, fleets)
	}
	if len(fleets) == 0 && len(sight.NotFound) == 0 {
		where := "in any namespace"
		if o.namespace != "" {
			where = "in namespace " + o.namespace
		}
		fmt.Fprintf(o.ErrOut, "No workloads found %s.\n", where)
		return nil
	}
	t := o.newTable()
	if !o.noHeaders && len(fleets) > 0 {
		t.header()
	}
	for _, j := range fleets {
		t.row(j, sight.Now)
	}
	return t.flush()
}

func (o *statusOptions) newTable() *fleetTable {
	return newFleetTable(o.Out, o.withNamespace, o.output == "wide")
}

// remark says what could not be read.
func (o *statusOptions) remark(remarks []string) {
	for _, r := range remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
}

// status is the outcome that --exit-code asks for.
func (o *statusOptions) status(allInStep bool) error {
	if o.exitCode && !allInStep {
		return errNotInStep
	}
	return nil
}

func allInStep(fleets []judged) bool {
	return !slices.ContainsFunc(fleets, func(j judged) bool { return !inStep(j.Result) })
}

func notFound(targets []cluster.Target) error {
	if len(targets) == 0 {
		return nil
	}
	var words []string
	for _, t := range targets {
		words = append(words, fmt.Sprintf("%s is not found in namespace %s", t, t.Namespace))
	}
	return errors.New(strings.Join(words, "; "))
}
