package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/plan"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/report"
	"tidemark.dev/tidemark/internal/workload"
)

// planFlags are the flags of plan.
type planFlags struct {
	*session
	files     []string
	kustomize string
	command   string
	to        string
	output    string
	exitCode  bool
}

// planOptions are what plan does.
type planOptions struct {
	genericiooptions.IOStreams
	checkInput

	system   string
	output   string
	exitCode bool
}

var planFormats = []string{"wide", "json", "yaml"}

func newPlan(s *session, name string) *cobra.Command {
	flags := &planFlags{session: s}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | -k DIR | --render COMMAND)",
		Short: "Say before a change which workloads it would roll",
		Long: fill(name, `
			Compare what is to be applied with what the cluster has, and say of each workload that is given, or
			that uses a given ConfigMap or Secret, whether it would roll, how many of its pods, how its strategy
			replaces them, which disruption budgets they have, who owns it, and which keys its next start would
			read otherwise. Those of other namespaces that name it by annotation are among them, for somebody who
			may list workloads in all namespaces. Nothing is written.

			Forecasts: rolls; stays (nothing that it reads changes, or its program reloads it); dormant (what it
			reads changes, and running pods do not take it); held (it would roll, and a pause or the storm breaker
			holds it); next-job; waiting (what its pods require would not be there); new; unknown (a right is
			missing).

			It is decided as the controller decides, by the mode of each workload and by what Tidemark left on
			it. Not considered: what admission changes, who else writes until then, what an apply prunes or takes
			out of a workload, windows and limits of rollouts, and an autoscaler. Whether a Secret differs from
			the one in use is not told: a workload that reads a given one says so.

			With --to the manifests are those of a Git revision, which a command that --render names finds as
			$TIDEMARK_REVISION and in its working directory. Manifests that name no namespace are of that of -n, or
			of the current context.

			Exit status: 0, 1 with --exit-code when a workload would roll, 2 on any error.`),
		Example: examples(name, `
			# What a chart's upgrade would roll
			helm template web ./chart | tidemark plan -f - -n shop

			# What an edited ConfigMap would roll, with keys, budgets and owners
			tidemark plan -f pricing.yaml -o wide

			# What applying a tag would roll, whatever is checked out
			tidemark plan -k deploy/production --to v1.8.0

			# In a pipeline
			tidemark plan -k deploy/production --exit-code`),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.toOptions()
			if err != nil {
				return err
			}
			return plain(o.run(cmd.Context()))
		},
	}
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "File or directory of rendered manifests; - for the standard input. May be repeated.")
	cmd.Flags().VarP(single{&flags.kustomize}, "kustomize", "k", "Directory with a kustomization.")
	cmd.Flags().Var(single{&flags.command}, "render", "Command that writes manifests, run by the shell.")
	cmd.Flags().Var(single{&flags.to}, "to", "Git revision that is planned, rather than the working tree.")
	cmd.Flags().BoolVar(&flags.exitCode, "exit-code", false, "Exit with 1 when a workload would roll.")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "Output format: wide, json or yaml.")
	completeFormat(cmd, planFormats)
	offer(cmd, "render", fixed())
	offer(cmd, "to", fixed())
	return cmd
}

func (f *planFlags) toOptions() (*planOptions, error) {
	if err := checkFormat(f.output, planFormats...); err != nil {
		return nil, err
	}
	// What is read is what check reads against the cluster.
	c := &checkFlags{session: f.session, files: f.files, kustomize: f.kustomize, command: f.command, against: []string{againstLive}}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if f.to != "" && slices.Contains(f.files, render.Stdin) {
		return nil, usagef("-f - does not go with --to: the standard input is of no revision")
	}
	input, err := c.input()
	input.to = f.to
	return &planOptions{IOStreams: f.IOStreams, checkInput: input, system: f.system, output: f.output, exitCode: f.exitCode}, err
}

// errRolls ends a run whose findings the caller asked to have in the exit status; it is not reported.
var errRolls = errors.New("a workload would roll")

func (o *planOptions) run(ctx context.Context) error {
	set, err := o.manifests(ctx)
	if err != nil {
		return err
	}
	if err := nothingGiven(o.name(), set); err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	planner := &plan.Planner{Connection: c, System: o.system, DefaultMode: o.defaultMode, Intended: intended(set)}
	plans, remarks, err := o.plans(ctx, planner, set)
	if err != nil {
		return err
	}
	document := v1.Plan{APIVersion: v1.APIVersion, Kind: v1.KindPlan, Workloads: []v1.PlannedWorkload{}, Remarks: append(append(set.Remarks, remarks...), planner.Remarks...)}
	rolls := false
	for _, p := range plans {
		document.Workloads = append(document.Workloads, planned(p))
		rolls = rolls || p.Forecast == plan.Rolls
	}
	if err := o.print(document, len(remarks) > 0); err != nil {
		return err
	}
	if rolls && o.exitCode {
		return errRolls
	}
	return nil
}

// manifests reads what is planned.
func (o *planOptions) manifests(ctx context.Context) (set *manifest.Set, err error) {
	set, source := &manifest.Set{Kinds: o.kinds, Namespace: o.namespace}, o.source
	if o.to != "" {
		tree, err := render.NewCheckout(ctx, o.to)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, tree.Close()) }()
		if source, err = tree.Source(source); err != nil {
			return nil, err
		}
	}
	return set, source.Read(ctx, set)
}

// intended is what the manifests say of configuration. Of Secrets it is the names.
func intended(set *manifest.Set) plan.Intended {
	in := plan.Intended{ConfigMaps: map[workload.Object]*corev1.ConfigMap{}, Secrets: map[workload.Object]bool{}}
	for o, c := range set.Configs {
		if o.Kind == workload.Secret {
			in.Secrets[o] = true
			continue
		}
		in.ConfigMaps[o] = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Annotations: maps.Clone(c.Annotations)}, Data: c.Data, BinaryData: c.BinaryData,
		}
	}
	return in
}

// plans forecasts the workloads that are given, and those that use what is given.
func (o *planOptions) plans(ctx context.Context, p *plan.Planner, set *manifest.Set) ([]plan.Plan, []string, error) {
	l := &liveInput{connection: p.Connection, kinds: o.clusterKinds}
	var out []plan.Plan
	for _, w := range set.Workloads {
		kind, known := l.kind(w.Kind)
		if !known || strings.HasSuffix(w.Name, "*") {
			continue // a Job or Pod of its own rolls nothing
		}
		given := &plan.Given{Annotations: w.Annotations, Template: w.Template, Rollout: w.Rollout}
		found, err := p.Plan(ctx, cluster.Target{Kind: kind, Namespace: w.Namespace, Name: w.Name}, given)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, found)
	}
	others, err := l.others(ctx, o.clusterKinds, set)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range others {
		found, err := p.Plan(ctx, t, nil)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, found)
	}
	slices.SortStableFunc(out, func(a, b plan.Plan) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.String(), b.String()))
	})
	return out, l.remarks, nil
}

// planned is a plan as it is printed.
func planned(p plan.Plan) v1.PlannedWorkload {
	out := v1.PlannedWorkload{
		Workload: p.String(), Namespace: p.Namespace, Forecast: string(p.Forecast), Why: p.Why, Mode: string(p.Mode), TemplateChanges: p.Template,
		Replicas: p.Replicas, Replaced: p.Replaced, Pace: p.Pace, Owner: p.Owner, Notes: p.Notes, HeldBack: relative(p.HeldBack, p.Namespace),
		Secrets: relative(p.Secrets, p.Namespace),
	}
	for _, b := range p.Budgets {
		out.Budgets = append(out.Budgets, v1.PlannedBudget{Name: b.Name, Allowed: b.Allowed})
	}
	for _, changed := range p.Changed {
		for _, k := range changed.Keys {
			out.Reads = append(out.Reads, v1.PlannedRead{Object: changed.Object.Relative(p.Namespace), Key: check.Masked(k.Key), Change: string(k.Change)})
		}
	}
	return out
}

func relative(objects []workload.Object, namespace string) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.Relative(namespace))
	}
	return out
}

// print prints a plan; partial says that there may be more workloads than could be read.
func (o *planOptions) print(p v1.Plan, partial bool) error {
	if o.output == "json" || o.output == "yaml" {
		return printDocument(o.Out, o.output, p)
	}
	for _, remark := range p.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", report.Plain(remark))
	}
	return printPlan(o.Out, p, o.output == "wide", partial)
}
