package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
)

// files writes files, given as name and text in turns, into a new directory.
func files(t *testing.T, namesAndTexts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for pair := range slices.Chunk(namesAndTexts, 2) {
		write(t, filepath.Join(dir, pair[0]), pair[1])
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  A: \"1\"\n"
}

// read reads a source, and gives "NAME at PLACE" of each config object, in their order.
func read(s render.Source) (placed []string, remarks []string, err error) {
	set := &manifest.Set{Kinds: manifest.Kinds()}
	err = s.Read(context.Background(), set)
	for _, c := range set.Sorted() {
		placed = append(placed, fmt.Sprintf("%s at %s", c.Name, c.Position))
	}
	return placed, set.Remarks, err
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := files(
		t,
		"one.yaml", configMap("one"),
		"all/b.yml", "---\n"+configMap("b"),
		"all/below/c.JSON", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`,
		"all/notes.md", "kind: {{",
		"all/values.yaml", "replicas: 3\n",
		"all/list.yaml", "- a\n",
		"all/.git/config.yaml", configMap("git"),
		"all/node_modules/x.yaml", configMap("module"),
		"all/template.yaml", configMap("{{ .Release.Name }}-x"),
		"all/broken-template.yaml", "{{- if .Values.on }}\n"+configMap("x")+"{{- end }}\n",
		"chart/Chart.yaml", "name: web\n",
		"chart/templates/config.yaml", configMap(`"{{ .Release.Name }}"`),
		"chart/crds/config.yaml", configMap("crd"),
		"templates/config.yaml", configMap("no-chart"),
		"broken.yaml", "a: [\n",
		"dir/broken.yaml", configMap("a")+"x: [\n",
		"aside/notes.yml", "a:\n- b: [\n", "aside/a.yaml", configMap("a"),
	)
	for name, c := range map[string]struct {
		files           []string
		placed, remarks []string
		err             string
	}{
		"a file":                 {files: []string{"one.yaml"}, placed: []string{"one at one.yaml:1"}},
		"the standard input":     {files: []string{"-"}, placed: []string{"in at stdin:1"}},
		"several":                {files: []string{"one.yaml", "-"}, placed: []string{"in at stdin:1", "one at one.yaml:1"}},
		"templates of no chart":  {files: []string{"templates"}, placed: []string{"no-chart at templates/config.yaml:1"}},
		"a chart's own template": {files: []string{"chart/templates"}, placed: []string{"{{ .Release.Name }} at chart/templates/config.yaml:1"}},
		"a directory": {
			files: []string{"all"}, placed: []string{"b at all/b.yml:2", "c at all/below/c.JSON:1"},
			remarks: []string{"all/broken-template.yaml is a template and is passed over: render it first", "all/template.yaml is a template and is passed over: render it first"},
		},
		"a chart": {
			files: []string{"chart"}, placed: []string{"crd at chart/crds/config.yaml:1"},
			remarks: []string{"chart/templates has the templates of a chart and is passed over: render it with helm template"},
		},
		"a file that is not there":   {files: []string{"none.yaml"}, err: "stat none.yaml: no such file or directory"},
		"a broken file":              {files: []string{"broken.yaml"}, err: "broken.yaml:1: not valid YAML"},
		"a broken file in directory": {files: []string{"dir"}, err: "dir/broken.yaml:7: not valid YAML"},
		"a broken file that is no manifest": {
			files: []string{"aside"}, placed: []string{"a at aside/a.yaml:1"}, remarks: []string{"aside/notes.yml:2: not valid YAML, and passed over"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placed, remarks, err := read(render.Source{Files: c.files, Dir: dir, In: strings.NewReader(configMap("in"))})
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("got the error  %v\nwant %s", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(placed, c.placed) || !slices.Equal(remarks, c.remarks) {
				t.Errorf("%v: read %q with remarks %q", err, placed, remarks)
			}
		})
	}
}

// What is named is looked at, whatever leads there; what only stands in a directory may lead round in a circle.
func TestLinksToDirectories(t *testing.T) {
	t.Parallel()
	dir := files(t, "all/below/a.yaml", configMap("a"))
	if err := errors.Join(os.Symlink("all", filepath.Join(dir, "link")), os.Symlink("..", filepath.Join(dir, "all", "below", "up"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"all", "link"} {
		placed, remarks, err := read(render.Source{Files: []string{name}, Dir: dir})
		want := name + "/below/up is a link to a directory and is passed over: name it with -f"
		if err != nil || !slices.Equal(placed, []string{"a at " + name + "/below/a.yaml:1"}) || !slices.Equal(remarks, []string{want}) {
			t.Errorf("%s: %v: %q with remarks %q", name, err, placed, remarks)
		}
	}
}

func TestAnAddressIsNoFile(t *testing.T) {
	t.Parallel()
	_, _, err := read(render.Source{Files: []string{"https://user:MARKER@example.org/a.yaml"}})
	if err == nil || !strings.Contains(err.Error(), "-f -") || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("got %v", err)
	}
}

// zeros are an input without end, which counts what is read of it.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += len(p)
	return len(p), nil
}

func TestInputThatIsTooLarge(t *testing.T) {
	t.Parallel()
	endless := &zeros{}
	_, _, err := read(render.Source{Files: []string{render.Stdin}, In: endless})
	if !errors.Is(err, manifest.ErrLarge) || err.Error() != "stdin: larger than 64 MiB: check it in parts" {
		t.Errorf("of the standard input: %v", err)
	}
	if endless.read > manifest.MaxSize+1 {
		t.Errorf("%d bytes of it were read", endless.read)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "large.yaml"), "")
	if err := os.Truncate(filepath.Join(dir, "large.yaml"), manifest.MaxSize+1); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]render.Source{
		"a file":      {Files: []string{"large.yaml"}, Dir: dir},
		"a directory": {Files: []string{"."}, Dir: dir},
		"a command":   {Command: "yes 'a: bcdefg'"},
	} {
		if _, _, err := read(s); !errors.Is(err, manifest.ErrLarge) || strings.Contains(err.Error(), dir) {
			t.Errorf("of %s: %v", name, err)
		}
	}
}

// A PowerShell of old redirects in UTF-16, with carriage returns.
func TestFilesAsWindowsHasThem(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll("---\n# Source: web/templates/a.yaml\n"+configMap("a")+"---\n"+configMap("b"), "\n", "\r\n")
	var wide bytes.Buffer
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		wide.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	dir := files(t, "marked.yaml", "\ufeff"+text, "wide.yaml", wide.String())
	for name, want := range map[string][]string{
		"marked.yaml": {"a at marked.yaml:3", "b at marked.yaml:10"}, "wide.yaml": {"a at wide.yaml:3", "b at wide.yaml:10"},
	} {
		if placed, remarks, err := read(render.Source{Files: []string{name}, Dir: dir}); err != nil || !slices.Equal(placed, want) || len(remarks) > 0 {
			t.Errorf("%v: read %q with remarks %q", err, placed, remarks)
		}
	}
}

func TestKustomize(t *testing.T) {
	t.Parallel()
	dir := files(
		t,
		"base/kustomization.yaml", "resources: [config.yaml]\n",
		"base/config.yaml", configMap("plain"),
		"over/kustomization.yaml", "namePrefix: over-\nresources: [../base]\nconfigMapGenerator:\n- name: made\n  literals: [a=b]\n",
		"broken/kustomization.yaml", "resources: [none.yaml]\n",
	)
	placed, _, err := read(render.Source{Kustomize: "over", Dir: dir})
	want := []string{"over-made-", "over-plain at base/config.yaml"}
	if err != nil || len(placed) != 2 || !strings.HasPrefix(placed[0], want[0]) || !strings.HasSuffix(placed[0], " at over/kustomization.yaml") || placed[1] != want[1] {
		t.Errorf("%v: %q", err, placed)
	}
	for _, name := range []string{"broken", "none"} {
		_, _, err := read(render.Source{Kustomize: name, Dir: dir})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), os.TempDir()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !render.IsKustomization(filepath.Join(dir, "base")) || render.IsKustomization(dir) {
		t.Error("a kustomization is not told from another directory")
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	dir := files(t, "config.yaml", configMap("a"), "twice.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}}`)
	for name, c := range map[string]struct {
		command string
		placed  []string
		said    string
		err     string
	}{
		"it runs where the source is":            {command: "cat config.yaml", placed: []string{"a at rendered:1"}},
		"it has its variables":                   {command: "sed s/a$/$NAMED/ config.yaml", placed: []string{"fromenv at rendered:1"}},
		"what it says is passed on":              {command: "cat config.yaml; echo warned >&2", placed: []string{"a at rendered:1"}, said: "warned\n"},
		"one that fails":                         {command: "cat config.yaml; exit 3", err: "render: the command failed: exit status 3"},
		"one that is not there":                  {command: "no-such-command-here", err: "render: the command failed: exit status 127"},
		"one that writes what is no YAML":        {command: "echo 'a: ['", err: "rendered:1: not valid YAML"},
		"one that writes JSON, object by object": {command: "cat twice.json; sed s/j/k/ twice.json", placed: []string{"j at rendered:1", "k at rendered:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			placed, _, err := read(render.Source{Command: c.command, Dir: dir, Env: []string{"NAMED=fromenv"}, Err: &said})
			if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && err != nil {
				t.Errorf("got the error  %v\nwant %s", err, c.err)
			}
			if c.err == "" && (!slices.Equal(placed, c.placed) || said.String() != c.said) {
				t.Errorf("read %q, said %q", placed, said.String())
			}
		})
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := (render.Source{Command: "cat"}).Read(ctx, &manifest.Set{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatManifestsNameAreInTheSource(t *testing.T) {
	t.Parallel()
	dir := files(t, "source/schema.json", "{}", "outside.json", "{}")
	s := render.Source{Dir: filepath.Join(dir, "source")}
	if data, err := s.ReadFile("schema.json"); err != nil || string(data) != "{}" {
		t.Errorf("%q, %v", data, err)
	}
	for _, name := range []string{"../outside.json", filepath.Join(dir, "outside.json"), "none.json"} {
		if data, err := s.ReadFile(name); err == nil {
			t.Errorf("%s was read: %s", name, data)
		}
	}
	if err := os.Symlink("../outside.json", filepath.Join(dir, "source", "link.json")); err != nil {
		t.Fatal(err)
	}
	if data, err := s.ReadFile("link.json"); err == nil {
		t.Errorf("a link out of the source was followed: %s", data)
	}
}
