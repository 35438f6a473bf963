package render_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tidemark.dev/tidemark/internal/render"
)

// What a kustomization has from elsewhere may be another thing at each look, is read past all bounds, and is fetched from
// wherever the author of a pull request says. No field makes that happen.
func TestNothingRemoteIsFetched(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, configMap("remote"))
	}))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "://", "://user:MARKER@", 1)
	repository := "file://" + bareRepository(t)
	const k = "k/kustomization.yaml"
	for name, c := range map[string]struct{ files, field string }{
		"a resource":                        {k + "¦resources: [c.yaml, ADDRESS/a.yaml]", k + ": resources[1]"},
		"a resource of a base":              {k + "¦resources: [../base]¦base/kustomization.yml¦resources: [ADDRESS/a.yaml]", "base/kustomization.yml: resources[0]"},
		"a base in a repository":            {k + "¦resources: ['REPOSITORY?ref=main']", k + ": resources[0]"},
		"a base of old":                     {k + "¦bases: [REPOSITORY]", k + ": bases[0]"},
		"a component":                       {k + "¦components: [REPOSITORY//c]", k + ": components[0]"},
		"a field in another spelling":       {k + "¦Resources: [ADDRESS/a.yaml]", k + ": Resources[0]"},
		"a list that is an alias":           {k + "¦configurations: &x [ADDRESS/a.yaml]\nresources: *x", k + ": configurations[0]"},
		"fields that are merged in":         {k + "¦openapi: {<<: &x {path: ADDRESS/a.json}}", k + ": openapi.path"},
		"a patch":                           {k + "¦resources: [c.yaml]\npatches: [{path: ADDRESS/a.yaml}]", k + ": patches[0].path"},
		"a strategic merge patch":           {k + "¦resources: [c.yaml]\npatchesStrategicMerge: [ADDRESS/a.yaml]", k + ": patchesStrategicMerge[0]"},
		"a JSON patch":                      {k + "¦resources: [c.yaml]\npatchesJson6902: [{path: ADDRESS/a.yaml, target: {kind: ConfigMap, version: v1, name: c}}]", k + ": patchesJson6902[0].path"},
		"a file of a generator":             {k + "¦configMapGenerator: [{name: a, files: [b=ADDRESS/a.yaml]}]", k + ": configMapGenerator[0].files[0]"},
		"an env file":                       {k + "¦secretGenerator: [{name: a, envs: [ADDRESS/a.env]}]", k + ": secretGenerator[0].envs[0]"},
		"an env file of old":                {k + "¦secretGenerator: [{name: a, env: ADDRESS/a.env}]", k + ": secretGenerator[0].env"},
		"a replacement":                     {k + "¦resources: [c.yaml]\nreplacements: [{path: ADDRESS/a.yaml}]", k + ": replacements[0].path"},
		"a definition":                      {k + "¦resources: [c.yaml]\ncrds: [ADDRESS/a.json]", k + ": crds[0]"},
		"a plugin":                          {k + "¦generators: [ADDRESS/a.yaml]", k + ": generators[0]"},
		"what a plugin reads":               {k + "¦generators: [g.yaml]¦k/g.yaml¦apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [ADDRESS/a.yaml]", "k/g.yaml: files[0]"},
		"what a plugin in place reads":      {k + "¦transformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: a}\n  path: ADDRESS/a.yaml\nresources: [c.yaml]", k + ": transformers[0]"},
		"what a plugin in a List reads":     {k + "¦generators: [g.yaml]¦k/g.yaml¦apiVersion: v1\nkind: List\nitems:\n- apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: a}\n  files: [ADDRESS/a.yaml]", "k/g.yaml: items[0].files[0]"},
		"a plugin that escapes its version": {k + "¦generators: [g.yaml]¦k/g.yaml¦apiVersion: \"b\\u0075iltin\"\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [ADDRESS/a.yaml]", "k/g.yaml: files[0]"},
		"a plugin of no group":              {k + "¦generators: [g.yaml]¦k/g.yaml¦apiVersion: /builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [ADDRESS/a.yaml]", "k/g.yaml: files[0]"},
		"an address in base64":              {k + "¦generators: [g.yaml]¦k/g.yaml¦apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [!!binary BASE64]", "k/g.yaml: files[0]"},
		"a field that folds to its name":    {k + "¦reſources: [ADDRESS/a.yaml]", k + ": reſources[0]"},
		"beside keys that are there twice":  {k + "¦metadata: {annotations: {1: a, '1': b}}\nresources: [ADDRESS/a.yaml]", k + ": resources[0]"},
		"merged in from two":                {k + "¦<<: [{resources: [c.yaml]}, {resources: [ADDRESS/a.yaml]}]", k + ": resources[0]"},
		"an address that shouts":            {k + "¦resources: [HTTPADDRESS/a.yaml]", k + ": resources[0]"},
		"a repository by its host":          {k + "¦resources: [github.com/example/none]", k + ": resources[0]"},
		"a repository by its user":          {k + "¦resources: ['git@example.invalid:a/b']", k + ": resources[0]"},
		"a repository with a forced method": {k + "¦resources: ['git::https://example.invalid/a/b']", k + ": resources[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("HTTPADDRESS", strings.Replace(address, "http", "HTTP", 1), "BASE64", base64.StdEncoding.EncodeToString([]byte(address+"/a.yaml")), "ADDRESS", address, "REPOSITORY", repository).Replace(c.files)
			dir := files(t, append(strings.Split(text, "¦"), "k/c.yaml", configMap("c"))...)
			_, _, err := read(render.Source{Kustomize: "k", Dir: dir})
			want := "build kustomization k: " + c.field + " is remote, and is not fetched"
			if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--render") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if err != nil && (strings.Contains(err.Error(), "MARKER") || strings.Contains(err.Error(), dir)) {
				t.Errorf("it shows what it must not: %v", err)
			}
		})
	}
	for _, k := range []string{address + "/a", repository, "github.com/example/none//k", "oci://user:MARKER@example.org/a"} {
		if _, _, err := read(render.Source{Kustomize: k}); err == nil || !strings.Contains(err.Error(), "it is remote") || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s itself: %v", k, err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

// What configures a plugin may be made by a kustomization. A patch in there could give it an address that is in no file, in whatever
// parts, so nothing but the files themselves counts.
func TestConfigurationOfPluginsIsNotAltered(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	const plugin = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nliterals: [a=b]\n"
	patch := "patches:\n- target: {kind: ConfigMapGenerator}\n  patch: '[{op: add, path: /files, value: [" + server.URL + "]}]'\n"
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"by a JSON patch":              {[]string{"k/g/kustomization.yaml", "resources: [g.yaml]\n" + patch}, "k/g/kustomization.yaml: patches is in a kustomization that configures plugins"},
		"by a strategic merge patch":   {[]string{"k/g/kustomization.yaml", "resources: [g.yaml]\npatches: [{path: p.yaml}]\n", "k/g/p.yaml", strings.Replace(plugin, "literals: [a=b]", "files: ["+server.URL+"]", 1)}, "k/g/"},
		"by a base of it":              {[]string{"k/g/kustomization.yaml", "resources: [h]\n", "k/g/h/kustomization.yml", "resources: [g.yaml]\n" + patch}, "k/g/h/kustomization.yml: patches is in"},
		"by a component":               {[]string{"k/g/kustomization.yaml", "resources: [g.yaml]\ncomponents: [h]\n", "k/g/h/kustomization.yaml", "kind: Component\n" + patch}, "k/g/kustomization.yaml: components is in"},
		"by what is merged in":         {[]string{"k/g/kustomization.yaml", "<<: {resources: [g.yaml]}\n"}, "k/g/kustomization.yaml: << is in"},
		"by nothing, which is as ever": {[]string{"k/g/kustomization.yaml", "resources: [g.yaml]\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, field := range []string{"generators", "transformers", "validators"} {
				g := plugin
				if field != "generators" {
					g = "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: a}\n"
				}
				dir := files(t, append([]string{"k/kustomization.yaml", "resources: [c.yaml]\n" + field + ": [g]\n", "k/c.yaml", configMap("c"), "k/g/g.yaml", g}, c.files...)...)
				if name == "by a base of it" { // which may not be outside of it
					if err := os.Rename(filepath.Join(dir, "k", "g", "g.yaml"), filepath.Join(dir, "k", "g", "h", "g.yaml")); err != nil {
						t.Fatal(err)
					}
				}
				_, _, err := read(render.Source{Kustomize: "k", Dir: dir})
				want := "build kustomization k: " + c.want
				if (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--render")) {
					t.Errorf("%s: got  %v\nwant %s", field, err, want)
				}
			}
		})
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

// bareRepository makes a repository that kustomize could build from.
func bareRepository(t *testing.T) string {
	t.Helper()
	dir := files(t, "kustomization.yaml", "resources: [c.yaml]\n", "c.yaml", configMap("cloned"))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.email=nobody@example.org", "-c", "user.name=Nobody", "commit", "-q", "-m", "one"}} {
		git(t, append([]string{"-C", dir}, args...)...)
	}
	return dir
}

// Addresses that are no places to read from, and files with names like addresses, are as good as any.
func TestWhatOnlyLooksRemoteIsBuilt(t *testing.T) {
	t.Parallel()
	dir := files(
		t,
		"k/kustomization.yaml", "resources: [web@2/c.yaml, github.com, builtin.yaml]\ncommonAnnotations: {docs: 'https://example.invalid/a', path: 'https://example.invalid/a'}\n"+
			"configMapGenerator: [{name: made, literals: ['url=https://example.invalid/a'], files: [https.txt]}]\nimages: [{name: a, newName: ghcr.io/a/b}]\n",
		"k/web@2/c.yaml", configMap("c"), "k/github.com/kustomization.yaml", "resources: [d.yaml]\nlabels: [{pairs: {path: 'https://example.invalid/a'}}]\n", "k/github.com/d.yaml", configMap("d"),
		"k/https.txt", "https://example.invalid/a", "k/builtin.yaml", configMap("builtin")+"  path: https://example.invalid/a\n",
	)
	if placed, _, err := read(render.Source{Kustomize: "k", Dir: dir}); err != nil || len(placed) != 4 {
		t.Errorf("%v: %q", err, placed)
	}
	if err := os.Rename(filepath.Join(dir, "k"), filepath.Join(dir, "git@host")); err != nil {
		t.Fatal(err)
	}
	if placed, _, err := read(render.Source{Kustomize: "git@host", Dir: dir}); err != nil || len(placed) != 4 {
		t.Errorf("%v: %q", err, placed)
	}
}
