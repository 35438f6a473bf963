// Package sample is a small program whose behaviour is described by its own command line.
//
// Scenario manifests run it as their application. On a real cluster it is the command lab/sample/cmd/sample in
// an image; in the lab the container runtime calls it in its own process. There is one implementation, so a
// manifest means the same in both.
//
// As a process it reads its settings once when it starts, from environment variables and files, refuses what its
// options tell it to refuse, and then stays. Beside it, the way a probe or a person executes a command in a
// container, sub-commands look at the running process:
//
//	sample ready       exit 0 once the process has booted
//	sample live        exit 0 while the process runs
//	sample fresh       exit 1 when a start now would load other settings than the process has
//	sample env         print the environment
//	sample cat PATH    print a file
//	sample exit CODE   make the process exit
package sample

// ExitConfig is the exit code of a process that refuses its configuration (EX_CONFIG of sysexits.h).
const ExitConfig = 78

// ExitUsage is the exit code for a command line that cannot be understood.
const ExitUsage = 64
