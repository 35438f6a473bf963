package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/render"
)

const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: MARKER\n"

// Kustomize's own messages quote what is wrong; in each of these there is a value that must not be shown.
func TestARefusedKustomizationShowsNothingOfItsContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"a literal without a key":          {[]string{"k/kustomization.yaml", "secretGenerator:\n- name: db\n  literals: [MARKER]\n"}, "an entry of literals is not of the form KEY=VALUE"},
		"a literal in a base":              {[]string{"k/kustomization.yaml", "resources: [../base]\n", "base/kustomization.yaml", "secretGenerator:\n- name: db\n  literals: [=MARKER]\n"}, "base: an entry of literals"},
		"a literal in the list of files":   {[]string{"k/kustomization.yaml", "secretGenerator:\n- name: db\n  files: [password=MARKER]\n"}, "a source of a generator cannot be read"},
		"two equals signs":                 {[]string{"k/kustomization.yaml", "secretGenerator:\n- name: db\n  files: [password=MARKER=]\n"}, "an entry of files is not of the form"},
		"an env file that is no text":      {[]string{"k/kustomization.yaml", "secretGenerator:\n- name: db\n  envs: [db.env]\n", "k/db.env", "A=MARKER\xff\n"}, "an env file has bytes that are no text"},
		"a key that is there twice":        {[]string{"k/kustomization.yaml", "secretGenerator:\n- name: db\n  literals: [MARKER=a, MARKER=b]\n"}, "a generator has a key twice"},
		"a patch of another type":          {[]string{"k/kustomization.yaml", "resources: [s.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: db}\n    stringData: [MARKER]\n", "k/s.yaml", secret}, "another type"},
		"a patch that is none":             {[]string{"k/kustomization.yaml", "resources: [s.yaml]\npatches:\n- patch: MARKER\n", "k/s.yaml", secret}, "k: a patch is neither"},
		"a patch for nothing":              {[]string{"k/kustomization.yaml", "resources: [s.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: MARKER}\n", "k/s.yaml", secret}, "a patch has no object that it is for"},
		"a JSON patch of a wrong path":     {[]string{"k/kustomization.yaml", "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: '[{\"op\": \"replace\", \"path\": \"/none/x\", \"value\": \"MARKER\"}]'\n", "k/s.yaml", secret}, ""},
		"a replacement of another type":    {[]string{"k/kustomization.yaml", "resources: [s.yaml]\nreplacements:\n- source: {kind: Secret, fieldPath: stringData.password, options: {delimiter: '-', index: 7}}\n  targets: [{select: {kind: Secret}, fieldPaths: [metadata.name]}]\n", "k/s.yaml", secret}, ""},
		"a field of another type":          {[]string{"k/kustomization.yaml", "secretGenerator: MARKER\n"}, "a field of the kustomization has another type"},
		"a field that is not known":        {[]string{"k/kustomization.yaml", "MARKER: a\n"}, "the kustomization has a field that kustomize does not know"},
		"a resource that is no YAML":       {[]string{"k/kustomization.yaml", "resources: [s.yaml]\n", "k/s.yaml", secret + "  'MARKER: {\n"}, "k/s.yaml: not valid YAML at its line "},
		"a resource of a base":             {[]string{"k/kustomization.yaml", "resources: [../base]\n", "base/kustomization.yaml", "resources: [s.yaml]\n", "base/s.yaml", secret + "  'MARKER: {\n"}, "base/s.yaml: not valid YAML"},
		"a resource without a name":        {[]string{"k/kustomization.yaml", "resources: [s.yaml]\n", "k/s.yaml", "apiVersion: v1\nkind: Secret\nstringData: {a: MARKER}\n"}, "k/s.yaml: an object has no name"},
		"a resource that is not there":     {[]string{"k/kustomization.yaml", "resources: [none.yaml]\n"}, "k/none.yaml: it is not there"},
		"a base that is not there":         {[]string{"k/kustomization.yaml", "resources: [../none]\n"}, "none: it is not there"},
		"a base without a kustomization":   {[]string{"k/kustomization.yaml", "resources: [../base]\n", "base/s.yaml", secret}, "base: there is no kustomization file"},
		"a base that is itself":            {[]string{"k/kustomization.yaml", "resources: [../k]\n"}, "k: it has itself as a base"},
		"a file from outside":              {[]string{"k/kustomization.yaml", "resources: [../s.yaml]\n", "s.yaml", secret}, "it names a file outside of its directory"},
		"one object twice":                 {[]string{"k/kustomization.yaml", "resources: [s.yaml, t.yaml]\n", "k/s.yaml", secret, "k/t.yaml", secret}, "one object is there twice"},
		"a chart":                          {[]string{"k/kustomization.yaml", "helmCharts: [{name: web}]\n"}, "use --render"},
		"an empty kustomization":           {[]string{"k/kustomization.yaml", ""}, "the kustomization is empty"},
		"a component in the place of base": {[]string{"k/kustomization.yaml", "resources: [../c]\n", "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: a-\n"}, "c: a component is used as a base"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(render.Source{Kustomize: "k", Dir: files(t, c.files...)})
			if err == nil || !strings.HasPrefix(err.Error(), "build kustomization k: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "MARKER") || strings.Contains(err.Error(), os.TempDir())) {
				t.Errorf("it shows what it must not: %v", err)
			}
		})
	}
}

// The place is told also where nothing says what a kustomization is relative to.
func TestARefusedKustomizationIsPlacedFromTheWorkingDirectory(t *testing.T) {
	dir := files(t, "k/kustomization.yaml", "resources: [none.yaml]\n")
	t.Chdir(dir)
	for _, k := range []string{"k", filepath.Join(dir, "k")} {
		if _, _, err := read(render.Source{Kustomize: k}); err == nil || !strings.Contains(err.Error(), ": k/none.yaml: it is not there") {
			t.Errorf("%v", err)
		}
	}
}
