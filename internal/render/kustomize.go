package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"

	"tidemark.dev/tidemark/internal/manifest"
)

// kustomize builds a kustomization. It is built as the only base of another one, which asks for the origins of objects: they
// are not to be had otherwise.
func (s Source) kustomize(ctx context.Context, set *manifest.Set) error {
	above, err := os.MkdirTemp("", "tidemark-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(above) //nolint:errcheck // a temporary directory
	if above, err = filepath.EvalSymlinks(above); err != nil {
		return err
	}
	base, err := filepath.Abs(s.path(s.Kustomize))
	if err != nil {
		return err
	}
	base, err = filepath.EvalSymlinks(base)
	switch {
	case err != nil && (isRemote("", s.Kustomize) || strings.Contains(s.Kustomize, "://")):
		return fmt.Errorf("build kustomization: it %w", errRemote)
	case err != nil:
		return fmt.Errorf("build kustomization %s: %w", s.Kustomize, without(err, s.Dir))
	}
	relative, err := filepath.Rel(above, base)
	if err != nil {
		return err
	}
	kustomization := fmt.Sprintf("resources: [%q]\nbuildMetadata: [originAnnotations]\n", relative)
	if err := os.WriteFile(filepath.Join(above, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		return err
	}
	files := newTree(ctx, above)
	text, err := build(ctx, files, above)
	if err != nil {
		return fmt.Errorf("build kustomization %s: %w", s.Kustomize, s.refusal(ctx, files, err))
	}
	if err := set.Read(s.Kustomize, string(text)); err != nil {
		return err
	}
	set.Resolve(s.Kustomize, func(source string) string { return s.origin(above, source) })
	return nil
}

// build builds a kustomization and gives the objects as YAML. Kustomize knows no context, and panics on some input that it does not
// expect.
func build(ctx context.Context, files *tree, dir string) ([]byte, error) {
	text, err := within(ctx, func() (text []byte, err error) {
		defer func() {
			if recover() != nil {
				err = errPanic
			}
		}()
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
		if err != nil {
			return nil, err
		}
		return built.AsYaml()
	})
	if ctx.Err() != nil {
		return nil, ctx.Err() // the build may still be going on
	}
	return text, errors.Join(files.refused, err)
}

var errPanic = errors.New("kustomize failed")

// refusal is why a kustomization is not built: a bound, else what kustomize minds.
func (s Source) refusal(ctx context.Context, files *tree, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case files.refused == nil:
		return errors.New(s.refused(files, err.Error()))
	}
	at, failed := s.relative(files.at)
	if failed != nil {
		return files.refused
	}
	return fmt.Errorf("%s: %w", at, files.refused)
}

// origin is a path relative to the kustomization above as one relative to the source's directory.
func (s Source) origin(above, source string) string {
	if strings.Contains(source, "://") {
		return source
	}
	relative, err := s.relative(filepath.Join(above, source))
	if err != nil {
		return source
	}
	return relative
}

// relative is a path relative to the source's directory.
func (s Source) relative(path string) (string, error) {
	dir, err := filepath.Abs(s.path("."))
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return filepath.Rel(dir, path)
}

// kustomizationFiles are the names that a kustomization's file may have.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// IsKustomization reports whether a directory has a kustomization.
func IsKustomization(dir string) bool {
	for _, name := range kustomizationFiles {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
