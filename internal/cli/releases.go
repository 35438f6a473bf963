package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// defaultReportAfter is for how long an operation may be under way before it is reported, as in the controller.
const defaultReportAfter = 30 * time.Minute

// releasesFlags are the flags of releases.
type releasesFlags struct {
	*session
	allNamespaces bool
	// pending leaves out what is settled.
	pending     bool
	policy      string
	reportAfter time.Duration
	exitCode    bool
	output      string
	noHeaders   bool
}

// releasesOptions are what releases does.
type releasesOptions struct {
	genericiooptions.IOStreams
	survey        helm.Survey
	names         []string
	pending       bool
	request       release.Request
	exitCode      bool
	output        string
	withNamespace bool
	noHeaders     bool
}

func newReleases(s *session, name string) *cobra.Command {
	flags := &releasesFlags{session: s}
	cmd := &cobra.Command{
		Use:   "releases [NAME...]",
		Short: "List Helm releases with whether their deploys are alive, and what happens next",
		Long: fill(name, `
			List the Helm releases of a namespace, or of all, with the state of what is under way on each. It needs
			nothing installed, and the right to list Secrets or ConfigMaps, whichever Helm keeps its records in. Of
			the records it reads the metadata; of a pending one also the content, for the hooks that may run.

			STATE is "healthy" where nothing is under way; "live" where there is a sign of life; "overdue" where it
			lives past its own timeout; "abandoned" where a guarded deploy cannot come back; "superseded" where one
			ended without a word and a newer revision replaced it; "silent" where nothing is pending, and the guard of
			a deploy gives no sign of life; "residue" where an older revision has remained pending, which hinders
			nobody; "unguarded" where an operation is under way of which no lease tells;
			"unknown" where what there is does not decide.

			HEARTBEAT is how long ago the guard of the deploy last renewed its lease. NEXT is what Tidemark's
			controller does about it by itself, under the policy given: nothing, "report", or "forward".

			Exit status: 0, or 2 on any error. With --exit-code also 1 when there is something to report.`),
		Example: examples(name, `
			tidemark releases -A

			# A scheduled check that fails when a release is stuck
			tidemark releases -A --exit-code --report-after 30m

			# Releases that block their next deploy
			tidemark releases -A -o json | jq -r '.items[] | select(.operation) | .namespace + "/" + .name'`),
		ValidArgsFunction: s.completeReleases,
		RunE:              flags.run,
	}
	flags.addFlags(cmd)
	cmd.AddCommand(newRecover(s, name))
	return cmd
}

// newPending is releases, of what is pending alone: what `helm list` hides.
func newPending(s *session, name string) *cobra.Command {
	flags := &releasesFlags{session: s, pending: true}
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "List the Helm releases that are pending, with whether their deploys are alive",
		Long: fill(name, `
			List the Helm releases on which an operation is under way, or was when its process ended. It is
			"releases" without those that are settled, and has the same columns and exit status.`),
		Example: examples(name, `
			tidemark pending -A`),
		Args: noArgs,
		RunE: flags.run,
	}
	flags.addFlags(cmd)
	return cmd
}

func (f *releasesFlags) run(cmd *cobra.Command, args []string) error {
	o, err := f.toOptions(args)
	if err != nil {
		return err
	}
	return o.run(cmd.Context())
}

func (f *releasesFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "List the releases of all namespaces.")
	flags.StringVar(&f.policy, "policy", string(release.PolicyReport), "Policy that the controller has: report or forward.")
	flags.DurationVar(&f.reportAfter, "report-after", defaultReportAfter, "For how long an operation may be under way before it is reported; 0 for ever.")
	flags.BoolVar(&f.exitCode, "exit-code", false, "Exit with 1 when there is something to report.")
	flags.StringVarP(&f.output, "output", "o", "", "Output format: wide, json, yaml or name.")
	flags.BoolVar(&f.noHeaders, "no-headers", false, "Leave out the header line.")
	completeFormat(cmd, releasesFormats)
	offer(cmd, "policy", fixed(string(release.PolicyReport), string(release.PolicyForward)))
}

var releasesFormats = []string{"wide", "json", "yaml", "name"}

func (f *releasesFlags) toOptions(args []string) (*releasesOptions, error) {
	if err := checkFormat(f.output, releasesFormats...); err != nil {
		return nil, err
	}
	policy := release.Policy(f.policy)
	if policy != release.PolicyReport && policy != release.PolicyForward {
		return nil, usagef("--policy: the controller has report or forward, not %q", f.policy)
	}
	if f.allNamespaces && len(args) > 0 {
		return nil, usagef("names and --all-namespaces exclude each other: name the namespace with -n")
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	if f.allNamespaces {
		namespace = ""
	}
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	o := &releasesOptions{
		IOStreams: f.IOStreams, survey: helm.Survey{Client: c.Client, Now: c.Now, Namespace: namespace}, names: args, pending: f.pending,
		request:  release.Request{Actor: release.ByController, Policy: policy, ReportAfter: f.reportAfter},
		exitCode: f.exitCode, output: f.output, withNamespace: f.allNamespaces, noHeaders: f.noHeaders,
	}
	if len(args) == 1 {
		o.survey.Name = args[0]
	}
	return o, nil
}

func (o *releasesOptions) run(ctx context.Context) error {
	sight, err := o.survey.Find(ctx)
	if err != nil {
		return err
	}
	for _, r := range sight.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
	found := sight.Releases
	if len(o.names) > 0 {
		if found, err = pickReleases(found, o.names, o.survey.Namespace); err != nil {
			return err
		}
	}
	all := judgeReleases(found, o.request)
	if o.pending {
		all = slices.DeleteFunc(all, func(r judgedRelease) bool { return r.verdict.Operation == release.NoOperation })
	}
	if err := o.print(all, sight); err != nil {
		return err
	}
	if o.exitCode && slices.ContainsFunc(all, func(r judgedRelease) bool { return r.plan.Action != release.DoNothing }) {
		return errFindings
	}
	return nil
}

// pickReleases picks the releases of the names, in their order.
func pickReleases(found []helm.Release, names []string, namespace string) ([]helm.Release, error) {
	var out []helm.Release
	for _, name := range names {
		i := slices.IndexFunc(found, func(r helm.Release) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no record of release %s is in namespace %s: see tidemark releases -A", name, namespace)
		}
		out = append(out, found[i])
	}
	return out, nil
}

func (o *releasesOptions) print(all []judgedRelease, sight *helm.Sight) error {
	switch o.output {
	case "json", "yaml":
		return printDocument(o.Out, o.output, releasesDocument(all, sight))
	case "name":
		for _, r := range all {
			if _, err := fmt.Fprintln(o.Out, r.Name); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		where := "in namespace " + o.survey.Namespace
		if o.survey.Namespace == "" {
			where = "in any namespace"
		}
		what := "Helm releases"
		if o.pending {
			what = "pending " + what
		}
		fmt.Fprintf(o.ErrOut, "No %s found %s.\n", what, where)
		return nil
	}
	return printReleases(o.Out, all, o.withNamespace, o.output == "wide", !o.noHeaders)
}

// completeReleases offers the names of releases.
func (s *session) completeReleases(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, noFiles
	}
	offered := s.ask(cmd.Context(), func(ctx context.Context, c *cluster.Connection) []string {
		sight, err := helm.Survey{Client: c.Client, Now: c.Now, Namespace: namespace}.Find(ctx)
		if err != nil {
			return nil
		}
		var out []string
		for _, r := range sight.Releases {
			out = append(out, r.Name)
		}
		return out
	})
	return without(offered, args), noFiles
}
