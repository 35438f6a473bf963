// Package process runs a command as one group of processes, which is signalled as a whole.
package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Exit statuses of a command that did not start, as env(1) has them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// Command is what to run.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Dir is where it runs; "" for the working directory.
	Dir string
	// Env is the whole environment as KEY=VALUE.
	Env            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal says that a person sits at a terminal that sends its signals to the whole job. The command then stays in the job,
	// so that it may read from the terminal, and signals go to the command alone. Otherwise it gets a group of its own.
	Terminal bool
}

// Process is a command that was started.
type Process struct {
	cmd    *exec.Cmd
	group  bool
	done   chan struct{}
	status int
	cut    bool
}

// pipePatience is how long a command's output is read on after its end, where a process that it left behind holds a pipe.
const pipePatience = 2 * time.Second

// Start starts the command. On Linux it is killed when this program dies, whatever it dies of. The error of a command that did
// not start is one for [StartStatus].
func Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:gosec,noctx // running it is what the caller is for, and ends it by signals
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = pipePatience
	cmd.SysProcAttr = attributes(!c.Terminal)
	p := &Process{cmd: cmd, group: !c.Terminal, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the signal of a parent's death when the thread ends that started the child. This one ends after it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	return p, <-started
}

// wait waits for the end of the command, and then of what it left in its group: whatever that does would be done after the
// command is said to have ended.
func (p *Process) wait() {
	p.cut = errors.Is(p.cmd.Wait(), exec.ErrWaitDelay) // all else that there is to know is in the state
	p.status = exitStatus(p.cmd.ProcessState)
	if p.group {
		endGroup(p.cmd.Process.Pid)
	}
	close(p.done)
}

// Signal sends a signal to the command, with its whole group where it has one. That it has ended already is no error.
func (p *Process) Signal(s os.Signal) error {
	err := p.send(s)
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Done is closed when nothing of the command runs any more.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitStatus is the command's after its end: 128+n where signal n ended it.
func (p *Process) ExitStatus() int { return p.status }

// Cut reports of a command that succeeded whether its output was given up before its end, because a process that it left behind held
// the pipe.
func (p *Process) Cut() bool { return p.cut }

// StartStatus is the exit status for a command that did not start.
func StartStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return StatusNotFound
	}
	return StatusNotExecutable
}

func exitStatus(state *os.ProcessState) int {
	if w, is := state.Sys().(syscall.WaitStatus); is && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return state.ExitCode()
}
