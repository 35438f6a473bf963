package process

import "syscall"

// DiesWithParent says that a command is killed when this program dies, whatever it dies of. What the command has started is not.
const DiesWithParent = true

func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
}
