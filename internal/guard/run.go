package guard

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"tidemark.dev/tidemark/internal/process"
	"tidemark.dev/tidemark/internal/release"
)

// Run is a command under guard.
type Run struct {
	Command process.Command
	// Hold is the lease; nil where none could be had.
	Hold *Hold
	// Revision that the command writes; 0 where it is not known.
	Revision int64
	// Timeout is when after its start the command is stopped; 0 for never.
	Timeout time.Duration
	// Signals are those that the guard gets.
	Signals <-chan os.Signal
	Clock   clock.WithTicker
	// Say tells a person what happens to the command.
	Say func(text string)
}

const (
	// signalPatience is for how long a signal waits until it is noted in the lease: a cancelled job has seconds to live.
	signalPatience = 500 * time.Millisecond
	// stopPatience is how long a command that was told to end at its timeout has for it.
	stopPatience = 30 * time.Second
	// finishPatience is for how long it is tried to note the end of the command.
	finishPatience = 5 * time.Second
)

// Do starts the command, passes signals on to it, stops it where its lease or its time runs out, and notes its end. It returns
// the exit status; an error is why the command did not start, and comes with the status for that.
//
// The context's end stops nothing: a signal does, by way of the command.
func (r Run) Do(ctx context.Context) (int, error) {
	ctx = context.WithoutCancel(ctx)
	if err := r.note(ctx, func(ctx context.Context, h *Hold) error { return h.Started(ctx, r.Revision) }); errors.Is(err, ErrLost) {
		return 0, err
	}
	p, err := process.Start(r.Command)
	if err != nil {
		status := process.StartStatus(err)
		r.finish(ctx, release.Outcome{ExitStatus: status})
		return status, err
	}
	stopped := r.follow(ctx, p)
	r.finish(ctx, release.Outcome{ExitStatus: p.ExitStatus(), Stopped: stopped})
	return p.ExitStatus(), nil
}

// follow follows the command to its end, and says why it stopped it; "" where it did not.
func (r Run) follow(ctx context.Context, p *process.Process) (stopped release.Stop) {
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	kept := r.keep(keeping)
	var kill <-chan time.Time
	over := r.after(r.Timeout)
	for {
		select {
		case <-p.Done():
			return stopped
		case s := <-r.Signals:
			r.pass(ctx, p, s)
		case err := <-kept:
			stopped = cmp.Or(stopped, release.StoppedInSilence)
			r.Say(err.Error() + ": stopping the command, so that nobody else works on the release beside it")
			r.signal(p, syscall.SIGTERM)
			kill = r.Clock.After(r.left(err))
		case <-over:
			stopped = cmp.Or(stopped, release.StoppedAtTimeout)
			r.Say("the command is past its timeout of " + r.Timeout.String() + ": stopping it")
			r.signal(p, syscall.SIGTERM)
			if kill == nil {
				kill = r.Clock.After(stopPatience)
			}
		case <-kill:
			r.Say("the command goes on: killing it")
			r.signal(p, syscall.SIGKILL)
		}
	}
}

// after is a channel that gets the time once it is over; nil for never.
func (r Run) after(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return r.Clock.After(d)
}

// keep renews the lease. The channel gets why the command has to stop; nothing while all is well.
func (r Run) keep(ctx context.Context) <-chan error {
	if r.Hold == nil {
		return nil
	}
	kept := make(chan error, 1)
	go func() {
		if err := r.Hold.Keep(ctx); err != nil {
			kept <- err
		}
	}()
	return kept
}

// left is how long the command may take to end: no time when another is at work already.
func (r Run) left(why error) time.Duration {
	if errors.Is(why, ErrLost) {
		return 0
	}
	return r.Hold.Left()
}

// pass passes a signal on, after it is noted. What a terminal has sent to the whole job, it has sent to the command too.
func (r Run) pass(ctx context.Context, p *process.Process, s os.Signal) {
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		_ = r.note(ctx, func(ctx context.Context, h *Hold) error { return h.Signalled(ctx, signalName(s)) })
	}()
	timer := r.Clock.NewTimer(signalPatience)
	defer timer.Stop()
	select {
	case <-noted:
	case <-timer.C():
	case <-p.Done():
	}
	if r.Command.Terminal && (s == os.Interrupt || s == syscall.SIGQUIT || s == syscall.SIGHUP) {
		return
	}
	r.signal(p, s)
}

func (r Run) signal(p *process.Process, s os.Signal) {
	if err := p.Signal(s); err != nil {
		r.Say("signal the command: " + err.Error())
	}
}

// note writes to the lease, where there is one, within the time there is for it. What a failure leaves out, the hold writes later.
func (r Run) note(ctx context.Context, write func(context.Context, *Hold) error) error {
	if r.Hold == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	return write(ctx, r.Hold)
}

func (r Run) finish(ctx context.Context, outcome release.Outcome) {
	outcome.Time = r.Clock.Now()
	err := r.note(ctx, func(ctx context.Context, h *Hold) error { return h.Finish(ctx, outcome) })
	if err != nil && !errors.Is(err, ErrLost) {
		r.Say("the end of the command could not be noted: " + err.Error())
	}
}

// signalName is a signal as people write it.
func signalName(s os.Signal) string {
	names := map[os.Signal]string{
		os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
	}
	if name, has := names[s]; has {
		return name
	}
	return s.String()
}
