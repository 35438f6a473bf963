//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func (p *Process) send(s os.Signal) error {
	number, is := s.(syscall.Signal)
	if !p.group || !is {
		return p.cmd.Process.Signal(s)
	}
	return syscall.Kill(-p.cmd.Process.Pid, number)
}

// How long what a command left behind has to end by itself, and how often it is looked at.
const (
	leftoverPatience = 2 * time.Second
	leftoverBeat     = 20 * time.Millisecond
)

// endGroup ends what is left of a group whose first process has ended.
func endGroup(group int) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if syscall.Kill(-group, s) != nil || gone(group) {
			return
		}
	}
}

// gone waits until the group has no process any more, and reports whether that came about.
func gone(group int) bool {
	ticker := time.NewTicker(leftoverBeat)
	defer ticker.Stop()
	for range leftoverPatience / leftoverBeat {
		// Where this program is the first of a container, what the command left behind has become its child.
		for reaped := 1; reaped > 0; {
			reaped, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		}
		if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
			return true
		}
		<-ticker.C
	}
	return false
}
