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
	contexts      []string
	reports       bool
}

// statusOptions are what status does.
type statusOptions struct {
	genericiooptions.IOStreams
	clock  clock.WithTicker
	screen Screen
	// views are the clusters to look at: one, or those that are asked for by their contexts.
	views []view
	// namespace is that of the workloads, "" for all; of several clusters it may be another in each.
	namespace string
	// named says that workloads are named, selected that they are selected by labels.
	named, selected bool

	output    string
	watch     bool
	interval  time.Duration
	exitCode  bool
	noHeaders bool
	// everywhere asks for all namespaces; withNamespace shows a column of them.
	everywhere, withNamespace bool
}

const statusHelp = `
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

	With -o fleet each fleet is drawn: one cell for each pod, a letter for each loaded version, what the
	letters stand for, and the keys that a pod which starts now would read otherwise. On a terminal those
	fleets are drawn below the table that are not in step, in colours unless NO_COLOR is set.

	With --contexts several clusters are shown. One that cannot be read does not keep the others from
	being shown; it is named, and the exit status is 2.

	With -o wide, NEXT-START lists the keys that a pod which starts now would read otherwise than those of
	its revision that run, as far as that is known: LEASE "10m" -> "2m" (18 pods). Values are shown of
	ConfigMaps only, where the controller's history keeps them, and never where they look like a credential.

	Exit status: 0, or 2 on any error. With --exit-code it is 1 when a fleet is not in step: split,
	dormant, possibly dormant, rolling, waiting, held, unpinned, unfinished or rolled back. A fleet that
	is only unknown does not count, nor does what may not be read. A watch has the status of its
	last look.`

func newStatus(s *session, name string) *cobra.Command {
	flags := &statusFlags{session: s, interval: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME... | KIND [NAME...]]",
		Short: "Show how far fleets are from the configuration that is applied",
		Long:  fill(name, statusHelp),
		Example: examples(name, `
			# The fleets of the namespace
			tidemark status

			# Two workloads of namespace shop, with everything that is known
			tidemark status -n shop deployment/web statefulset/db -o yaml

			# In a pipeline: fail when anything in the cluster is not in step
			tidemark status --all-namespaces --exit-code

			# What changes, as it changes
			tidemark status --watch

			# One cell for each pod, by the version that it loaded
			tidemark status -n mail deployment/mailer -o fleet

			# The same namespace in three clusters
			tidemark status --contexts east,west,test -n shop

			# Names of fleets with pods known to be behind
			tidemark status -A -o json | jq -r '.items[] | select(.behind > 0) | .workload.name'`),
		ValidArgsFunction: s.completeWorkloads,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("contexts") && len(flags.contexts) == 0 {
				return usagef("--contexts names no context: write --contexts east,west, or leave the flag out for the current one")
			}
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
	offer(cmd, "contexts", s.completeContexts)
	return cmd
}

func (f *statusFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Show the fleets of all namespaces.")
	set.StringVarP(&f.selector, "selector", "l", "", "Show only workloads whose labels match, such as app=web.")
	set.StringVarP(&f.output, "output", "o", "", "Output format: wide, fleet, json, yaml or name.")
	set.BoolVarP(&f.watch, "watch", "w", false, "After the list, show each fleet again when it changes, until interrupted.")
	set.DurationVar(&f.interval, "interval", f.interval, "How often --watch looks, at most.")
	set.BoolVar(&f.exitCode, "exit-code", false, "Exit with 1 when a fleet is not in step.")
	set.StringSliceVar(&f.contexts, "contexts", nil, "Show the fleets of these contexts of the kubeconfig, such as east,west.")
	set.BoolVar(&f.reports, "reports", false, reportsUsage)
	set.BoolVar(&f.noHeaders, "no-headers", false, "Leave out the header line.")
}

const (
	formatFleet  = "fleet"
	reportsUsage = "Ask pods with the annotation tidemark.dev/loaded-port what they loaded; needs the right to get pods/proxy."
)

var statusFormats = []string{"wide", formatFleet, "json", "yaml", "name"}

func (f *statusFlags) toOptions(args []string) (*statusOptions, error) {
	if err := checkFormat(f.output, statusFormats...); err != nil {
		return nil, err
	}
	o := &statusOptions{
		IOStreams: f.IOStreams, clock: f.Clock, screen: f.Screen, selected: f.selector != "",
		output: f.output, watch: f.watch, interval: f.interval, exitCode: f.exitCode, noHeaders: f.noHeaders,
		everywhere: f.allNamespaces, withNamespace: f.allNamespaces,
	}
	if len(f.contexts) > 0 {
		return o, f.addContexts(o, args)
	}
	survey, err := f.survey(f.session, args)
	if err != nil {
		return nil, err
	}
	o.namespace, o.named = survey.Namespace, len(survey.Targets) > 0
	o.views = []view{{look: survey.Read}}
	return o, nil
}

// survey is the look at the cluster of a session that the arguments ask for.
func (f *statusFlags) survey(s *session, args []string) (cluster.Survey, error) {
	kinds, err := s.allKinds()
	if err != nil {
		return cluster.Survey{}, err
	}
	namespace, err := s.namespace()
	if err != nil {
		return cluster.Survey{}, err
	}
	if f.allNamespaces {
		namespace = ""
	}
	selected, err := selectWorkloads(args, namespace, kinds, s.mapper)
	if err != nil {
		return cluster.Survey{}, err
	}
	survey, err := s.survey(selected.kinds)
	if err != nil {
		return cluster.Survey{}, err
	}
	survey.Namespace, survey.Targets = namespace, selected.targets
	if f.reports {
		if survey.Reports, err = s.asker(survey.Now); err != nil {
			return cluster.Survey{}, err
		}
	}
	if f.selector != "" {
		if survey.Selector, err = labels.Parse(f.selector); err != nil {
			return cluster.Survey{}, usagef("--selector: %w", err)
		}
	}
	return survey, nil
}

func (o *statusOptions) validate() error {
	switch {
	case o.named && o.everywhere:
		return usagef("--all-namespaces does not go with names: a workload is named in one namespace")
	case o.named && o.selected:
		return usagef("--selector does not go with names")
	case o.watch && o.withContexts():
		return usagef("--watch does not go with --contexts")
	case o.interval <= 0:
		return usagef("--interval: %s is not positive", o.interval)
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context) error {
	if o.watch {
		return o.runWatch(ctx)
	}
	seen := o.lookAll(ctx)
	if !o.withContexts() && seen[0].err != nil {
		return seen[0].err
	}
	var fleets []judged
	for i := range seen {
		seen[i].judge()
		fleets = append(fleets, seen[i].fleets...)
		o.remark(seen[i].remarks())
	}
	if err := o.print(fleets, seen); err != nil {
		return err
	}
	if err := failures(seen); err != nil {
		return err
	}
	return o.status(allInStep(fleets))
}

func (o *statusOptions) print(fleets []judged, seen []seen) error {
	switch o.output {
	case "json", "yaml":
		return printDocument(o.Out, o.output, o.document(fleets, seen))
	case "name":
		return printNames(o.Out, fleets)
	case formatFleet:
		return o.drawAll(seen, false)
	}
	if len(fleets) == 0 && found(seen) {
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
	for _, s := range seen {
		for _, j := range s.fleets {
			t.row(j, s.sight.Now)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if o.screen.Terminal && !o.noHeaders {
		return o.drawAll(seen, true)
	}
	return nil
}

func (o *statusOptions) drawAll(seen []seen, below bool) error {
	for _, s := range seen {
		if s.sight == nil {
			continue
		}
		if err := o.screen.drawAll(o.Out, s.fleets, s.sight.Now, below); err != nil {
			return err
		}
	}
	return nil
}

func (o *statusOptions) document(fleets []judged, seen []seen) v1.FleetList {
	list := v1.FleetList{APIVersion: v1.APIVersion, Kind: v1.KindFleetList, Items: []v1.Fleet{}}
	for _, j := range fleets {
		list.Items = append(list.Items, j.document())
	}
	for _, s := range seen {
		if s.sight != nil && list.Time.IsZero() {
			list.Time = seconds(s.sight.Now)
		}
		if o.withContexts() {
			list.Contexts = append(list.Contexts, s.document())
		} else {
			list.Remarks = s.sight.Remarks
		}
	}
	return list
}

func (o *statusOptions) newTable() *fleetTable {
	t := newFleetTable(o.Out, o.withNamespace, o.output == "wide")
	t.withContext = o.withContexts()
	return t
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
