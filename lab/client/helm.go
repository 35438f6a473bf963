package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const helmBinary = "helm" // beside the lab's own

// Helm runs the real helm with all rights. The error of a helm that failed holds what it wrote to stderr, and is or wraps an
// *exec.ExitError.
func (l *Lab) Helm(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	command, err := l.HelmCommand(ctx, args...)
	if err != nil {
		return "", "", err
	}
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		return out.String(), errOut.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), errOut.String(), nil
}

// HelmCommand is the command that Helm runs, not started: for one that is to be stopped, killed, or run by another program. Its
// path is that of the binary, its environment all that it needs.
func (l *Lab) HelmCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	binary, err := l.beside(helmBinary)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = l.helmEnvironment()
	return command, nil
}

// helmEnvironment is this process's without what a person has set for their own helm, and with the lab in it.
func (l *Lab) helmEnvironment() []string {
	home := filepath.Join(l.status.Directory, "home")
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "HELM_") && !strings.HasPrefix(variable, "XDG_") {
			env = append(env, variable)
		}
	}
	return append(env, "KUBECONFIG="+l.Kubeconfig(), "HOME="+home)
}
