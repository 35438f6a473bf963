package sample

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// Beside is what a command sees that is executed in the container of a running process.
type Beside struct {
	Env   map[string]string
	Files Files
	// State returns the state of the process, with an error when it does not run.
	State func() (State, error)
	// Exit makes the process exit with a code.
	Exit func(code int) error
}

// Commands returns the names of the sub-commands that Exec understands.
func Commands() []string { return []string{"ready", "live", "fresh", "env", "cat", "exit"} }

// IsCommand reports whether args are a sub-command and not the command line of a process.
func IsCommand(args []string) bool { return len(args) > 0 && slices.Contains(Commands(), args[0]) }

// Exec runs a sub-command and returns its exit code.
func Exec(args []string, beside Beside, out, errOut io.Writer) int {
	err := beside.exec(args, out)
	if usage, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(errOut, usage)
		return ExitUsage
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return 1
	}
	return 0
}

type usageError string

func (e usageError) Error() string { return "usage: sample " + string(e) }

func (b Beside) exec(args []string, out io.Writer) error {
	if len(args) == 0 {
		return usageError("COMMAND")
	}
	command, args := args[0], args[1:]
	switch command {
	case "ready":
		return b.ready()
	case "live":
		_, err := b.State()
		return err
	case "fresh":
		return b.fresh()
	case "env":
		for _, key := range slices.Sorted(maps.Keys(b.Env)) {
			fmt.Fprintf(out, "%s=%s\n", key, b.Env[key])
		}
		return nil
	case "cat":
		return b.cat(args, out)
	case "exit":
		return b.exit(args)
	}
	return usageError("ready|live|fresh|env|cat PATH|exit CODE")
}

func (b Beside) ready() error {
	state, err := b.State()
	if err != nil {
		return err
	}
	if !state.Ready {
		return errors.New("booting")
	}
	return nil
}

// fresh compares what the process has with what a start would load now.
func (b Beside) fresh() error {
	state, err := b.State()
	if err != nil {
		return err
	}
	settings, err := load(state.Options, b.Env, b.Files)
	if err != nil {
		return fmt.Errorf("a start now would be refused: %w", err)
	}
	if !maps.Equal(settings, state.Settings) {
		return errors.New("a start now would load other settings")
	}
	return nil
}

func (b Beside) cat(paths []string, out io.Writer) error {
	if len(paths) == 0 {
		return usageError("cat PATH")
	}
	for _, path := range paths {
		content, err := b.Files.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cat %s: %w", path, cause(err))
		}
		if _, err := out.Write(content); err != nil {
			return fmt.Errorf("cat %s: %w", path, err)
		}
	}
	return nil
}

func (b Beside) exit(args []string) error {
	if len(args) != 1 {
		return usageError("exit CODE")
	}
	code, err := strconv.Atoi(args[0])
	if err != nil || code < 0 || code > 255 {
		return usageError("exit CODE, from 0 to 255")
	}
	return b.Exit(code)
}
