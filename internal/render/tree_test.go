package render_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/yamltree"
)

func bomb() string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nextra:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		text += fmt.Sprintf("  %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	return text
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// doubled are bases that name two below them each, so that the lowest is built as often as there are ways to it. It has no objects: what
// is bounded is how often it is read.
func doubled(levels int) []string {
	out := []string{"a0/kustomization.yaml", "namePrefix: a-\n", "b0/kustomization.yaml", "namePrefix: b-\n"}
	for i := 1; i <= levels; i++ {
		for _, side := range []string{"a", "b"} {
			out = append(out, fmt.Sprintf("%s%d/kustomization.yaml", side, i), fmt.Sprintf("resources: [../a%d, ../b%d]\n", i-1, i-1))
		}
	}
	return append(out, "k/kustomization.yaml", fmt.Sprintf("resources: [../a%d]\n", levels))
}

// Kustomize has no bounds of its own: what it is given has.
func TestAHostileKustomizationIsRefusedSoon(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  error
		said  string
	}{
		"a large resource":                {[]string{"k/kustomization.yaml", "resources: [large]\n"}, manifest.ErrLarge, "k/large: "},
		"a large file of a generator":     {[]string{"k/kustomization.yaml", "configMapGenerator: [{name: a, files: [large]}]\n"}, manifest.ErrLarge, "k/large: "},
		"a large env file":                {[]string{"k/kustomization.yaml", "configMapGenerator: [{name: a, envs: [large]}]\n"}, manifest.ErrLarge, "k/large: "},
		"a large patch":                   {[]string{"k/kustomization.yaml", "resources: [s.yaml]\npatches: [{path: large}]\n", "k/s.yaml", secret}, manifest.ErrLarge, "k/large: "},
		"many that are large together":    {[]string{"k/kustomization.yaml", "configMapGenerator: [{name: a, files: [a=half, b=half, c=half]}]\n"}, manifest.ErrLarge, "k/half: "},
		"a device":                        {[]string{"k/kustomization.yaml", "resources: [zero]\n"}, nil, "it names a file outside of its directory"},
		"a pipe that nobody writes to":    {[]string{"k/kustomization.yaml", "resources: [pipe]\n"}, nil, "k/pipe: is no regular file"},
		"aliases that expand":             {[]string{"k/kustomization.yaml", "resources: [bomb.yaml]\n", "k/bomb.yaml", bomb()}, yamltree.ErrAliases, "k/bomb.yaml: "},
		"aliases in a patch":              {[]string{"k/kustomization.yaml", "resources: [c.yaml]\npatches: [{path: bomb.yaml}]\n", "k/c.yaml", configMap("a"), "k/bomb.yaml", bomb()}, yamltree.ErrAliases, "k/bomb.yaml: "},
		"aliases in a patch in place":     {[]string{"k/kustomization.yaml", "resources: [c.yaml]\npatches:\n- patch: |\n" + indented(bomb()) + "\n", "k/c.yaml", configMap("a")}, yamltree.ErrAliases, "k/kustomization.yaml: "},
		"aliases in the kustomization":    {[]string{"k/kustomization.yaml", strings.Replace(bomb(), "apiVersion: v1\nkind: ConfigMap\n", "", 1)}, yamltree.ErrAliases, "k/kustomization.yaml: "},
		"brackets without end":            {[]string{"k/kustomization.yaml", "resources: [deep.yaml]\n", "k/deep.yaml", configMap("a") + "x: " + strings.Repeat("[", 1<<20) + "\n"}, yamltree.ErrDeep, "k/deep.yaml: "},
		"maps that nest too deeply":       {[]string{"k/kustomization.yaml", "resources: [deep.yaml]\n", "k/deep.yaml", configMap("a") + "x: " + strings.Repeat("{a: ", 1000) + strings.Repeat("}", 1000) + "\n"}, yamltree.ErrDeep, "k/deep.yaml: "},
		"bases that double at each level": {append(doubled(24), "k/x", ""), nil, "reads more than 3000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, c.files...)
			for link, size := range map[string]int64{"large": 100 << 20, "half": 30 << 20} {
				write(t, filepath.Join(dir, "k", link), "")
				if err := os.Truncate(filepath.Join(dir, "k", link), size); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink("/dev/zero", filepath.Join(dir, "k", "zero")), syscall.Mkfifo(filepath.Join(dir, "k", "pipe"), 0o600)); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			_, _, err := read(render.Source{Kustomize: "k", Dir: dir})
			runtime.ReadMemStats(&after)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.said) || strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.said)
			}
			if took, used := time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>20; took > 60*time.Second || used > 4096 {
				t.Errorf("took %v and %d MiB", took, used)
			}
		})
	}
}

// What is hostile in one place is ordinary in another: a file of a ConfigMap may hold any text.
func TestAKustomizationMayHoldAnyText(t *testing.T) {
	t.Parallel()
	dir := files(t, "k/kustomization.yaml", "configMapGenerator:\n- name: a\n  files: [x.bin, broken.yaml]\n  literals: ['a={{ [']\n", "k/x.bin", "\x00\xff\x01{{{[[[", "k/broken.yaml", "a: [\n")
	if placed, _, err := read(render.Source{Kustomize: "k", Dir: dir}); err != nil || len(placed) != 1 {
		t.Errorf("%v: %q", err, placed)
	}
}

func TestABuildEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := files(t, "k/kustomization.yaml", "resources: [s.yaml]\n", "k/s.yaml", secret)
	if err := (render.Source{Kustomize: "k", Dir: dir}).Read(ctx, &manifest.Set{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A directory is one input, however many files it has; and what is no file is not read.
func TestADirectoryIsBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("# "+strings.Repeat("x", 1020)+"\n", 30<<10)
	dir := files(t, "large/a.yaml", half, "large/b.yaml", half, "large/c.yaml", half, "zero/a.yaml", configMap("a"), "pipe/a.yaml", configMap("a"))
	if err := errors.Join(os.Symlink("/dev/zero", filepath.Join(dir, "zero", "b.yaml")), syscall.Mkfifo(filepath.Join(dir, "pipe", "b.yaml"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, said := range map[string]string{"large": "large/c.yaml: together with what was read before it larger than 64 MiB", "zero": "read zero/b.yaml: is no regular file", "pipe": "read pipe/b.yaml: is no regular file"} {
		if _, _, err := read(render.Source{Files: []string{name}, Dir: dir}); err == nil || !strings.HasPrefix(err.Error(), said) {
			t.Errorf("got %v, want %s", err, said)
		}
	}
}
