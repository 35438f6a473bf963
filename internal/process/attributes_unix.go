//go:build unix && !linux

package process

import "syscall"

func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
