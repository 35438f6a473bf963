package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/process"
)

// Checkout is the tree of one revision of a Git repository, in a directory of its own.
type Checkout struct {
	// Dir is the place in the tree that is the working directory in the repository.
	Dir string
	// Commit is the revision that was named, in full.
	Commit string

	top string
}

// NewCheckout writes the tree of a revision of the repository of the working directory. The repository's index and work tree are left
// alone. [Checkout.Close] removes it.
func NewCheckout(ctx context.Context, revision string) (*Checkout, error) {
	commit, err := git(ctx, nil, "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("find revision %q: %w (a pipeline's clone may not have it: git fetch it, or clone with all history)", revision, err)
	}
	prefix, err := git(ctx, nil, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	top, err := os.MkdirTemp("", "tidemark-check-")
	if err != nil {
		return nil, err
	}
	c := &Checkout{Dir: filepath.Join(top, "tree", filepath.FromSlash(prefix)), Commit: commit, top: top}
	if err := c.write(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if _, err := os.Stat(c.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("revision %q has no directory %s", revision, prefix), c.Close())
	}
	return c, nil
}

// Source is a source of the working directory as one of the revision.
func (c *Checkout) Source(s Source) (Source, error) {
	files := slices.Clone(s.Files)
	for i := range files {
		var err error
		if files[i], err = c.within(files[i]); err != nil {
			return s, err
		}
	}
	kustomize, err := c.within(s.Kustomize)
	s.Files, s.Kustomize, s.Dir, s.Env = files, kustomize, c.Dir, []string{"TIDEMARK_REVISION=" + c.Commit}
	return s, err
}

// ErrOutside is the error of a path that no revision of the repository has.
var ErrOutside = errors.New("is not in the repository, so no revision has it")

// ReadFile reads a file of the working directory as the revision has it.
func (c *Checkout) ReadFile(path string) ([]byte, error) {
	relative, err := c.within(path)
	if err != nil {
		return nil, err
	}
	tree := filepath.Join(c.top, "tree")
	inTree, err := filepath.Rel(tree, filepath.Join(c.Dir, relative))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return bounded(root.Stat, root.Open, inTree, manifest.MaxSize)
}

// within is a path relative to the working directory, if it is in the repository: elsewhere there is but one state of it, which
// would be compared with itself.
func (c *Checkout) within(path string) (string, error) {
	relative := path
	if filepath.IsAbs(path) {
		dir, err := filepath.EvalSymlinks(".")
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return "", err
		}
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved
		}
		if relative, err = filepath.Rel(dir, path); err != nil {
			return "", err
		}
	}
	inTree, err := filepath.Rel(filepath.Join(c.top, "tree"), filepath.Join(c.Dir, relative))
	if err != nil || !filepath.IsLocal(inTree) {
		return "", fmt.Errorf("%s %w", path, ErrOutside)
	}
	return relative, nil
}

// write writes the tree through an index of its own. An archive would leave out what .gitattributes keeps out of archives.
func (c *Checkout) write(ctx context.Context) error {
	if err := os.Mkdir(filepath.Join(c.top, "tree"), 0o700); err != nil { // an empty one is one, too
		return err
	}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(c.top, "index")}
	if _, err := git(ctx, index, "read-tree", c.Commit); err != nil {
		return err
	}
	root, err := git(ctx, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	_, err = git(ctx, index, "-C", root, "checkout-index", "--all", "--prefix="+filepath.Join(c.top, "tree")+string(filepath.Separator))
	return err
}

// Close removes the tree.
func (c *Checkout) Close() error { return os.RemoveAll(c.top) }

// git runs git, with further variables, and gives what it wrote.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	var out, problem bytes.Buffer
	err := runGroup(ctx, process.Command{Args: append([]string{"git"}, args...), Env: append(os.Environ(), env...), Stdout: &out, Stderr: &problem})
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text := strings.TrimSpace(problem.String()); text != "" {
			return "", fmt.Errorf("git %s: %s", args[0], text)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}
