//go:build !unix

package process

import (
	"os"
	"syscall"
)

// DiesWithParent says that a command is killed when this program dies, whatever it dies of.
const DiesWithParent = false

func attributes(bool) *syscall.SysProcAttr { return nil }

// send ends the command on any signal: there is no other that reaches it.
func (p *Process) send(os.Signal) error { return p.cmd.Process.Kill() }

func endGroup(int) {}
