package repo

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryPackageSaysInOneSentenceWhatItIs(t *testing.T) {
	byDir := packages(t)
	for _, dir := range dirs(byDir) {
		t.Run(dir, func(t *testing.T) {
			comments := packageComments(t, byDir[dir])
			if len(comments) != 1 {
				t.Fatalf("the package has %d package comments, want one", len(comments))
			}
			sentence := new(doc.Package).Synopsis(comments[0])
			if sentence == "" || !strings.HasSuffix(sentence, ".") {
				t.Errorf("the package comment does not begin with a sentence: %q", comments[0])
			}
			if strings.Contains(sentence, " and ") {
				t.Errorf("a package that is this and that is two packages: %q", sentence)
			}
		})
	}
}

func packageComments(t *testing.T, paths []string) []string {
	t.Helper()
	var comments []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil && !ast.IsGenerated(file) {
			comments = append(comments, file.Doc.Text())
		}
	}
	return comments
}

func TestProductCodeImportsNeitherLabNorTests(t *testing.T) {
	for _, path := range goFiles(t) {
		if !isProduct(path) || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, imported := range imports(t, path) {
			if within(imported, modulePath+"/lab") || within(imported, modulePath+"/test") || imported == "testing" {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

func TestLabSharesNoCodeWithTheProduct(t *testing.T) {
	light := []string{modulePath + "/lab/wire", modulePath + "/lab/sample", modulePath + "/lab/client", modulePath + "/lab/cluster"}
	for _, path := range goFiles(t) {
		if !strings.HasPrefix(path, "lab/") {
			continue
		}
		for _, imported := range imports(t, path) {
			allowed := !within(imported, modulePath)
			for _, l := range light {
				allowed = allowed || within(imported, l)
			}
			if !allowed {
				t.Errorf("%s imports %s: an oracle that runs the product's code proves nothing", path, imported)
			}
		}
	}
}

func TestWhatBothModulesShareHasNoDependencies(t *testing.T) {
	for _, path := range goFiles(t) {
		if !strings.HasPrefix(path, "lab/wire/") && !strings.HasPrefix(path, "lab/sample/") {
			continue
		}
		for _, imported := range imports(t, path) {
			if strings.Contains(strings.Split(imported, "/")[0], ".") &&
				!within(imported, modulePath+"/lab/wire") && !within(imported, modulePath+"/lab/sample") {
				t.Errorf("%s imports %s: standard library only", path, imported)
			}
		}
	}
}

// isProduct reports whether a file is part of what users run.
func isProduct(path string) bool {
	for _, top := range []string{"api/", "cmd/", "internal/", "deploy/"} {
		if strings.HasPrefix(path, top) {
			return true
		}
	}
	return false
}

// within reports whether an import path is the other one or below it.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}
