package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// looks answers one look after another, steps the clock between them, and interrupts the watch after the last.
func looks(ctx context.Context, interrupt func(), o *statusOptions, clock *clocktesting.FakeClock, answers ...func() (*cluster.Sight, error)) {
	n := 0
	o.clock, o.interval = clock, time.Second
	o.views = []view{{look: func(context.Context) (*cluster.Sight, error) {
		n++
		if n > len(answers) {
			interrupt()
			return nil, ctx.Err()
		}
		go func() { // the timer is made after this returns
			for !clock.HasWaiters() && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			clock.Step(time.Minute)
		}()
		return answers[n-1]()
	}}}
}

func seeing(workloads ...cluster.Workload) func() (*cluster.Sight, error) {
	return func() (*cluster.Sight, error) { return &cluster.Sight{Now: now, Workloads: workloads}, nil }
}

func watchFor(t *testing.T, configure func(*statusOptions), answers ...func() (*cluster.Sight, error)) (out, errOut string, err error) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var o, e bytes.Buffer
	options := statusTo(&o, &e)
	options.watch = true
	configure(options)
	looks(ctx, interrupt, options, clocktesting.NewFakeClock(now), answers...)
	err = options.run(ctx)
	return o.String(), e.String(), err
}

func TestAWatchShowsWhatChanges(t *testing.T) {
	rolled := calm()
	rolled.Fleet.Mode = stamp.Observe
	out, errOut, err := watchFor(t, func(*statusOptions) {},
		seeing(mailer(), calm()),
		seeing(mailer(), calm()),
		func() (*cluster.Sight, error) { return nil, errors.New("connection refused") },
		seeing(mailer(), rolled),
		seeing(mailer()),
	)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "watch.txt", out)
	if errOut != "remark: connection refused: trying again\nremark: reachable again\n" {
		t.Errorf("remarked %q", errOut)
	}
}

func TestAWatchPrintsDocuments(t *testing.T) {
	out, _, err := watchFor(t, func(o *statusOptions) { o.output = "json" }, seeing(calm()), seeing())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, `"kind": "Fleet"`); n != 2 || !strings.Contains(out, `"verdict": "gone"`) {
		t.Errorf("%d documents:\n%s", n, out)
	}
}

func TestAWatchThatIsInterruptedHasTheLastStatus(t *testing.T) {
	ask := func(o *statusOptions) { o.exitCode = true }
	if _, _, err := watchFor(t, ask, seeing(calm()), seeing(mailer())); !errors.Is(err, errNotInStep) {
		t.Errorf("error %v, want not in step", err)
	}
	if _, _, err := watchFor(t, ask, seeing(mailer()), seeing(calm())); err != nil {
		t.Errorf("error %v, want none", err)
	}
}

func TestAWatchWhoseFirstLookFailsEnds(t *testing.T) {
	_, _, err := watchFor(t, func(*statusOptions) {}, func() (*cluster.Sight, error) { return nil, errors.New("connection refused") })
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
}

func failing(text string) func() (*cluster.Sight, error) {
	return func() (*cluster.Sight, error) { return nil, errors.New(text) }
}

func TestAWatchSaysEachTimeThatTheClusterIsLost(t *testing.T) {
	_, errOut, err := watchFor(t, func(*statusOptions) {},
		seeing(calm()), failing("refused"), failing("refused"), failing("timeout"), seeing(calm()), failing("refused"), seeing(calm()))
	if err != nil {
		t.Error(err)
	}
	want := []string{"refused: trying again", "timeout: trying again", "reachable again", "refused: trying again", "reachable again"}
	if got := strings.Split(strings.TrimSpace(strings.ReplaceAll(errOut, "remark: ", "")), "\n"); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestAWatchThatEndsWithoutSightOfTheClusterIsAnError(t *testing.T) {
	if _, _, err := watchFor(t, func(*statusOptions) {}, seeing(calm()), failing("refused")); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("after a last look that failed: error %v", err)
	}
	if _, _, err := watchFor(t, func(*statusOptions) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted before the first look was done: error %v", err)
	}
}
