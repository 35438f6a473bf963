package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidemark.dev/tidemark/internal/cluster/revisions"
)

// beat is how often a rollout that is waited for is looked at.
const beat = time.Second

// await follows a rollout until it is done, has failed, or the time is over. Each thing that it waits for is said once.
func (o *rollbackOptions) await(ctx context.Context, name string, look func(context.Context) (revisions.Progress, error)) error {
	var over <-chan time.Time
	if o.timeout > 0 {
		timer := o.clock.NewTimer(o.timeout)
		defer timer.Stop()
		over = timer.C()
	}
	said := ""
	for {
		p, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.Text = fmt.Sprintf("%v: trying again", err)
		case p.Done:
			return o.say("%s is rolled out: %s", name, p.Text)
		case p.Failed != "":
			return fmt.Errorf("%s is rolled back, but its rollout failed: %s", name, p.Text+because(p))
		}
		if p.Text != said {
			said = p.Text
			fmt.Fprintf(o.ErrOut, "%s: %s\n", name, said)
		}
		if err := o.pause(ctx, over); err != nil {
			if errors.Is(err, errOver) {
				return fmt.Errorf("%s is rolled back, but its rollout was not done within %s: %s", name, o.timeout, said)
			}
			return err
		}
	}
}

// because is why it failed, where the progress has not said so.
func because(p revisions.Progress) string {
	if p.Failed == p.Text {
		return ""
	}
	return ": " + p.Failed
}

// errOver ends a wait whose time is over.
var errOver = errors.New("the time is over")

// pause waits for the next look.
func (o *rollbackOptions) pause(ctx context.Context, over <-chan time.Time) error {
	timer := o.clock.NewTimer(beat)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return errOver
	case <-timer.C():
		return nil
	}
}
