package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster"
)

// pauseFlags are the flags of pause and of resume.
type pauseFlags struct {
	*session
	all    bool
	reason string
	dryRun bool
}

// pauseOptions are what pause or resume does.
type pauseOptions struct {
	genericiooptions.IOStreams
	connection *cluster.Connection
	resume     bool
	reason     string
	dryRun     bool
	system     string
	stops      []stop
}

// stop is one thing to pause, with its name for people.
type stop struct {
	cluster.Stop
	// name is "deployment/web in namespace shop", what "its rollouts" and the like are of.
	name string
	// everything says that it stands for the whole cluster.
	everything bool
}

func newPause(s *session, name string) *cobra.Command {
	flags := &pauseFlags{session: s}
	cmd := &cobra.Command{
		Use:   "pause (KIND/NAME... | --namespace NAMESPACE | --all)",
		Short: "Stop every write of Tidemark to workloads, to a namespace, or at all",
		Long: fill(name, `
			Stop every write of Tidemark to the workloads named, to all of the namespace that --namespace names,
			or, with --all, at all. It takes effect within a second, without a redeploy, and is shown by "status".
			What changes meanwhile is held, and rolls after "resume".

			It is an annotation (tidemark.dev/paused) on the workload, on the namespace, or on Tidemark's own
			namespace, which means everything; workloads have a label of the same name beside it, which a
			rollback leaves in place. Who, when and why is noted in tidemark.dev/paused-by.

			Exit status: 0, also when it was paused already; 2 on any error.`),
		Example: examples(name, `
			# One workload
			tidemark pause deployment/web --reason "load test until six"

			# Every workload of namespace shop
			tidemark pause -n shop

			# Everything
			tidemark pause --all --reason "incident 4711"`),
		ValidArgsFunction: s.completeWorkloads,
		RunE:              flags.runE(false),
	}
	flags.addFlags(cmd)
	cmd.Flags().StringVar(&flags.reason, "reason", "", "Why, for others to read.")
	return cmd
}

func newResume(s *session, name string) *cobra.Command {
	flags := &pauseFlags{session: s}
	cmd := &cobra.Command{
		Use:   "resume (KIND/NAME... | --namespace NAMESPACE | --all)",
		Short: "End a pause",
		Long: fill(name, `
			End a pause of the workloads named, of the namespace that --namespace names, or, with --all, of
			everything. Each ends only itself: a workload that was paused by name stays paused when its
			namespace is resumed, and the other way round, which is said.

			What changed meanwhile rolls now, with at most one rollout for each workload.

			Exit status: 0, also when nothing was paused; 2 on any error.`),
		Example: examples(name, `
			# One workload
			tidemark resume deployment/web

			# A namespace, as it was paused
			tidemark resume -n shop

			# Everything
			tidemark resume --all`),
		ValidArgsFunction: s.completeWorkloads,
		RunE:              flags.runE(true),
	}
	flags.addFlags(cmd)
	return cmd
}

func (f *pauseFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "Everything in the cluster, by Tidemark's own namespace.")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "Ask the API server whether it would be done, and do nothing.")
}

func (f *pauseFlags) runE(resume bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		o, err := f.toOptions(args, resume)
		if err != nil {
			return err
		}
		if err := o.validate(); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
}

func (f *pauseFlags) toOptions(args []string, resume bool) (*pauseOptions, error) {
	o := &pauseOptions{IOStreams: f.IOStreams, resume: resume, reason: f.reason, dryRun: f.dryRun, system: f.system}
	var err error
	if o.stops, err = f.stops(args, o.verb()); err != nil {
		return nil, err
	}
	o.connection, err = f.connect()
	return o, err
}

// stops reads what the arguments and flags name: exactly one of workloads, a namespace, and everything.
func (f *pauseFlags) stops(args []string, verb string) ([]stop, error) {
	switch {
	case f.all && len(args) > 0:
		return nil, usagef("--all does not go with names: %s everything, or the workloads named", verb)
	case f.all && f.namespaceGiven() && !f.fromHelm("namespace"):
		return nil, usagef("--all does not go with --namespace: %s everything, or one namespace", verb)
	case f.all:
		return []stop{{cluster.StopNamespace(f.system), "everything", true}}, nil
	case len(args) == 0 && f.fromHelm("namespace"):
		return nil, usagef("name what to %s: KIND/NAME, or --all for everything. For all of a namespace write -nNAMESPACE, as one word: "+
			"other forms helm keeps for itself, and it hands a namespace on when nobody names one, too", verb)
	case len(args) == 0 && f.namespaceGiven():
		ns := *f.flags.Namespace
		return []stop{{cluster.StopNamespace(ns), "namespace " + ns, ns == f.system}}, nil
	case len(args) == 0:
		return nil, usagef("name what to %s: KIND/NAME, --namespace NAMESPACE for all of it, or --all", verb)
	}
	return f.stopsOf(args)
}

// stopsOf are those of the workloads named.
func (f *pauseFlags) stopsOf(args []string) ([]stop, error) {
	kinds, err := f.allKinds()
	if err != nil {
		return nil, err
	}
	ns, err := f.namespace()
	if err != nil {
		return nil, err
	}
	selected, err := selectWorkloads(args, ns, kinds, f.mapper)
	if err != nil {
		return nil, err
	}
	if len(selected.targets) == 0 {
		return nil, usagef("%q names no workload: write KIND/NAME", strings.Join(args, " "))
	}
	var out []stop
	for _, t := range selected.targets {
		out = append(out, stop{cluster.StopWorkload(t), fmt.Sprintf("%s in namespace %s", t, t.Namespace), false})
	}
	return out, nil
}

func (o *pauseOptions) verb() string {
	if o.resume {
		return "resume"
	}
	return "pause"
}

func (o *pauseOptions) validate() error {
	if strings.ContainsAny(o.reason, "\n\r") || len(o.reason) > 1024 {
		return usagef("--reason: write one line of at most 1024 characters")
	}
	return nil
}

// run pauses or resumes each, and goes on after one that failed.
func (o *pauseOptions) run(ctx context.Context) error {
	who := ""
	if !o.resume {
		who = cluster.Whoami(ctx, o.connection.Client)
	}
	var errs []error
	for _, s := range o.stops {
		if err := o.one(ctx, s, who); err != nil {
			errs = append(errs, o.explain(s, err))
		}
	}
	return errors.Join(errs...)
}

func (o *pauseOptions) one(ctx context.Context, s stop, who string) error {
	note := ""
	if o.dryRun {
		note = " (dry run)"
	}
	if o.resume {
		p, err := cluster.Resume(ctx, o.connection.Client, s.Stop, o.dryRun)
		if err != nil {
			return err
		}
		return o.say(s.resumed(p, o.still(ctx, s), note))
	}
	by := cluster.PausedByText(who, o.connection.Now(), o.reason)
	p, err := cluster.Pause(ctx, o.connection.Client, s.Stop, by, o.dryRun)
	if err != nil {
		return err
	}
	return o.say(s.paused(p, note))
}

// still words which wider pauses are in force for what was resumed; "" for none.
func (o *pauseOptions) still(ctx context.Context, s stop) string {
	above, err := s.Above(ctx, o.connection.Client, o.system)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "remark: whether anything wider than %s is paused is not known: %v\n", s.name, err)
	}
	var words []string
	for w, by := range above {
		name := "namespace " + w.Name
		if w.Name == o.system {
			name = "everything"
		}
		words = append(words, name+" is paused"+byText(by))
	}
	slices.Sort(words)
	return strings.Join(words, "; ")
}

func (o *pauseOptions) say(text string) error {
	_, err := fmt.Fprintln(o.Out, text)
	return err
}

func (s stop) paused(p cluster.Pausing, note string) string {
	if !p.Changed {
		return fmt.Sprintf("%s is paused already%s%s", s.name, byText(p.By), note)
	}
	what := "Tidemark writes nothing to it until it is resumed"
	if s.everything {
		what = "Tidemark writes to no workload of the cluster until everything is resumed"
	}
	return fmt.Sprintf("%s is paused: %s%s", s.name, what, note)
}

// resumed words a resume; still says what else is paused.
func (s stop) resumed(p cluster.Pausing, still, note string) string {
	switch {
	case still != "" && p.Changed:
		return fmt.Sprintf("%s is resumed, but Tidemark still writes nothing to it: %s%s", s.name, still, note)
	case still != "":
		return fmt.Sprintf("%s is not paused itself, but Tidemark writes nothing to it: %s%s", s.name, still, note)
	case !p.Changed:
		return fmt.Sprintf("%s is not paused%s", s.name, note)
	}
	return fmt.Sprintf("%s is resumed: at most one rollout follows for each workload%s", s.name, note)
}

func byText(by string) string {
	if by == "" {
		return ""
	}
	return ", by " + by
}

// explain words why something could not be paused or resumed, with the remedy.
func (o *pauseOptions) explain(s stop, err error) error {
	object := s.name
	if s.everything {
		object = "everything, by namespace " + s.Name
	}
	switch {
	case apierrors.IsNotFound(err) && s.everything:
		return fmt.Errorf("%s %s: the namespace does not exist: name the one that Tidemark is installed in with --tidemark-namespace",
			o.verb(), object)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %s: it does not exist", o.verb(), object)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s %s: the right to get and patch it is missing: %w", o.verb(), object, err)
	}
	return fmt.Errorf("%s %s: %w", o.verb(), object, err)
}
