package render

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"tidemark.dev/tidemark/internal/manifest"
)

// kustomize builds a kustomization. It is built as the only base of another one, which asks for the origins of objects: they
// are not to be had otherwise.
func (s Source) kustomize(set *manifest.Set) error {
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
	if base, err = filepath.EvalSymlinks(base); err != nil {
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
	files := newTree(above)
	built, err := build(files, above)
	if err != nil {
		return fmt.Errorf("build kustomization %s: %s", s.Kustomize, s.refused(files, err.Error()))
	}
	text, err := built.AsYaml()
	if err != nil {
		return fmt.Errorf("build kustomization %s: %s", s.Kustomize, s.refused(files, err.Error()))
	}
	if err := set.Read(s.Kustomize, string(text)); err != nil {
		return err
	}
	set.Resolve(s.Kustomize, func(source string) string { return s.origin(above, source) })
	return nil
}

// build builds a kustomization. Kustomize panics on some input that it does not expect.
func build(files filesys.FileSystem, dir string) (built resmap.ResMap, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
}

var errPanic = errors.New("kustomize failed")

// origin is a path relative to the kustomization above as one relative to the source's directory.
func (s Source) origin(above, source string) string {
	if strings.Contains(source, "://") {
		return source
	}
	dir, err := filepath.Abs(s.path("."))
	if err != nil {
		return source
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return source
	}
	relative, err := filepath.Rel(dir, filepath.Join(above, source))
	if err != nil {
		return source
	}
	return relative
}

// IsKustomization reports whether a directory has a kustomization.
func IsKustomization(dir string) bool {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
