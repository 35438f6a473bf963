//go:build linux

package guard

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/process"
	"tidemark.dev/tidemark/internal/release"
)

// guarded is a run of a script under a lease.
type guarded struct {
	*stage
	signals chan os.Signal
	out     *bufio.Scanner
	status  chan int
	words   chan string
}

// guardScript runs a script under a lease that lasts so long, on the real clock.
func guardScript(t *testing.T, script string, duration, timeout time.Duration) *guarded {
	t.Helper()
	g := &guarded{stage: newStage(t), signals: make(chan os.Signal, 10), status: make(chan int, 1), words: make(chan string, 100)}
	d := deploy("a")
	d.Duration = duration
	k := g.keeper()
	k.Clock = clock.RealClock{}
	h, _, err := k.Take(t.Context(), d, 0)
	g.must(err)
	reader, writer := io.Pipe()
	g.out = bufio.NewScanner(reader)
	run := Run{
		Command: process.Command{Args: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: writer},
		Hold:    h, Revision: 7, Timeout: timeout, Signals: g.signals, Clock: clock.RealClock{}, Say: func(text string) { g.words <- text },
	}
	go func() {
		status, err := run.Do(t.Context())
		if err != nil {
			t.Error(err)
		}
		_ = writer.Close()
		g.status <- status
	}()
	return g
}

func (g *guarded) ended() int {
	g.t.Helper()
	go func() { // what it still writes
		for g.out.Scan() {
		}
	}()
	select {
	case status := <-g.status:
		return status
	case <-time.After(patience):
		g.t.Fatal("the command goes on")
		return 0
	}
}

func (g *guarded) ready() {
	g.t.Helper()
	if !g.out.Scan() {
		g.t.Fatal("no output")
	}
}

func (g *guarded) exitStatus() string { return g.read().Annotations[v1.AnnotationDeployExitStatus] }

const loop = `echo ready; while :; do sleep 0.02; done`

func TestTheEndOfACommandIsNoted(t *testing.T) {
	g := guardScript(t, "exit 5", time.Minute, 0)
	if status := g.ended(); status != 5 || g.exitStatus() != "5" || g.read().Annotations[v1.AnnotationDeployRevision] != "7" {
		t.Errorf("exit status %d, lease %v", status, g.read().Annotations)
	}
}

func TestASignalIsNotedBeforeItIsPassedOn(t *testing.T) {
	g := guardScript(t, `trap 'exit 6' TERM; `+loop, time.Minute, 0)
	g.ready()
	g.signals <- syscall.SIGTERM
	if status := g.ended(); status != 6 || g.exitStatus() != "6" || !strings.HasPrefix(g.read().Annotations[v1.AnnotationDeploySignal], "SIGTERM ") {
		t.Errorf("exit status %d, lease %v", status, g.read().Annotations)
	}
}

func TestASignalIsPassedOnWhereNothingCanBeNoted(t *testing.T) {
	g := guardScript(t, `trap 'exit 6' TERM; `+loop, time.Minute, 0)
	g.ready()
	g.cut.Store(true)
	g.signals <- syscall.SIGTERM
	if status := g.ended(); status != 6 {
		t.Errorf("exit status %d", status)
	}
}

func TestACommandWithoutRenewalIsStoppedBeforeItsLeaseExpires(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		status int
	}{
		"which heeds the signal":     {loop, 143},
		"which heeds no signal":      {`trap "" TERM; ` + loop, 137},
		"which left a child to work": {`(trap "" TERM; while :; do sleep 0.02; done) & ` + loop, 143},
	} {
		g := guardScript(t, c.script, 3*time.Second, 0)
		g.ready()
		g.cut.Store(true)
		status := g.ended()
		if said := <-g.words; status != c.status || !strings.Contains(said, "could not be renewed") {
			t.Errorf("a command %s: exit status %d, said %q", name, status, said)
		}
	}
}

func TestACommandWhoseLeaseIsLostIsStopped(t *testing.T) {
	g := guardScript(t, `trap "" TERM; `+loop, 3*time.Second, 0)
	g.ready()
	_, err := g.keeper().write(t.Context(), deploy("b"), g.read())
	g.must(err)
	if status := g.ended(); status != 137 {
		t.Errorf("exit status %d", status)
	}
	if l := g.read(); l.Labels[v1.LabelDeploy] != "b" || g.exitStatus() != "" {
		t.Errorf("the other's lease was written: %v", l)
	}
}

func TestACommandIsStoppedAtItsTimeout(t *testing.T) {
	g := guardScript(t, loop, time.Minute, time.Second)
	g.ready()
	status := g.ended()
	if said := <-g.words; status != 143 || g.exitStatus() != "143" || !strings.Contains(said, "past its timeout of 1s") {
		t.Errorf("exit status %d, said %q", status, said)
	}
	if f := g.decoded().Finished; f.Stopped != release.StoppedAtTimeout {
		t.Errorf("it was stopped for %q", f.Stopped)
	}
}

func TestACommandThatDoesNotStartIsNoted(t *testing.T) {
	g := newStage(t)
	h, _, err := g.take(deploy("a"), 0)
	g.must(err)
	status, err := Run{
		Command: process.Command{Args: []string{"no-such-program-anywhere"}}, Hold: h, Clock: clock.RealClock{}, Say: func(string) {},
	}.Do(t.Context())
	if status != 127 || err == nil || g.read().Annotations[v1.AnnotationDeployExitStatus] != "127" {
		t.Errorf("exit status %d, %v", status, err)
	}
}

func TestATerminalsSignalIsNotSentTwice(t *testing.T) {
	g := newStage(t)
	r, w := io.Pipe()
	out := bufio.NewScanner(r)
	signals := make(chan os.Signal, 2)
	status := make(chan int, 1)
	go func() {
		s, _ := Run{
			Command: process.Command{
				Args: []string{"sh", "-c", `n=0; trap 'n=$((n+1)); echo int' INT; trap 'exit $n' TERM; ` + loop}, Env: os.Environ(), Stdout: w, Terminal: true,
			},
			Signals: signals, Clock: clock.RealClock{}, Say: func(string) {},
		}.Do(g.t.Context())
		_ = w.Close()
		status <- s
	}()
	if !out.Scan() {
		t.Fatal("no output")
	}
	signals <- os.Interrupt // the terminal sends it to the command as well, which is not the test's to do
	signals <- syscall.SIGTERM
	for out.Scan() {
		t.Errorf("the command got a second SIGINT: %s", out.Text())
	}
	if s := <-status; s != 0 {
		t.Errorf("exit status %d", s)
	}
}
