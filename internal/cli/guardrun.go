package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/guard"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/helmline"
	"tidemark.dev/tidemark/internal/process"
	"tidemark.dev/tidemark/internal/release"
)

// guardOptions are what guard does.
type guardOptions struct {
	*session
	flags   *guardFlags
	args    []string
	getenv  func(string) string
	policy  release.Policy
	allowed release.Policy
	// name of the release; "" where Helm makes one up.
	name string
	// helm is the command line where it is one of helm's that the guard understands; nil for any other command.
	helm    *helmline.Command
	timeout time.Duration
}

// unguarded reports whether the command needs no guard, because it changes no release.
func (o *guardOptions) unguarded() bool {
	return o.helm != nil && o.helm.Operation == release.NoOperation
}

func (o *guardOptions) operation() release.Operation {
	if o.helm == nil {
		return release.NoOperation
	}
	return o.helm.Operation
}

// outlives reports whether the helm that writes the record may go on after its guard was killed: it is another process than the one
// that the guard starts, or this system does not end that with the guard. The deploy's timeout then proves nothing, for nobody is
// there to stop it.
func (o *guardOptions) outlives() bool {
	return o.helm != nil && (o.helm.Handed || !process.DiesWithParent)
}

// notify takes signals, but for those that whoever started the guard had it ignore: nohup does so with SIGHUP, and a shell with SIGINT
// of what it runs in the background. The command ignores them too.
func notify(to chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

func (o *guardOptions) remark(text string) { fmt.Fprintln(o.ErrOut, "remark:", text) }

// run takes the lease, looks at the release, and runs the command.
func (o *guardOptions) run(ctx context.Context) error {
	signals := make(chan os.Signal, 16)
	notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	r := guard.Run{Command: o.command(o.args, ""), Timeout: o.timeout, Signals: signals, Clock: o.Clock, Say: o.remark}
	if o.unguarded() {
		r.Timeout = 0
		return ended(r.Do(ctx))
	}
	if o.name == "" {
		if o.flags.requireLease {
			return errors.New("no lease can be taken on a release whose name helm makes up: name it, or leave --require-lease out")
		}
		o.remark("helm makes up the name of the release, so the deploy is not guarded")
		return ended(r.Do(ctx))
	}
	d, c, err := o.deploy(ctx)
	if err != nil {
		return o.without(ctx, r, err)
	}
	if err := o.prepare(ctx, &r, d, c); err != nil {
		return o.interrupted(ctx, r, err)
	}
	r.Command = o.command(o.labelled(d), d.ID)
	stop := o.follow(ctx, c, d.Release)
	defer stop()
	return ended(r.Do(ctx))
}

// ended is the outcome of the command.
func ended(status int, err error) error {
	switch {
	case err != nil && status == 0:
		return err // the guard's own
	case err != nil:
		return statusError{status, fmt.Errorf("run the command: %w", err)}
	case status != 0:
		return statusError{status: status}
	}
	return nil
}

// without runs the command where no cluster can be reached at all.
func (o *guardOptions) without(ctx context.Context, r guard.Run, why error) error {
	if o.flags.requireLease {
		return fmt.Errorf("no lease: %w", why)
	}
	o.remark(fmt.Sprintf("the deploy is not guarded: %v", why))
	return ended(r.Do(ctx))
}

// interrupted ends a guard whose command has not started, and leaves the lease, if it has one, with what it knew.
func (o *guardOptions) interrupted(ctx context.Context, r guard.Run, why error) error {
	status := exitGuard
	if n, is := o.signalled(ctx, r.Signals).(syscall.Signal); is {
		status, why = 128+int(n), fmt.Errorf("interrupted before the command was started: %w", why)
	}
	if r.Hold != nil {
		ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
		defer cancel()
		if err := r.Hold.GiveBack(ctx, release.Outcome{Time: o.Clock.Now(), ExitStatus: status}); err != nil {
			o.remark(err.Error())
		}
	}
	return statusError{status, why}
}

// signalLate is how much later than at the context a signal may arrive at its channel.
const signalLate = time.Second

// signalled is the signal that the guard got; nil when it got none. One that has ended the context is waited for.
func (o *guardOptions) signalled(ctx context.Context, signals <-chan os.Signal) os.Signal {
	select {
	case s := <-signals:
		return s
	default:
	}
	if ctx.Err() == nil {
		return nil
	}
	select {
	case s := <-signals:
		return s
	case <-o.Clock.After(signalLate):
		return nil
	}
}

// deploy connects to the cluster, and says what the lease is to tell.
func (o *guardOptions) deploy(ctx context.Context) (guard.Deploy, *cluster.Connection, error) {
	c, namespace, err := o.target()
	if err != nil {
		return guard.Deploy{}, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	d := guard.Deploy{
		ID: guard.NewID(), Release: types.NamespacedName{Namespace: namespace, Name: o.name}, Holder: fmt.Sprintf("%s/%d", host, os.Getpid()),
		Starter: o.flags.startedBy, Job: guard.Link(o.flags.job), Timeout: o.timeout, Duration: o.flags.leaseDuration, Policy: o.allowed,
	}
	if d.Starter == "" {
		d.Starter = guard.Starter(o.getenv)
	}
	if d.Job == "" {
		d.Job = guard.Job(o.getenv)
	}
	if o.outlives() {
		d.Timeout = 0
	}
	if pod := o.Place.Pod(); pod != nil {
		o.warn(ctx, *pod)
		if pod.KnownTo(ctx, c.Client) {
			d.Pod = pod
		}
	}
	return d, c, nil
}

// prepare takes the lease, finds out what the release is in, and recovers what an earlier deploy left there.
func (o *guardOptions) prepare(ctx context.Context, r *guard.Run, d guard.Deploy, c *cluster.Connection) error {
	keeper := guard.Keeper{Client: c.Client, Clock: o.Clock, Server: c.Now, Say: o.remark}
	hold, before, err := keeper.Take(ctx, d, o.flags.waitForLock)
	var known *helm.Before
	switch {
	case err == nil:
		r.Hold, known = hold, &before
	case !guard.IsOut(err):
		return err
	case o.flags.requireLease:
		return fmt.Errorf("no lease: %w", err)
	default:
		o.remark(fmt.Sprintf("the deploy is not guarded: %v", err))
	}
	look := func(ctx context.Context) error { return o.preflight(ctx, r, d, c, known) }
	if hold == nil {
		return look(ctx)
	}
	return hold.While(ctx, look)
}

// labelled is the command line with the id of the deploy, where helm can note it. What has the id is recovered once the deploy is
// dead, so what may outlive its guard gets it only where the end of the job's pod, or of the whole process group, proves that.
func (o *guardOptions) labelled(d guard.Deploy) []string {
	switch {
	case o.helm == nil || o.flags.noLabel:
		return o.args
	case o.outlives() && o.helm.Labelled() && (d.Pod == nil || o.terminal()):
		o.remark("the helm that deploys may go on when this guard is gone, so what the deploy leaves behind is only reported")
		return o.args
	}
	return o.helm.Labels(v1.LabelDeploy, d.ID)
}

// terminal reports whether a person sits at the command's input.
func (o *guardOptions) terminal() bool {
	in, is := o.In.(*os.File)
	return is && term.IsTerminal(int(in.Fd()))
}

func (o *guardOptions) command(args []string, id string) process.Command {
	env := os.Environ()
	if id != "" {
		env = append(env, v1.EnvDeploy+"="+id)
	}
	return process.Command{Args: args, Env: env, Stdin: o.In, Stdout: o.Out, Stderr: o.ErrOut, Terminal: o.terminal()}
}
