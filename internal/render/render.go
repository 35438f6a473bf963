// Package render gets manifests from files, kustomizations, commands or revisions of Git.
package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/manifest"
)

// Stdin is the name of a file that stands for the standard input.
const Stdin = "-"

// Source is where the manifests of one release come from: one of its three.
type Source struct {
	// Files and directories; [Stdin] for the standard input. In a directory each YAML and JSON file is read, below it too.
	Files []string
	// Kustomize is a directory with a kustomization.
	Kustomize string
	// Command is run by the shell, and writes manifests to its standard output.
	Command string

	// Dir is what paths are relative to, and where the command runs; "" for the working directory.
	Dir string
	// Env are further variables of the command.
	Env []string
	// In is the standard input, Err gets what the command says.
	In  io.Reader
	Err io.Writer
}

// Read adds the manifests to a set. Their positions name files as the source does, relative to its directory.
func (s Source) Read(ctx context.Context, set *manifest.Set) error {
	if s.Kustomize != "" {
		return s.rendered(set, func(set *manifest.Set) error { return s.kustomize(ctx, set) })
	}
	if s.Command != "" {
		return s.rendered(set, func(set *manifest.Set) error { return s.run(ctx, set) })
	}
	for _, file := range s.Files {
		if err := s.read(ctx, file, set); err != nil {
			return err
		}
	}
	return nil
}

// Present is the source without what is not there of its files and its kustomization, and their names.
func (s Source) Present() (present Source, absent []string) {
	missing := func(path string) bool {
		_, err := os.Stat(s.path(path))
		if errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, path)
			return true
		}
		return false
	}
	s.Files = slices.DeleteFunc(slices.Clone(s.Files), missing)
	if s.Kustomize != "" && missing(s.Kustomize) {
		s.Kustomize = ""
	}
	return s, absent
}

// rendered reads what a program wrote.
func (s Source) rendered(set *manifest.Set, read func(*manifest.Set) error) error {
	set.Rendered = true
	defer func() { set.Rendered = false }()
	return read(set)
}

// errAddress does not quote the address, which may have a password in it.
var errAddress = errors.New("only files are read, and an address is given: give what is there by the standard input (-f -)")

// errNoInput is mostly that of a pipeline whose first program failed.
var errNoInput = errors.New("the standard input is empty: did what should write to it fail? (in a shell, set -o pipefail tells)")

func (s Source) read(ctx context.Context, file string, set *manifest.Set) error {
	if file == Stdin {
		text, err := within(ctx, func() (string, error) { return readText("stdin", s.In, 0) })
		switch {
		case err != nil:
			return err
		case strings.TrimSpace(text) == "":
			return errNoInput
		}
		return s.rendered(set, func(set *manifest.Set) error { return set.Read("stdin", text) })
	}
	path := s.path(file)
	info, err := os.Stat(path)
	switch {
	case err != nil && strings.Contains(file, "://"):
		return errAddress
	case err != nil:
		return without(err, s.Dir)
	}
	switch {
	case info.IsDir():
		return s.directory(file, path, set)
	case info.Size() > manifest.MaxSize:
		return fmt.Errorf("%s: %w", file, manifest.ErrLarge)
	}
	text, err := within(ctx, func() (string, error) { return readFile(file, path, info.Size()) })
	if err != nil {
		return without(err, s.Dir)
	}
	return set.Read(file, text)
}

// within ends with the context what knows none, such as reading from a pipe that nobody writes to. That goes on until the program ends.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// path is where a file of the source is.
func (s Source) path(file string) string {
	if s.Dir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.Dir, file)
}

// directory reads each manifest in a directory. Other YAML files, which many directories have, are passed over without a word;
// templates, and those of charts, with one.
func (s Source) directory(name, path string, set *manifest.Set) error {
	set.Lenient = true
	defer func() { set.Lenient = false }()
	root := path + string(filepath.Separator) // a link is followed where it is named, and only there
	return filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return without(err, s.Dir)
		}
		relative, err := filepath.Rel(path, p)
		if err != nil {
			return err
		}
		place := filepath.Join(name, relative)
		switch {
		case p == root:
			return nil
		case entry.IsDir():
			return into(place, p, set)
		case linked(entry, p):
			set.Remarks = append(set.Remarks, place+" is a link to a directory and is passed over: name it with -f")
			return nil
		case !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(p))):
			return nil
		}
		return s.inDirectory(place, p, set)
	})
}

// linked reports whether an entry is a link to a directory.
func linked(entry fs.DirEntry, path string) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// into decides whether to go into a directory.
func into(name, path string, set *manifest.Set) error {
	switch filepath.Base(path) {
	case ".git", "node_modules":
		return filepath.SkipDir
	case "templates":
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "Chart.yaml")); err == nil {
			set.Remarks = append(set.Remarks, name+" has the templates of a chart and is passed over: render it with helm template")
			return filepath.SkipDir
		}
	}
	return nil
}

func (s Source) inDirectory(name, path string, set *manifest.Set) error {
	data, err := ReadFile(path)
	if err != nil {
		return without(err, s.Dir)
	}
	err = set.Read(name, string(data))
	switch {
	case err == nil || errors.Is(err, manifest.ErrLarge):
		return err
	case bytes.Contains(data, []byte("{{")):
		set.Remarks = append(set.Remarks, name+" is a template and is passed over: render it first")
		return nil
	case !bytes.Contains(data, []byte("apiVersion")) && !bytes.Contains(data, []byte("jobs:")):
		set.Remarks = append(set.Remarks, err.Error()+", and passed over")
		return nil
	}
	return err
}

func readFile(name, path string, size int64) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names it
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readText(name, f, size)
}

// readText reads one byte more than may be parsed, if there is one; size is what there probably is, in bytes.
func readText(name string, r io.Reader, size int64) (string, error) {
	var text strings.Builder
	text.Grow(int(size))
	if _, err := io.Copy(&text, io.LimitReader(r, manifest.MaxSize+1)); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return text.String(), nil
}

// without takes the directory that a source is in out of an error's path: that of a revision is a temporary one.
func without(err error, dir string) error {
	var path *fs.PathError
	if dir != "" && errors.As(err, &path) {
		return fmt.Errorf("%s %s: %w", path.Op, strings.TrimPrefix(path.Path, dir+string(filepath.Separator)), path.Err)
	}
	return err
}

// ReadFile reads a file that manifests name, which must be in the source's directory or below it.
func (s Source) ReadFile(name string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Clean(s.path(".")))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	return bounded(root.Stat, root.Open, name, manifest.MaxSize)
}
