package scenario

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
)

// GuardCommand is the program tidemark, as `make build` builds it, guarding the real helm in the scene's namespace. It is not
// started, and has a process group of its own.
func (s *Scene) GuardCommand(ctx context.Context, flags []string, helm ...string) (*exec.Cmd, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	inner, err := s.Lab.HelmCommand(ctx, append(helm, "--namespace", s.Namespace)...)
	if err != nil {
		return nil, err
	}
	args := append(append([]string{"guard"}, flags...), "--", inner.Path)
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "tidemark"), append(args, inner.Args[1:]...)...)
	command.Env = inner.Env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, nil
}
