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

const kubectlBinary = "kubectl" // beside the lab's own

// Kubectl runs the real kubectl with all rights. The error of a kubectl that failed holds what it wrote to stderr,
// and is or wraps an *exec.ExitError.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return l.KubectlWithInput(ctx, "", args...)
}

// KubectlWithInput is Kubectl with something on standard input, for `-f -`.
func (l *Lab) KubectlWithInput(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	binary, err := l.beside(kubectlBinary)
	if err != nil {
		return "", "", err
	}
	command := exec.CommandContext(ctx, binary, args...)
	home := filepath.Join(l.status.Directory, "home")
	// Nothing of the person's own kubectl may have an effect.
	command.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "KUBERC=off",
		"KUBECACHEDIR="+filepath.Join(home, "cache"), "HOME="+home)
	command.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		return out.String(), errOut.String(),
			fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), errOut.String(), nil
}

// Apply runs `kubectl apply` on a manifest.
func (l *Lab) Apply(ctx context.Context, manifest string) error {
	_, _, err := l.KubectlWithInput(ctx, manifest, "apply", "-f", "-")
	return err
}
