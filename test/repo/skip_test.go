package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// A test that skips itself reads as passed in the summary of a run. Only two kinds of skip are somebody's wish: under -short, and of
// an input that the fuzzer made and that is none.
func TestNoTestSkipsItself(t *testing.T) {
	for _, path := range goFiles(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, skip := range skips(file) {
			t.Errorf("%s:%d skips: shorten the test or let it fail", path, fset.Position(skip).Line)
		}
	}
}

// skips finds the calls of a test's Skip that nobody asked for.
func skips(file *ast.File) []token.Pos {
	var found []token.Pos
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.IfStmt:
			return !calls(n.Cond, "Short")
		case *ast.CallExpr:
			if calls(n, "Fuzz") {
				return false
			}
			if calls(n, "Skip", "Skipf", "SkipNow") {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// calls reports whether an expression is a call of a method or function by one of the names.
func calls(expr ast.Expr, names ...string) bool {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(names, selector.Sel.Name)
}
