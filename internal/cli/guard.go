package cli

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidemark.dev/tidemark/internal/helmline"
	"tidemark.dev/tidemark/internal/release"
)

// exitGuard is the exit status for what went wrong with the guard itself, as that of env(1) and timeout(1) is.
const exitGuard = 125

// clusterFlagNames are those flags of the guard that say which cluster and namespace; for helm, helm's own do.
var clusterFlagNames = []string{"namespace", "kubeconfig", "context", "cluster", "user", "server"}

// guardFlags are the flags of guard.
type guardFlags struct {
	*session
	release, policy, allowed        string
	startedBy, job                  string
	timeout, leaseDuration          time.Duration
	waitForLock, recoverUnguarded   time.Duration
	requireLease, progress, noLabel bool
	timeoutGiven, clusterGiven      bool
}

func newGuard(s *session, name string) *cobra.Command {
	flags := &guardFlags{
		session: s, policy: string(release.PolicyReport), leaseDuration: 3 * time.Minute, progress: true,
	}
	cmd := &cobra.Command{
		Use:   "guard [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a deploy command so that others know whether it lives, and what it left behind",
		Long: fill(name, `
			Run a deploy command under a Lease in the namespace of its Helm release. The Lease says who deploys,
			from where, since when and up to when; it is renewed while the command lives, and its end is noted. Of
			a command that is killed, with its machine or by a CI system's cancel, the next deploy and the
			controller then know that it cannot come back.

			Before the command starts, the guard looks whether the release is pending, and says what that is. What
			an earlier deploy left is recovered by --policy when it is certain that nobody is at work on it any
			more, and otherwise left alone: "forward" marks the pending revision failed and touches no workload,
			"rollback" goes back to the last deployed revision, "uninstall" removes a first install, "report" only
			tells. While the release stays pending, the command is not run.

			The command is stopped before its lease can expire unrenewed, and at its --timeout: there are never two
			deploys of one release at work. A second guard is refused, or waits with --wait-for-lock. Where no
			Lease can be had, because the right is missing or the API does not answer, the guard warns and runs the
			command all the same; --require-lease refuses.

			Which release a command of helm's deploys, and where, is taken from helm's own flags and variables;
			trials and commands that change nothing take no lease. The revision is made known as this deploy's by
			a label, which helm has from 3.13 on (--no-label for an older one). For any other command name the
			release with --release, and cluster and namespace with the flags of this command. It finds its deploy's
			id in the variable TIDEMARK_DEPLOY, so that a script can pass it on:

			    helm upgrade web ./chart --labels "tidemark.dev/deploy=$TIDEMARK_DEPLOY"

			Signals are noted and passed on at once. Without a terminal the command gets a process group of its own,
			which is signalled as a whole, and ended with the command. On Linux the command dies with the guard. What
			may go on without it, such as the helm that helm's plugin secrets starts at a terminal, is never recovered
			by itself. In a script use "exec tidemark guard", so that the signals of a CI system reach it.

			Arguments and environment of the command are not stored, logged or sent anywhere.

			Exit status: the command's, 128+n where signal n ended it; 125 for what went wrong with the guard itself,
			a refusal included; 126 where the command cannot be executed, 127 where it is not found.`),
		Example: examples(name, `
			# An upgrade; what a deploy before it left behind is marked failed first
			tidemark guard --policy forward -- helm upgrade --install web ./chart -n prod --wait --timeout 10m

			# Wait up to a quarter of an hour for another deploy of the release
			tidemark guard --wait-for-lock=15m -- helm upgrade web ./chart

			# A script that deploys release web
			tidemark guard --release web -n prod --timeout 20m -- ./deploy.sh`),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.timeoutGiven = cmd.Flags().Changed("timeout")
			flags.clusterGiven = slices.ContainsFunc(clusterFlagNames, cmd.Flags().Changed)
			return flags.run(cmd, args)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return statusError{exitGuard, usageError{err}} })
	flags.addFlags(cmd)
	return cmd
}

func (f *guardFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVar(&f.release, "release", "", "Helm release that the command deploys; not needed for helm itself.")
	flags.StringVar(&f.policy, "policy", f.policy, "What to do about what an earlier deploy left behind: report, forward, rollback or uninstall.")
	flags.DurationVar(&f.recoverUnguarded, "recover-unguarded-after", 0,
		"Age from which a pending operation that no guard tells of counts as abandoned too; 0 for never. It may be alive all the same.")
	flags.StringVar(&f.allowed, "allow-policy", "", "Strongest policy that others may apply to what this deploy leaves behind; any when empty.")
	flags.DurationVar(&f.timeout, "timeout", 0,
		"When after its start the command is stopped; 0 for never. For helm the default is four times its own --timeout, at least 30m; for others never.")
	flags.DurationVar(&f.leaseDuration, "lease-duration", f.leaseDuration, "How long the lease holds without renewal; whole seconds.")
	flags.DurationVar(&f.waitForLock, "wait-for-lock", 0, "How long to wait for another guard's end; without a value an hour, without the flag not at all.")
	flags.Lookup("wait-for-lock").NoOptDefVal = time.Hour.String()
	flags.BoolVar(&f.requireLease, "require-lease", false, "Do not run the command without a lease.")
	flags.StringVar(&f.startedBy, "started-by", "", "Who started the deploy. Default: whom GitHub, GitLab, Buildkite, CircleCI or Jenkins names.")
	flags.StringVar(&f.job, "job-url", "", "Link to where the deploy runs. Default: the job's of those systems.")
	flags.BoolVar(&f.progress, "progress", f.progress, "Say what the release's rollouts are waiting for.")
	flags.BoolVar(&f.noLabel, "no-label", false,
		"Do not give helm a label for the revision, for a helm before 3.13. What the deploy leaves behind is then never recovered by itself.")
	offer(cmd, "policy", fixed(policyNames()...))
	offer(cmd, "allow-policy", fixed(policyNames()...))
	for _, none := range []string{"recover-unguarded-after", "timeout", "lease-duration", "wait-for-lock", "started-by", "job-url"} {
		offer(cmd, none, fixed())
	}
}

func policyNames() []string {
	var out []string
	for _, p := range release.Policies() {
		out = append(out, string(p))
	}
	return out
}

// run runs the command under guard. Whatever goes wrong with the guard has its exit status.
func (f *guardFlags) run(cmd *cobra.Command, args []string) error {
	o, err := f.toOptions(args)
	if err == nil {
		err = o.run(cmd.Context())
	}
	var ended statusError
	if err == nil || errors.As(err, &ended) {
		return err
	}
	return statusError{exitGuard, err}
}

func (f *guardFlags) toOptions(args []string) (*guardOptions, error) {
	o := &guardOptions{session: f.session, flags: f, args: args, getenv: f.getenv()}
	if err := f.validate(args); err != nil {
		return nil, err
	}
	var err error
	if o.policy, err = release.ParsePolicy(f.policy); err != nil {
		return nil, usagef("--policy: %v", err)
	}
	if f.allowed != "" {
		if o.allowed, err = release.ParsePolicy(f.allowed); err != nil {
			return nil, usagef("--allow-policy: %v", err)
		}
	}
	err = o.understand()
	return o, err
}

func (f *guardFlags) validate(args []string) error {
	switch {
	case len(args) == 0:
		return usagef("name the command to run after --")
	case f.leaseDuration < time.Second || f.leaseDuration%time.Second != 0:
		return usagef("--lease-duration: %s is not a whole number of seconds", f.leaseDuration)
	case f.timeout < 0 || f.waitForLock < 0 || f.recoverUnguarded < 0:
		return usagef("--timeout, --wait-for-lock and --recover-unguarded-after cannot be negative")
	case f.release != "" && len(validation.IsDNS1123Subdomain(f.release)) > 0:
		return usagef("--release: %q is no name of a release", f.release)
	}
	return nil
}

// helmTimeouts is how often a command of helm's may take its own timeout, of which it has one for each step: hooks before, the
// rollout, hooks after, and a rollback when all that failed.
const helmTimeouts = 4

// leastTimeout is what a deploy with helm gets at least.
const leastTimeout = 30 * time.Minute

// understand finds out which release the command deploys, and where.
func (o *guardOptions) understand() error {
	f := o.flags
	o.timeout, o.name = f.timeout, f.release
	if !helmline.Is(o.args) {
		if f.release == "" {
			return usagef("name the release that %s deploys with --release", o.args[0])
		}
		return nil
	}
	line, err := helmline.Read(o.args, o.getenv)
	var unclear *helmline.UnclearError
	switch {
	case errors.As(err, &unclear) && f.release == "":
		return usagef("the guard cannot tell which release is deployed (%v): name it with --release", unclear)
	case errors.As(err, &unclear):
		// Cluster and namespace are then those of the guard's own flags, as with any other command.
		return nil
	case err != nil:
		return err
	}
	if f.release != "" && line.Release != f.release && line.Operation != release.NoOperation {
		return usagef("--release is %q, and helm deploys %q: leave --release out", f.release, line.Release)
	}
	if f.clusterGiven {
		return usagef("for helm, cluster and namespace come from helm's own flags: leave this command's out")
	}
	o.helm, o.name = &line, line.Release
	if !f.timeoutGiven {
		o.timeout = max(leastTimeout, helmTimeouts*line.Timeout)
	}
	return nil
}
