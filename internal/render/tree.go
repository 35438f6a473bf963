package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/yamltree"
)

// tree is the file system that a kustomization is built from. Kustomize has no bounds of its own, so this gives it no more than may be
// parsed, and nothing that it would expand beyond all bounds.
type tree struct {
	filesys.FileSystem
	// ctx ends the reading.
	ctx context.Context
	// above is the directory of the kustomization that asks for origins, of which nobody knows.
	above string
	// asked are the paths that kustomize asked for, and last is the file that it read last.
	asked []string
	last  string
	// bytes and files are how much may be read yet. What several bases name is read, and built, as often.
	bytes int64
	files int
	// configures are the directories of kustomizations that configure plugins.
	configures map[string]bool
	// refused is why a file was not given, and at is which. Kustomize makes another error of it.
	refused error
	at      string
}

// maxFiles is how many files a kustomization may read, with those of its bases.
const maxFiles = 3_000

var errFiles = fmt.Errorf("reads more than %d files, with those of its bases", maxFiles)

func newTree(ctx context.Context, above string) *tree {
	return &tree{FileSystem: filesys.MakeFsOnDisk(), ctx: ctx, above: above, bytes: manifest.MaxSize, files: maxFiles, configures: map[string]bool{}}
}

// CleanedAbs is asked for each path that a kustomization names.
func (t *tree) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	t.asked = append(t.asked, path)
	dir, file, err := t.FileSystem.CleanedAbs(path)
	if err == nil {
		t.asked = append(t.asked, dir.Join(file))
	}
	return dir, file, err
}

// ReadFile reads a file within the bounds.
func (t *tree) ReadFile(path string) ([]byte, error) {
	if t.refused != nil {
		return nil, t.refused
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return t.FileSystem.ReadFile(path)
	}
	data, err := t.admit(path)
	if err != nil {
		t.refused, t.at = err, path
		var placed *fs.PathError
		if errors.As(err, &placed) {
			t.refused = placed.Err // at has the place
		}
		return nil, t.refused
	}
	t.last = path
	return data, nil
}

func (t *tree) admit(path string) ([]byte, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	if t.files--; t.files < 0 {
		return nil, errFiles
	}
	data, err := readBounded(path, t.bytes)
	if err != nil {
		return nil, err
	}
	t.bytes -= int64(len(data))
	text := string(data)
	if err := hostile(text, slices.Contains(kustomizationFiles, filepath.Base(path))); err != nil {
		return nil, err
	}
	if err := remoteField(path, text); err != nil {
		return nil, err
	}
	return data, t.altered(path, text)
}

// hostile reports whether YAML would be expanded beyond all bounds, or nests too deeply; with patches, also what is YAML in its
// scalars. What is no YAML is kustomize's to refuse, where it needs any.
func hostile(text string, patches bool) error {
	nodes, err := yamltree.Parse(text)
	if errors.Is(err, yamltree.ErrDeep) {
		return yamltree.ErrDeep
	}
	for _, n := range nodes {
		_, err := yamltree.Value(n)
		for _, bound := range []error{yamltree.ErrDeep, yamltree.ErrAliases} {
			if errors.Is(err, bound) {
				return bound
			}
		}
		if patches {
			if err := hostileWithin(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostileWithin looks into the scalars below a node that may be YAML.
func hostileWithin(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && strings.ContainsAny(n.Value, "\n[{") {
		return hostile(n.Value, false)
	}
	for _, c := range n.Content {
		if err := hostileWithin(c); err != nil {
			return err
		}
	}
	return nil
}
