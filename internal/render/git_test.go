package render_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/render"
)

// repository makes a repository with two commits, of which the first is tagged v1, and works in it.
func repository(t *testing.T) {
	t.Helper()
	dir := files(t, "deploy/config.yaml", configMap("one"), "deploy/.gitattributes", "config.yaml export-ignore\n", ".gitignore", "*.tmp\n")
	t.Chdir(dir)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	git(t, "init", "-q", "-b", "main")
	git(t, "config", "user.email", "nobody@example.org")
	git(t, "config", "user.name", "Nobody")
	git(t, "add", "-A")
	git(t, "commit", "-q", "-m", "one")
	git(t, "tag", "v1")
	write(t, "deploy/config.yaml", configMap("two"))
	git(t, "commit", "-q", "-a", "-m", "two")
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestCheckoutIsOfTheRevisionAndLeavesTheRepositoryAlone(t *testing.T) {
	repository(t)
	write(t, "deploy/config.yaml", configMap("uncommitted"))
	git(t, "add", "-A")
	write(t, "deploy/untracked.yaml", configMap("untracked"))
	before := git(t, "status", "--porcelain=v2")
	tree, err := render.NewCheckout(context.Background(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if tree.Commit != git(t, "rev-parse", "v1^{commit}") {
		t.Errorf("commit %s", tree.Commit)
	}
	placed, _, err := read(render.Source{Files: []string{"deploy"}, Dir: tree.Dir})
	if err != nil || len(placed) != 1 || placed[0] != "one at deploy/config.yaml:1" {
		t.Errorf("%v: %q", err, placed)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tree.Dir); !os.IsNotExist(err) {
		t.Errorf("the tree is left behind: %v", err)
	}
	if after := git(t, "status", "--porcelain=v2"); after != before {
		t.Errorf("the repository is not as it was:\n%s\n%s", before, after)
	}
}

func TestCheckoutIsWhereTheWorkingDirectoryIs(t *testing.T) {
	repository(t)
	t.Chdir("deploy")
	tree, err := render.NewCheckout(context.Background(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close() //nolint:errcheck // a temporary directory of the test
	if placed, _, err := read(render.Source{Files: []string{"config.yaml"}, Dir: tree.Dir}); err != nil || len(placed) != 1 || placed[0] != "two at config.yaml:1" {
		t.Errorf("%v: %q", err, placed)
	}
}

func TestCheckoutRefuses(t *testing.T) {
	repository(t)
	if err := os.MkdirAll("new", 0o750); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, revision, want string }{
		"a revision that is not there":          {".", "v2", `find revision "v2": git rev-parse: fatal: Needed a single revision (a pipeline's clone may not have it: git fetch it`},
		"one that looks like a flag":            {".", "--all", `find revision "--all"`},
		"a directory that the revision has not": {"new", "v1", `revision "v1" has no directory new/`},
		"a place outside of a repository":       {filepath.Dir(t.TempDir()), "HEAD", "not a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			t.Chdir(c.dir)
			tree, err := render.NewCheckout(context.Background(), c.revision)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "tidemark-check-") {
				t.Errorf("%v, %v", tree, err)
			}
			if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "tidemark-check-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A path from the root would lead to the one state that is on the disk, which no other is compared with.
func TestPathsOfARevision(t *testing.T) {
	repository(t)
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("deploy")
	tree, err := render.NewCheckout(context.Background(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close() //nolint:errcheck // a temporary directory of the test
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(top, link); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"config.yaml": "config.yaml", filepath.Join(top, "deploy", "config.yaml"): "config.yaml", filepath.Join(link, "deploy"): ".", "..": "..", "none": "none",
		filepath.Join(top, "none"): "../none", filepath.Dir(top): "", "../..": "", "/dev/null": "",
	} {
		s, err := tree.Source(render.Source{Files: []string{given}, Command: "true"})
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "is not in the repository") {
				t.Errorf("%s: %v, %v", given, s, err)
			}
		} else if err != nil || s.Files[0] != want || s.Dir != tree.Dir || s.Env[0] != "TIDEMARK_REVISION="+tree.Commit {
			t.Errorf("%s: %v, %v", given, s, err)
		}
		if k, err := tree.Source(render.Source{Kustomize: given}); (err == nil) != (want != "") || err == nil && k.Kustomize != want {
			t.Errorf("a kustomization %s: %v, %v", given, k, err)
		}
	}
}

// What goes wrong in the tree of a revision is told by the paths that the caller knows.
func TestErrorsNameNoTemporaryDirectory(t *testing.T) {
	repository(t)
	tree, err := render.NewCheckout(context.Background(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close() //nolint:errcheck // a temporary directory of the test
	write(t, filepath.Join(tree.Dir, "kustom", "kustomization.yaml"), "resources: [none.yaml]\n")
	write(t, filepath.Join(tree.Dir, "remote", "kustomization.yaml"), "resources: [../../../outside]\n")
	write(t, filepath.Join(tree.Dir, "field", "kustomization.yaml"), "unknown: true\n")
	for name, s := range map[string]render.Source{
		"a file":                      {Files: []string{"none.yaml"}},
		"a kustomization":             {Kustomize: "none"},
		"a resource of one":           {Kustomize: "kustom"},
		"a base that is outside":      {Kustomize: "remote"},
		"a field that is not known":   {Kustomize: "field"},
		"a command that is not there": {Command: "./none.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Dir = tree.Dir
			_, _, err := read(s)
			if err == nil || strings.Contains(err.Error(), "tidemark-check-") {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
	if _, err := (render.Source{Dir: tree.Dir}).ReadFile("none.json"); err == nil || strings.Contains(err.Error(), "tidemark-check-") {
		t.Errorf("a named file: %v", err)
	}
}
