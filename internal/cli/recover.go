package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/helmline"
	"tidemark.dev/tidemark/internal/recovery"
	"tidemark.dev/tidemark/internal/release"
)

// recoverFlags are the flags of releases recover.
type recoverFlags struct {
	*session
	policy     string
	dryRun     bool
	noHooks    bool
	wait       bool
	timeout    time.Duration
	historyMax int
}

// recoverOptions are what releases recover does.
type recoverOptions struct {
	genericiooptions.IOStreams
	clients         recovery.Clients
	namespace, name string
	request         recovery.Request
}

func newRecover(s *session, name string) *cobra.Command {
	flags := &recoverFlags{session: s}
	cmd := &cobra.Command{
		Use:   "recover NAME",
		Short: "Bring a Helm release whose deploy cannot come back to where the next one is accepted",
		Long: fill(name, `
			Recover a Helm release that is pending although nobody is at work on it. What may still be alive is never
			touched: where a guard's lease tells who is at work, the lease is watched for its whole duration first.
			Where no lease tells, it is up to you to know that nobody is at work.

			The policies:
			  forward    marks the pending revision failed, so that the next upgrade is accepted. No workload is touched.
			  rollback   does that, and rolls back to the highest deployed revision.
			  uninstall  uninstalls a first install that never succeeded.
			  report     only says what there is.

			A rollback or an uninstall is done as Helm does it, with its hooks. A release that is being uninstalled, and
			one that Flux owns, is never recovered. The release is read again just before anything is written, and
			nothing is when it has changed. It needs the right to get and patch the release's records; rollback and
			uninstall need those that Helm needs.

			Exit status: 0 when it was recovered or there was nothing to recover, 2 when it was not or on any error.`),
		Example: examples(name, `
			# What there is, and what would be done
			tidemark releases recover checkout -n shop --policy rollback --dry-run

			tidemark releases recover checkout -n shop
			tidemark releases recover checkout -n shop --policy rollback --wait`),
		Args:              oneRelease,
		ValidArgsFunction: s.completeOneRelease,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.toOptions(args[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.policy, "policy", string(release.PolicyForward), "What may be done: report, forward, rollback or uninstall.")
	f.BoolVar(&flags.dryRun, "dry-run", false, "Only show what would be done.")
	f.BoolVar(&flags.noHooks, "no-hooks", false, "Leave out the hooks of a rollback or an uninstall.")
	f.BoolVar(&flags.wait, "wait", false, "Wait until what was rolled back is ready.")
	f.DurationVar(&flags.timeout, "timeout", recovery.DefaultTimeout, "How long a single step of a rollback or an uninstall may take.")
	f.IntVar(&flags.historyMax, "history-max", helmline.HistoryMax(s.getenv()),
		"How many revisions a rollback leaves; 0 for all. Where it is not given, helm's HELM_MAX_HISTORY decides.")
	f.Lookup("history-max").DefValue = strconv.Itoa(helmline.DefaultHistoryMax) // the help is the same in every environment
	var policies []string
	for _, p := range release.Policies() {
		policies = append(policies, string(p))
	}
	offer(cmd, "policy", fixed(policies...))
	return cmd
}

func oneRelease(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name one release; tidemark releases lists them")
	}
	return nil
}

func (s *session) completeOneRelease(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return s.completeReleases(cmd, args, word)
}

func (f *recoverFlags) toOptions(name string) (*recoverOptions, error) {
	policy, err := release.ParsePolicy(f.policy)
	if err != nil {
		return nil, usagef("--policy: %w", err)
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	return &recoverOptions{
		IOStreams: f.IOStreams, namespace: namespace, name: name,
		clients: recovery.Clients{API: c.Client, Getter: f.flags, Now: c.Now, Clock: f.Clock},
		request: recovery.Request{
			Request: release.Request{Actor: release.ByPerson, Policy: policy}, DryRun: f.dryRun, NoHooks: f.noHooks, Wait: f.wait,
			Timeout: f.timeout, HistoryMax: f.historyMax,
		},
	}, nil
}

func (o *recoverOptions) run(ctx context.Context) error {
	seen, err := recovery.Observe(ctx, o.clients, o.namespace, o.name, func(d time.Duration) {
		fmt.Fprintf(o.ErrOut, "watching the lease of the release's guard for %s, for a sign of life\n", d.Round(time.Second))
	})
	if err != nil {
		return err
	}
	for _, r := range seen.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
	result, err := recovery.Run(ctx, o.clients, seen, o.request)
	if err != nil {
		return err
	}
	return o.tell(result)
}

// tell says what was done. That nothing was is an error, unless nothing had to be, or nobody asked for it.
func (o *recoverOptions) tell(r recovery.Result) error {
	p := r.Plan
	if !p.Action.Writes() {
		if r.Verdict.Operation == release.NoOperation && r.Verdict.State != release.Unknown {
			_, err := fmt.Fprintf(o.Out, "release %s needs no recovery: %s\n", o.name, p.Why)
			return err
		}
		if o.request.Policy == release.PolicyReport || o.request.DryRun {
			_, err := fmt.Fprintf(o.Out, "release %s is %s: %s\n", o.name, r.Verdict.State, p.Why)
			return err
		}
		return fmt.Errorf("release %s in namespace %s is %s and was not touched: %s", o.name, o.namespace, r.Verdict.State, p.Why)
	}
	what := map[release.Action]string{
		release.DoForward:   fmt.Sprintf("revision %d marked failed: the next upgrade is accepted", r.Verdict.Newest.Number),
		release.DoRollback:  fmt.Sprintf("revision %d marked failed, and rolled back to revision %d", r.Verdict.Newest.Number, p.To),
		release.DoUninstall: "uninstalled",
	}[p.Action]
	if r.Done {
		_, err := fmt.Fprintf(o.Out, "release %s: %s (%s)\n", o.name, what, p.Why)
		return err
	}
	_, err := fmt.Fprintf(o.Out, "release %s: %s (dry run; %s)\n", o.name, what, p.Why)
	return err
}
