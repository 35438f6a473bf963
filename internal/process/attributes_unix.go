//go:build unix && !linux

package process

import "syscall"

// DiesWithParent says that a command is killed when this program dies, whatever it dies of.
const DiesWithParent = false

func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
