package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/process"
)

// stopPatience is how long a command has to end by itself when its context has ended.
const stopPatience = 2 * time.Second

var errCut = errors.New("what it left in the background holds its output open: let it wait for that, or redirect that output")

// run reads what the command writes.
func (s Source) run(ctx context.Context, set *manifest.Set) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- runGroup(ctx, process.Command{
			Args: []string{"sh", "-c", s.Command}, Dir: s.Dir, Env: append(os.Environ(), s.Env...), Stdout: in, Stderr: s.Err,
		})
		_ = in.Close()
	}()
	text, err := readText("rendered", out, 0)
	if err != nil {
		return err
	}
	if tooLarge := len(text) > manifest.MaxSize; tooLarge {
		_ = out.Close() // it may go on writing for ever
		stop()
		<-over //nolint:errcheck // it was stopped, and how it took that is nothing to tell
	} else if err := <-over; err != nil {
		return fmt.Errorf("render: the command failed: %w", err)
	}
	return set.Read("rendered", text)
}

// runGroup runs a command to its end, and ends it with all that it started when the context ends.
func runGroup(ctx context.Context, c process.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Terminal = attended()
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		end(p)
		return ctx.Err()
	}
	switch {
	case p.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", p.ExitStatus())
	case p.Cut():
		return errCut
	}
	return nil
}

func end(p *process.Process) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = p.Signal(signal) // one that cannot be sent is waited for
		patience := time.NewTimer(stopPatience)
		select {
		case <-p.Done():
			patience.Stop()
			return
		case <-patience.C:
		}
	}
	<-p.Done()
}

// attended reports whether there is a terminal, from which a command may ask for a password. It sends its signals to all that
// belongs to the job, so nothing needs a group of its own for that; from one it could not be read.
func attended() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return terminal.Close() == nil
}
