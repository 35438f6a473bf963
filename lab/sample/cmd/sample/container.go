package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"tidemark.dev/tidemark/lab/sample"
)

// container is how a process and the commands executed beside it find each other: two files that live as long as
// the container's own file system.
type container struct {
	state string // what the process publishes
	exit  string // the code that `sample exit` asks for
}

type published struct {
	PID   int          `json:"pid"`
	State sample.State `json:"state"`
}

func (c container) publish(state sample.State) {
	content, err := json.Marshal(published{PID: os.Getpid(), State: state})
	if err != nil {
		return
	}
	// Readers must never see half a file. Without a writable /tmp the process works, only unseen by its probes.
	if os.WriteFile(c.state+".new", content, 0o600) == nil {
		_ = os.Rename(c.state+".new", c.state)
	}
}

func (c container) read() (published, error) {
	var p published
	content, err := os.ReadFile(c.state)
	if err != nil {
		return p, fmt.Errorf("find the process: %w", err)
	}
	if err := json.Unmarshal(content, &p); err != nil {
		return p, fmt.Errorf("find the process: %w", err)
	}
	if err := syscall.Kill(p.PID, 0); err != nil {
		return p, errors.New("the process has ended")
	}
	return p, nil
}

func (c container) beside() sample.Beside {
	return sample.Beside{
		Env:   environment(),
		Files: sample.Disk{},
		State: func() (sample.State, error) {
			p, err := c.read()
			return p.State, err
		},
		Exit: c.requestExit,
	}
}

func (c container) requestExit(code int) error {
	p, err := c.read()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.exit, []byte(strconv.Itoa(code)), 0o600); err != nil {
		return fmt.Errorf("leave the exit code: %w", err)
	}
	return syscall.Kill(p.PID, syscall.SIGTERM)
}

func (c container) exitCode() (int, bool) {
	content, err := os.ReadFile(c.exit)
	if err != nil {
		return 0, false
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(content)))
	return code, err == nil
}

func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	return env
}

func writeTerminationMessage(message string) {
	f, err := os.OpenFile("/dev/termination-log", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return // not in a container
	}
	fmt.Fprint(f, message)
	_ = f.Close() // a message for people: there is nobody to tell that it is lost
}
