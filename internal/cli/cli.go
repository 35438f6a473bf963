// Package cli is the command line: verbs that show how far fleets are from their configuration, or that stop Tidemark.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/guard"
)

// Config is what the command line gets from its main.
type Config struct {
	genericiooptions.IOStreams
	// Clock times a watch, and gives the time where no API server does.
	Clock clock.WithTicker
	// Plugin says that the program was started as a plugin of kubectl.
	Plugin bool
	// HelmPlugin says that it was started as a plugin of helm, which gives it helm's own flags as variables.
	HelmPlugin bool
	// Build is what was built.
	Build Build
	// Getenv reads the environment; nil reads that of the process.
	Getenv func(string) string
	// Place is where a guard runs; the zero value finds the pod, if it is one, by what the kubelet gives each container.
	Place guard.Place
	// Margins are those of inference, where no flag sets them; one that is zero is as the controller states it, else the default.
	Margins fleet.Settings
	// Screen is where the output goes; the zero value is no terminal.
	Screen Screen
}

// Build says what the program was built from.
type Build struct {
	// Version of Tidemark, "devel" where none was given to the build.
	Version string `json:"version"`
	// Commit it was built from; absent where not known.
	Commit string `json:"commit,omitempty"`
}

// Exit statuses.
const (
	exitOK        = 0
	exitNotInStep = 1
	exitDiffers   = 1
	exitWrong     = 1
	exitFindings  = 1
	exitError     = 2
)

// errNotInStep ends a run whose findings the caller asked to have in the exit status; it is not reported.
var errNotInStep = errors.New("not in step")

// errDiffers is the same for a comparison that found a difference.
var errDiffers = errors.New("there is a difference")

// Run runs the command line with the arguments until it is done or the context ends, and gives the exit status.
func Run(ctx context.Context, config Config, args []string) int {
	root := New(config)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	var ended statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return ended.report(config.ErrOut, cmd.CommandPath())
	case errors.Is(err, errNotInStep):
		return exitNotInStep
	case errors.Is(err, errWrong):
		return exitWrong
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errFindings), errors.Is(err, errRolls):
		return exitFindings
	case errors.As(err, &usage):
		fmt.Fprintf(config.ErrOut, "error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(config.ErrOut, "error: interrupted")
	default:
		fmt.Fprintf(config.ErrOut, "error: %v\n", err)
	}
	return exitError
}

// usageError is an error in how a verb was called.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends a run with a certain exit status. Without an error within, nothing is reported.
type statusError struct {
	status int
	err    error
}

func (e statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e statusError) Unwrap() error { return e.err }

func (e statusError) report(w io.Writer, command string) int {
	var usage usageError
	switch {
	case errors.As(e.err, &usage):
		fmt.Fprintf(w, "error: %v\nSee '%s --help'.\n", e.err, command)
	case e.err != nil:
		fmt.Fprintf(w, "error: %v\n", e.err)
	}
	return e.status
}

// New makes the command line.
func New(config Config) *cobra.Command {
	name := "tidemark"
	if config.Plugin {
		name = "kubectl tidemark"
	}
	s := &session{
		Config: config,
		flags:  newFlags(),
		system: v1.DefaultNamespace, defaultMode: v1.ModeObserve,
	}
	if config.HelmPlugin {
		name = "helm tidemark"
		s.takeHelms()
	}
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "Make configuration changes take effect when someone decides, on every pod",
		Long: fill(name, `
			Tidemark shows the distance between the configuration that is applied in a Kubernetes cluster
			and the one that its pods are running, and closes it with ordinary rollouts.

			"check" says before a change what it would break, and needs no cluster; "plan" says what it would
			roll in one.

			"status", "explain", "history" and "diff" need nothing installed in the cluster, and only the
			right to read. What a missing right hides is said, and is unknown: never "nothing there".

			Exit status: 0 when the command did what it was asked to, 2 on any error. "status --exit-code"
			has 1 when a fleet is not in step, "diff --exit-code" when there is a difference, "verify" when
			something that was known is wrong, "check --strict" when there are findings, "plan --exit-code" when a
			workload would roll, "releases --exit-code" when there is something to report.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(config.In)
	root.SetOut(config.Out)
	root.SetErr(config.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	s.addFlags(root)
	root.AddCommand(newStatus(s, name), newExplain(s, name), newPause(s, name), newResume(s, name), newGC(s, name), newVersion(s, name),
		newHistory(s, name), newDiff(s, name), newRollback(s, name), newCheck(s, name), newPlan(s, name), newGuard(s, name),
		newPending(s, name), newReleases(s, name), newVerify(s, name))
	return root
}
