package sample

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Files is the file system that a process sees.
type Files interface {
	// ReadFile returns the content of a file.
	ReadFile(path string) ([]byte, error)
	// List returns the sorted names of the files in a directory, without those whose name begins with "..",
	// which the kubelet keeps for itself. For a path that is not a directory it returns ErrNotDirectory.
	List(dir string) ([]string, error)
}

// ErrNotDirectory is returned by Files.List for a file.
var ErrNotDirectory = errors.New("not a directory")

// load reads the settings that the options describe, or says why the configuration is refused.
func load(o Options, env map[string]string, files Files) (map[string]string, error) {
	settings := map[string]string{}
	for _, path := range o.Files {
		entries, err := readPath(files, path)
		if err != nil {
			return nil, err
		}
		if err := o.refuseUnknown(path, entries); err != nil {
			return nil, err
		}
		maps.Copy(settings, entries)
	}
	for _, key := range slices.Concat(o.Env, o.Require) {
		if value, ok := env[key]; ok {
			settings[key] = value
		}
	}
	for _, key := range o.Require {
		if _, ok := settings[key]; !ok {
			return nil, fmt.Errorf("required setting %q is missing", key)
		}
	}
	return settings, nil
}

func (o Options) refuseUnknown(path string, entries map[string]string) error {
	if len(o.Know) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !slices.Contains(o.Know, key) && !slices.Contains(o.Require, key) {
			return fmt.Errorf("unknown setting %q in %s", key, path)
		}
	}
	return nil
}

func readPath(files Files, path string) (map[string]string, error) {
	names, err := files.List(path)
	switch {
	case err == nil:
		return readDirectory(files, path, names)
	case !errors.Is(err, ErrNotDirectory):
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	content, err := files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	entries, err := parseLines(string(content))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return entries, nil
}

// cause drops the path from a file error: the lab's paths on the host mean nothing inside a container.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func readDirectory(files Files, dir string, names []string) (map[string]string, error) {
	entries := map[string]string{}
	for _, name := range names {
		content, err := files.ReadFile(strings.TrimSuffix(dir, "/") + "/" + name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, cause(err))
		}
		entries[name] = string(content)
	}
	return entries, nil
}

// parseLines reads key=value or key: value lines. Empty lines and lines that begin with # are skipped.
func parseLines(text string) (map[string]string, error) {
	entries := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.IndexAny(line, "=:")
		if at < 1 {
			return nil, fmt.Errorf("line %d is not key=value", number)
		}
		entries[strings.TrimSpace(line[:at])] = strings.TrimSpace(line[at+1:])
	}
	return entries, nil
}
