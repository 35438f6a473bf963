//go:build linux

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = 30 * time.Second

// The test's own program is the guard in tests of what happens when a guard dies: with this variable it starts what its
// arguments say and waits.
const asParent = "TIDEMARK_TEST_PROCESS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) == "" {
		os.Exit(m.Run())
	}
	p, err := Start(Command{Args: os.Args[1:], Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		panic(err)
	}
	<-p.Done()
	os.Exit(p.ExitStatus())
}

// shell starts a script, and returns its output line by line.
func shell(t *testing.T, script string) (*Process, *bufio.Scanner) {
	t.Helper()
	out, in := io.Pipe()
	p, err := Start(Command{Args: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: in, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
	go func() { <-p.Done(); _ = in.Close() }()
	return p, bufio.NewScanner(out)
}

func line(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	if !s.Scan() {
		t.Fatal("no more output")
	}
	return s.Text()
}

func ended(t *testing.T, p *Process) int {
	t.Helper()
	select {
	case <-p.Done():
		return p.ExitStatus()
	case <-time.After(patience):
		t.Fatal("the command goes on")
		return 0
	}
}

// dies waits until a process is no more, or a zombie that nobody has waited for yet.
func dies(t *testing.T, pid string) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") || errors.Is(err, syscall.ESRCH) {
			return
		}
	}
	t.Errorf("process %s lives", pid)
}

func TestTheExitStatusIsTheCommands(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		p, _ := shell(t, script)
		if got := ended(t, p); got != want {
			t.Errorf("%s: exit status %d, want %d", script, got, want)
		}
	}
}

func TestACommandThatDoesNotStartIsToldApart(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]int{"no-such-program-anywhere": 127, filepath.Join(t.TempDir(), "none"): 127, plain: 126, t.TempDir(): 126} {
		if _, err := Start(Command{Args: []string{program}}); err == nil || StartStatus(err) != want {
			t.Errorf("%s: %v: exit status %d, want %d", program, err, StartStatus(err), want)
		}
	}
}

func TestASignalReachesTheWholeGroup(t *testing.T) {
	p, out := shell(t, `trap 'echo outer; wait; exit 3' TERM; sh -c 'trap "echo inner; exit" TERM; echo ready; while :; do sleep 0.01; done' & while :; do wait; done`)
	if got := line(t, out); got != "ready" {
		t.Fatal(got)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{line(t, out): true, line(t, out): true}
	if !got["inner"] || !got["outer"] {
		t.Errorf("heard by %v", got)
	}
	if status := ended(t, p); status != 3 {
		t.Errorf("exit status %d", status)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

func TestWithATerminalTheCommandStaysInTheJob(t *testing.T) {
	for terminal, same := range map[bool]bool{true: true, false: false} {
		var out strings.Builder
		p, err := Start(Command{Args: []string{"sh", "-c", "ps -o pgid= -p $$"}, Env: os.Environ(), Stdout: &out, Terminal: terminal})
		if err != nil {
			t.Fatal(err)
		}
		ended(t, p)
		if got := strings.TrimSpace(out.String()) == strconv.Itoa(syscall.Getpgrp()); got != same {
			t.Errorf("terminal %t: group %s, this program's is %d", terminal, out.String(), syscall.Getpgrp())
		}
	}
}

func TestWhatACommandLeavesBehindIsEndedWithIt(t *testing.T) {
	for name, trap := range map[string]string{"what heeds a signal": "", "what does not": `trap "" TERM;`} {
		p, out := shell(t, `sh -c '`+trap+` echo $$; while :; do sleep 0.05; done' & sleep 0.3; exit 4`)
		pid := line(t, out)
		if status := ended(t, p); status != 4 {
			t.Errorf("%s: exit status %d", name, status)
		}
		dies(t, pid)
	}
}

func TestTheCommandDiesWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0], "sh", "-c", "echo $$; exec sleep 600")
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := line(t, bufio.NewScanner(out))
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dies(t, pid)
	_ = parent.Wait()
}
