// Package client drives a lab, which it starts as a process of its own.
//
// The lab is a real Kubernetes in a process of its own, the binary bin/lab of this repository; see lab/README.md.
// A lab that was started here ends with the process that started it, even when that process is killed.
package client
