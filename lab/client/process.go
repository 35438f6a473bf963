package client

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

var errEnded = errors.New("the process ended")

// process is a program that runs beside a lab. It ends with this process at the latest, even when that is killed.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when the program has ended
	err     error         // set before ended is closed
}

// startProcess starts a program that does not look at its standard input. Like the lab it gets a process group of its
// own.
func startProcess(command *exec.Cmd) (*process, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithStarter(command.SysProcAttr)
	p := &process{command: command, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel takes the thread that starts a program for its parent, so the thread must live as long as the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// stop asks the program to end, and kills it when it does not in time.
func (p *process) stop(patience time.Duration) error {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		p.kill()
		return errors.New("killed after " + patience.String())
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}
