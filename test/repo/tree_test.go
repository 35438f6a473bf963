package repo

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// modulePath is the path of the product's module.
const modulePath = "tidemark.dev/tidemark"

// files lists the repository's files that the test accepts, relative to its top, with slashes. Left out are what Git ignores
// and the module sums, which nobody writes by hand.
func files(t *testing.T, accept func(path string) bool) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case entry.IsDir() && (rel == ".git" || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(rel, ".sum"):
			return nil
		}
		if accept(rel) {
			paths = append(paths, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func goFiles(t *testing.T) []string {
	t.Helper()
	return files(t, func(path string) bool { return strings.HasSuffix(path, ".go") })
}

// packages maps the directory of each Go package to its files without tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	byDir := map[string][]string{}
	for _, path := range goFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, "_test.go") && !strings.Contains(dir, "testdata") {
			byDir[dir] = append(byDir[dir], path)
		}
	}
	if len(byDir) < 5 {
		t.Fatalf("found %d packages below %s: the walk is wrong", len(byDir), root)
	}
	return byDir
}

// dirs lists the directories of the packages in order.
func dirs(byDir map[string][]string) []string {
	var all []string
	for dir := range byDir {
		all = append(all, dir)
	}
	slices.Sort(all)
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// imports lists the import paths of a Go file.
func imports(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}
