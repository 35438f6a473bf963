package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tidemark.dev/tidemark/lab/client"
)

// Names of what is installed.
const (
	SystemNamespace = "tidemark-system"
	ServiceAccount  = "tidemark-controller"
)

// Install applies deploy/manifests with the real kubectl, without pods of the controller.
func Install(ctx context.Context, lab *client.Lab) error { return install(ctx, lab, "install") }

// InstallPin applies deploy/pin with the real kubectl, without pods of the controller.
func InstallPin(ctx context.Context, lab *client.Lab) error { return install(ctx, lab, "installpin") }

func install(ctx context.Context, lab *client.Lab, kustomization string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if _, _, err := lab.Kubectl(ctx, "apply", "-k", filepath.Join(root, "test", "scenario", kustomization)); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

// Root is the directory of the checkout that the working directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "manifests", "kustomization.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not in a checkout of tidemark: " + start)
		}
	}
}
