//go:build !linux

package client

import "syscall"

// dieWithStarter has no means here. The lab runs on Linux only; this lets the package compile elsewhere.
func dieWithStarter(*syscall.SysProcAttr) {}
