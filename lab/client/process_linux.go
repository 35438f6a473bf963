package client

import "syscall"

// dieWithStarter makes the kernel kill a program when the thread that starts it ends.
func dieWithStarter(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
