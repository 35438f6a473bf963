package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/report"
)

// checkRun runs check with the arguments.
func checkRun(t *testing.T, in string, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	status = Run(context.Background(), Config{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(in), Out: &o, ErrOut: &e},
		Clock:     clocktesting.NewFakeClock(now),
	}, append([]string{"check"}, args...))
	return status, o.String(), e.String()
}

// file writes a file into the directory and gives its path.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const releasedPricing = `apiVersion: v1
kind: ConfigMap
metadata:
  name: pricing-config
data:
  pricing.conf: |
    discount_rules_path=/etc/rules/summer
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pricing
spec:
  template:
    spec:
      containers:
        - name: pricing
          image: pricing:1
          volumeMounts: [{name: config, mountPath: /etc/pricing}]
      volumes: [{name: config, configMap: {name: pricing-config}}]
`

var (
	bothPricing    = strings.ReplaceAll(strings.Replace(releasedPricing, "    discount", "    rules.discount_path=/etc/rules/summer\n    discount", 1), "pricing:1", "pricing:2")
	renamedPricing = strings.ReplaceAll(strings.Replace(releasedPricing, "discount_rules_path", "rules.discount_path", 1), "pricing:1", "pricing:3")
)

func TestCheckExitStatus(t *testing.T) {
	dir := t.TempDir()
	before, both, after := file(t, dir, "1.yaml", releasedPricing), file(t, dir, "2.yaml", bothPricing), file(t, dir, "3.yaml", renamedPricing)
	broken := file(t, dir, "broken.yaml", "apiVersion: v1\nkind: Secret\ndata: {MARKER: [\n")
	for name, c := range map[string]struct {
		args []string
		want int
		said string
	}{
		"findings are warnings":                    {[]string{"-f", after, "--against", before}, 0, "rename-in-one-step"},
		"strict makes them fail":                   {[]string{"-f", after, "--against", before, "--strict"}, 1, "discount_rules_path → pricing.conf:rules.discount_path"},
		"the first step passes":                    {[]string{"-f", both, "--against", before, "--strict"}, 0, "No findings"},
		"the second step passes":                   {[]string{"-f", after, "--against", both, "--strict"}, 0, "No findings"},
		"two releases before are both checked":     {[]string{"-f", after, "--against", both, "--against", before, "--strict"}, 1, "compared with " + both + ", " + before},
		"a rule that is off finds nothing":         {[]string{"-f", after, "--against", before, "--strict", "--rule", "rename-in-one-step=off"}, 0, "No findings"},
		"a rule may be an error":                   {[]string{"-f", after, "--against", before, "--rule", "rename-in-one-step=error"}, 0, "1 error, 0 warnings"},
		"a mode silences it":                       {[]string{"-f", after, "--against", before, "--strict", "--mode", "pin"}, 0, "No findings"},
		"a directory is read":                      {[]string{"-f", dir + "/1.yaml", "--against", dir + "/1.yaml"}, 0, "No findings"},
		"nothing to check":                         {nil, 2, "name what to check"},
		"two inputs":                               {[]string{"-f", after, "-k", dir}, 2, "do not go together"},
		"two kinds of a release before":            {[]string{"-f", after, "--against", before, "--from", "HEAD"}, 2, "do not go together"},
		"a revision of nothing":                    {[]string{"-f", after, "--to", "HEAD"}, 2, "--to needs --from"},
		"standard input of a revision":             {[]string{"-f", "-", "--from", "HEAD"}, 2, "the standard input is of no revision"},
		"the standard input twice":                 {[]string{"-f", "-", "--against", "-"}, 2, "the standard input can be read once"},
		"the standard input as the release before": {[]string{"-f", after, "--against", "-"}, 0, "compared with the standard input"},
		"a variable that is not set":               {[]string{"-f", after, "--from", ""}, 2, "--from\" flag: it is empty"},
		"one for the release before":               {[]string{"-f", after, "--against", ""}, 2, "one is empty"},
		"two kustomizations":                       {[]string{"-k", dir, "-k", dir}, 2, "--kustomize\" flag: it may be given once"},
		"no such mode":                             {[]string{"-f", after, "--mode", "pinned"}, 2, `"pinned" is no mode`},
		"no such rule":                             {[]string{"-f", after, "--rule", "rename=off"}, 2, `there is no rule "rename"`},
		"no such severity":                         {[]string{"-f", after, "--rule", "key-missing=fatal"}, 2, `"fatal" is no severity`},
		"no such format":                           {[]string{"-f", after, "-o", "xml"}, 2, `"xml" is no format`},
		"no such file":                             {[]string{"-f", dir + "/none.yaml"}, 2, "none.yaml"},
		"a broken file names its line only":        {[]string{"-f", broken}, 2, "broken.yaml:"},
		"a kustomization that is none":             {[]string{"-k", dir}, 2, "build kustomization"},
		"a command that fails":                     {[]string{"--render", "exit 3"}, 2, "the command failed: exit status 3"},
		"the rules":                                {[]string{"--list-rules"}, 0, "cancel-in-progress"},
		"the rules with their severities":          {[]string{"--list-rules", "--rule", "cancel-in-progress=off"}, 0, "cancel-in-progress          off"},
		"the rules with how to mend what is found": {[]string{"--list-rules", "-o", "wide"}, 0, "Fix: Ship it in two steps"},
		"the rules are not for every format":       {[]string{"--list-rules", "-o", "sarif"}, 2, "is no format of it"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errOut := checkRun(t, releasedPricing, c.args...)
			if status != c.want || !strings.Contains(out+errOut, c.said) || strings.Contains(out+errOut, "MARKER") {
				t.Errorf("status %d, want %d, with %q:\n%s%s", status, c.want, c.said, out, errOut)
			}
		})
	}
}

func TestCheckReadsTheStandardInput(t *testing.T) {
	before := file(t, t.TempDir(), "1.yaml", releasedPricing)
	status, out, _ := checkRun(t, "---\n# Source: pricing/templates/config.yaml\n"+renamedPricing, "-f", "-", "--against", before, "-o", "json")
	var r v1.CheckReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || len(r.Findings) != 1 {
		t.Fatalf("status %d, %v:\n%s", status, err, out)
	}
	if f := r.Findings[0]; f.Source != "pricing/templates/config.yaml" || f.Rule != "rename-in-one-step" || r.Kind != v1.KindCheckReport || len(r.Matrix) != 2 {
		t.Errorf("%+v", r)
	}
}

// repository makes a Git repository with a kustomization in deploy/, of two commits, and works in it.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	commit(t, map[string]string{
		".gitattributes":            "deploy/** export-ignore\n",
		"deploy/kustomization.yaml": "resources: [base/all.yaml]\nconfigMapGenerator:\n- name: unread\n  literals: [a=b]\n",
		"deploy/base/all.yaml":      releasedPricing,
	}, "v1")
	commit(t, map[string]string{"deploy/base/all.yaml": renamedPricing}, "v2")
}

// commit commits files to the repository in the working directory, which it makes if need be, with a tag.
func commit(t *testing.T, files map[string]string, tag string) {
	t.Helper()
	for name, content := range files {
		file(t, ".", name, content)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", tag}, {"tag", tag}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestCheckComparesRevisionsOfGit(t *testing.T) {
	for name, args := range map[string][]string{
		"a kustomization, with the working tree": {"-k", "deploy", "--from", "v1"},
		"a kustomization, of two revisions":      {"-k", "deploy", "--from", "v1", "--to", "HEAD"},
		"files":                                  {"-f", "deploy/base", "--from", "v1", "--to", "HEAD"},
		"what a command renders":                 {"--render", "test -n \"$TIDEMARK_REVISION$WORKING\"; cat deploy/base/all.yaml", "--from", "v1", "--to", "HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			repository(t)
			status, out, errOut := checkRun(t, "", append(args, "-o", "json", "--strict")...)
			var r v1.CheckReport
			if err := json.Unmarshal([]byte(out), &r); err != nil || status != 1 || len(r.Findings) != 1 {
				t.Fatalf("status %d, %v:\n%s%s", status, err, out, errOut)
			}
			f := r.Findings[0]
			if place := f.File + " " + f.Source; args[0] == "-k" && f.Source != "deploy/base/all.yaml" || args[0] == "-f" && f.File != "deploy/base/all.yaml" {
				t.Errorf("it is placed at %s", place)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "tidemark-check-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if text, err := exec.Command("git", "status", "--porcelain").Output(); err != nil || len(text) > 0 {
				t.Errorf("the work tree is touched: %s", text)
			}
		})
	}
}

// The change that brings the first manifests is a change like any other, also in a repository that had nothing at all.
func TestCheckOfWhatTheRevisionBeforeHasNot(t *testing.T) {
	repository(t)
	deploy, err := filepath.Abs("deploy")
	if err != nil {
		t.Fatal(err)
	}
	empty, err := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit-tree", "-m", "none", "4b825dc642cb6eb9a060e54bf8d69288fbee4904").Output()
	if err != nil {
		t.Fatal(err)
	}
	none := strings.TrimSpace(string(empty))
	file(t, ".", "new/kustomization.yaml", "resources: [a.yaml]\n")
	file(t, ".", "new/a.yaml", releasedPricing)
	for name, c := range map[string]struct {
		args   []string
		status int
		said   string
	}{
		"a new kustomization":               {[]string{"-k", "new", "--from", "v1"}, 0, "remark: v1 has no new, so nothing there is compared with it"},
		"a new file beside another":         {[]string{"-f", "new/a.yaml", "-f", "deploy/base", "--from", "v1"}, 1, "remark: v1 has no new/a.yaml, so"},
		"a revision of nothing":             {[]string{"-k", "deploy", "--from", none}, 0, "has no deploy, so nothing there is compared"},
		"what the new revision has not":     {[]string{"-k", "new", "--from", "v1", "--to", "HEAD"}, 2, "build kustomization new: "},
		"what is nowhere":                   {[]string{"-f", "none", "--from", "v1"}, 2, "stat none: no such file"},
		"a path from the root is no escape": {[]string{"-f", deploy + "/base", "--from", "v1"}, 1, "rename-in-one-step"},
		"nor for a kustomization":           {[]string{"-k", deploy, "--from", "v1"}, 1, "rename-in-one-step"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errOut := checkRun(t, "", append(c.args, "--strict")...)
			if status != c.status || !strings.Contains(out+errOut, c.said) {
				t.Errorf("status %d, want %d, with %q:\n%s%s", status, c.status, c.said, out, errOut)
			}
		})
	}
}

func TestCheckWorksInADirectoryOfTheRepository(t *testing.T) {
	repository(t)
	t.Chdir("deploy")
	status, out, errOut := checkRun(t, "", "-f", "base/all.yaml", "--from", "v1", "-o", "github")
	if status != 0 || !strings.HasPrefix(out, "::warning file=deploy/base/all.yaml,line=6,title=rename-in-one-step::") {
		t.Errorf("status %d: %s%s", status, out, errOut)
	}
	if status, _, errOut := checkRun(t, "", "-f", "base", "--from", "--output=x"); status != 2 || !strings.Contains(errOut, "find revision") {
		t.Errorf("a revision that looks like a flag: status %d: %s", status, errOut)
	}
}

const schema = `{"properties": {"pricing.conf": {"required": ["discount_rules_path"], "properties": {"discount_rules_path": {}}, "additionalProperties": false}}}`

func TestCheckReadsSchemas(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	annotated := strings.Replace(releasedPricing, "  name: pricing\n", "  name: pricing\n  annotations: {tidemark.dev/config-schema: schemas/deployment-pricing.json}\n", 1)
	file(t, dir, "schemas/deployment-pricing.json", schema)
	file(t, dir, "1.yaml", releasedPricing)
	file(t, dir, "3annotated.yaml", strings.Replace(annotated, "discount_rules_path", "rules.discount_path", 1))
	file(t, dir, "inline.yaml", strings.Replace(annotated, "schemas/deployment-pricing.json", "'"+schema+"'", 1))
	file(t, dir, "3.yaml", renamedPricing)
	file(t, dir, "outside.yaml", strings.Replace(annotated, "schemas/", "../schemas/", 1))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"by annotation":             {[]string{"-f", "3.yaml", "--against", "inline.yaml"}, "(high)\n  pricing.conf:discount_rules_path became pricing.conf:rules.discount_path (the names have the same words and the value is the same), and pods of inline.yaml read the old name."},
		"by a file":                 {[]string{"-f", "3annotated.yaml"}, "error: key-missing"},
		"by a flag":                 {[]string{"-f", "3.yaml", "--schema", "deployment/pricing=schemas/deployment-pricing.json"}, "error: key-missing"},
		"by a flag, with namespace": {[]string{"-f", "3.yaml", "-n", "shop", "--schema", "deployment/shop/pricing=schemas/deployment-pricing.json"}, "error: key-missing"},
		"of another namespace":      {[]string{"-f", "3.yaml", "-n", "shop", "--schema", "deployment/other/pricing=schemas/deployment-pricing.json"}, "there is no deployment/other/pricing"},
		"from a directory":          {[]string{"-f", "3.yaml", "--schema", "schemas"}, "pricing.conf:rules.discount_path is not known to the schema"},
		"not from outside":          {[]string{"-f", "outside.yaml"}, "schema of deployment/pricing"},
		"none for another workload": {[]string{"-f", "3.yaml", "--schema", "deployment/other=schemas/deployment-pricing.json"}, "remark: --schema: there is no deployment/other, so its schema is not used"},
		"from no directory":         {[]string{"-f", "3.yaml", "--schema", "scheme"}, `"scheme" is no directory`},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, errOut := checkRun(t, "", c.args...)
			if !strings.Contains(out+errOut, c.want) {
				t.Errorf("want %q:\n%s%s", c.want, out, errOut)
			}
		})
	}
}

// Whoever renames a setting renames it in its schema, too, which then says of the release before that it never read the old one.
func TestASchemaJudgesItsOwnRelease(t *testing.T) {
	t.Chdir(t.TempDir())
	renamed := strings.ReplaceAll(schema, "discount_rules_path", "rules.discount_path")
	annotated := strings.Replace(renamedPricing, "  name: pricing\n", "  name: pricing\n  annotations: {tidemark.dev/config-schema: s/deployment-pricing.json}\n", 1)
	commit(t, map[string]string{"none": ""}, "v0")
	commit(t, map[string]string{"all.yaml": releasedPricing, "s/deployment-pricing.json": schema}, "v1")
	commit(t, map[string]string{"all.yaml": renamedPricing, "s/deployment-pricing.json": renamed}, "v2")
	outside := file(t, t.TempDir(), "deployment-pricing.json", renamed)
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file(t, ".", "before.yaml", releasedPricing)
	file(t, ".", "annotated-before.yaml", strings.Replace(annotated, "rules.discount_path", "discount_rules_path", 1))
	const (
		reads   = "pods of v1 read the old name"
		mayRead = "may read the old name"
		unused  = "deployment-pricing.json is not known to be the schema of deployment/pricing in "
	)
	for name, c := range map[string]struct {
		args []string
		said []string
	}{
		"a file of the revision":                {[]string{"--from", "v1", "--schema", "deployment/pricing=s/deployment-pricing.json"}, []string{reads}},
		"a directory of the revision":           {[]string{"--from", "v1", "--schema", "s"}, []string{reads}},
		"a path from the root":                  {[]string{"--from", "v1", "--to", "v2", "--schema", "deployment/pricing=" + top + "/s/deployment-pricing.json"}, []string{reads}},
		"a file outside of the repository":      {[]string{"--from", "v1", "--schema", "deployment/pricing=" + outside}, []string{mayRead, unused + "v1"}},
		"a directory outside of the repository": {[]string{"--from", "v1", "--to", "v2", "--schema", filepath.Dir(outside)}, []string{mayRead, unused + "v1"}},
		"a release before that is a file":       {[]string{"--against", "before.yaml", "--schema", "s"}, []string{mayRead, unused + "before.yaml"}},
		"one whose annotation names a file":     {[]string{"--against", "annotated-before.yaml"}, []string{mayRead, unused + "annotated-before.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, errOut := checkRun(t, "", append(c.args, "-f", "all.yaml", "--strict")...)
			for _, said := range c.said {
				if status != 1 || !strings.Contains(out+errOut, said) {
					t.Errorf("status %d, want 1 with %q:\n%s%s", status, said, out, errOut)
				}
			}
		})
	}
	if status, out, errOut := checkRun(t, "", "-f", "all.yaml", "--from", "v0", "--schema", "s", "--strict"); status != 0 {
		t.Errorf("before there was any: status %d:\n%s%s", status, out, errOut)
	}
}

// secretive is a release in which everything that must not be shown has "MARKER" in it.
func secretive(n int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: db}
immutable: true
stringData:
  password: MARKERpassword%[1]d
  same: MARKERsame
  users.yaml: |
    MARKERtoken%[1]d: alice
    nested: {MARKERdeep%[1]d: {a: MARKERvalue}}
  app.env: "MARKER_NAME%[1]d=MARKERvalue"
  broken.json: '{"MARKERbroken%[1]d": '
---
apiVersion: v1
kind: Secret
metadata: {name: twin}
stringData: {password: MARKERpassword%[1]d, same: MARKERsame, PORT: MARKERport}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  DB_PASSWORD: MARKERhunter%[1]d
  PORT: "1"
  url: postgres://app:MARKERurl%[1]d@db/app
  gone%[1]d: ghp_MARKERabcdefghijklmnop%[1]d
  app.yaml: |
    keys: {ghp_MARKERabcdefghijklmnopqrst%[1]d: 1}
    api: {token: MARKERtoken%[1]d}
  bad.toml: "MARKER = [MARKER%[1]d"
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {tidemark.dev/mode: observe, tidemark.dev/config-schema: '{"properties": {"same": {"const": 1}, "url": {"maxLength": 3}, "users.yaml": {"additionalProperties": false}}}'}}
spec:
  template:
    metadata: {annotations: {checksum/config: x}}
    spec:
      containers:
        - name: app
          env: [{name: X, value: MARKERenv}, {name: P, valueFrom: {secretKeyRef: {name: db, key: none%[1]d}}}]
          envFrom: [{secretRef: {name: db}}, {secretRef: {name: twin}}, {configMapRef: {name: settings}}]
          volumeMounts: [{name: s, mountPath: /s}]
      volumes: [{name: s, secret: {secretName: db, items: [{key: absent, path: x}]}}]
`, n)
}

func TestCheckShowsNoCredentialInAnyFormat(t *testing.T) {
	dir := t.TempDir()
	before, after := file(t, dir, "1.yaml", secretive(1)), file(t, dir, "2.yaml", secretive(2))
	for _, format := range append(report.Formats(), "") {
		t.Run("as "+format, func(t *testing.T) {
			status, out, errOut := checkRun(t, "", "-f", after, "--against", before, "-o", format, "--strict")
			if status != 1 {
				t.Fatalf("status %d: %s", status, errOut)
			}
			if strings.Contains(out+errOut, "MARKER") {
				t.Errorf("a credential is shown:\n%s%s", out, errOut)
			}
		})
	}
	// That two Secrets have the same value changes nothing of what is said.
	_, same, _ := checkRun(t, "", "-f", after, "--against", before, "-o", "json")
	other := file(t, dir, "2.yaml", strings.Replace(secretive(2), "twin}\nstringData: {password: MARKERpassword2, same: MARKERsame", "twin}\nstringData: {password: MARKERother, same: MARKERunlike", 1))
	if _, unlike, _ := checkRun(t, "", "-f", other, "--against", before, "-o", "json"); unlike != same {
		t.Errorf("it is told that two Secrets are equal:\n%s\n%s", same, unlike)
	}
}

// Kustomize quotes what it refuses, in an input as in what it is compared with.
func TestCheckShowsNoCredentialOfABrokenKustomization(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	plain := file(t, dir, "plain.yaml", releasedPricing)
	file(t, dir, "literal/kustomization.yaml", "secretGenerator:\n- name: db\n  literals: [MARKERpassword]\n")
	file(t, dir, "typed/kustomization.yaml", "resources: [all.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: db}\n    stringData: [MARKERpassword]\n")
	file(t, dir, "typed/all.yaml", secretive(1))
	for _, k := range []string{"literal", "typed"} {
		for _, args := range [][]string{{"-k", k}, {"-f", plain, "--against", k}} {
			status, out, errOut := checkRun(t, "", args...)
			if status != 2 || strings.Contains(out+errOut, "MARKER") || !strings.Contains(errOut, "build kustomization "+k) {
				t.Errorf("%v: status %d: %s%s", args, status, out, errOut)
			}
		}
	}
}

// A directory that is compared with is bounded as what is checked is, also where it has a kustomization.
func TestCheckRefusesALargeReleaseBefore(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	plain := file(t, dir, "plain.yaml", releasedPricing)
	file(t, dir, "k/kustomization.yaml", "resources: [large.yaml]\n")
	for _, name := range []string{"k/large.yaml", "files/large.yaml"} {
		if err := os.Truncate(file(t, dir, name, ""), 100<<20); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"-f", plain, "--against", "k"}, {"-f", plain, "--against", "files"}, {"-k", "k"}} {
		if status, _, errOut := checkRun(t, "", args...); status != 2 || !strings.Contains(errOut, "large.yaml: larger than 64 MiB: check it in parts") {
			t.Errorf("%v: status %d: %s", args, status, errOut)
		}
	}
}

// TestCheckGrowsWithItsInput says nothing of time, which is for the benchmark: what is allocated does not depend on the machine, and
// grows as the work does.
func TestCheckGrowsWithItsInput(t *testing.T) {
	small, large := allocatedFor(t, 256<<10), allocatedFor(t, 1<<20)
	if large > 1.5*small {
		t.Errorf("%.0f bytes allocated for each byte of 1 MiB, %.0f for each of 256 KiB", large, small)
	}
}

// allocatedFor is what is allocated, for each byte of the input, to compare two releases of the size, in which everything changed.
func allocatedFor(t *testing.T, size int) float64 {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\ndata:\n  app.yaml: |\n", i)
		for j := range 100 {
			fmt.Fprintf(&b, "    section%d:\n      setting: value-%d\n      other: %d\n", j, i, j)
		}
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w%d\nspec:\n  template:\n    spec:\n      containers:\n        - name: app\n          envFrom:\n            - configMapRef:\n                name: c%d\n", i, i)
	}
	dir := t.TempDir()
	before, after := file(t, dir, "released.yaml", b.String()), file(t, dir, "after.yaml", strings.ReplaceAll(b.String(), "other: 1", "other: 2"))
	var began, ended runtime.MemStats
	runtime.ReadMemStats(&began)
	status, out, errOut := checkRun(t, "", "-f", after, "--against", before, "--strict")
	runtime.ReadMemStats(&ended)
	if status != 0 {
		t.Fatalf("status %d: %s%s", status, out, errOut)
	}
	return float64(ended.TotalAlloc-began.TotalAlloc) / float64(2*b.Len())
}

// Nothing to check is mostly the end of a pipeline whose beginning failed, and no success.
func TestCheckOfNothingIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, values := file(t, dir, "empty.yaml", "# nothing\n---\n"), file(t, dir, "values.yaml", "a: b\n")
	released := file(t, t.TempDir(), "released.yaml", releasedPricing)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an empty standard input":            {[]string{"-f", "-"}, "the standard input is empty: did what should write to it fail?"},
		"an empty one as the release before": {[]string{"-f", released, "--against", "-"}, "the standard input is empty"},
		"an empty file":                      {[]string{"-f", empty, "--against", released}, "there are no objects in " + empty},
		"a file without objects":             {[]string{"-f", values}, values + ":1 has no apiVersion and kind"},
		"a directory without manifests":      {[]string{"-f", dir}, "there are no objects in " + dir},
		"a command that writes nothing":      {[]string{"--render", "true"}, "there are no objects in what was rendered"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, out, errOut := checkRun(t, "\n", c.args...); status != exitError || out != "" || !strings.Contains(errOut, c.want) {
				t.Errorf("status %d\n%s%s", status, out, errOut)
			}
			if c.args[0] == "-f" && !slices.Contains(c.args, "--against") {
				var o, e bytes.Buffer
				status := Run(t.Context(), Config{
					IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}, Clock: clocktesting.NewFakeClock(now),
				}, append([]string{"plan", "-n", "shop", "--kubeconfig", file(t, t.TempDir(), "config", "")}, c.args...))
				if status != exitError || !strings.Contains(e.String(), c.want) {
					t.Errorf("plan: status %d\n%s", status, e.String())
				}
			}
		})
	}
	if status, _, errOut := checkRun(t, "", "-f", released, "--against", empty); status != exitOK || !strings.Contains(errOut, "has no objects") {
		t.Errorf("a release before may have nothing yet: status %d\n%s", status, errOut)
	}
}

// Whoever opens a pull request names files. A terminal acts on control characters, and a pipeline's log on lines.
func TestCheckShowsNoControlCharactersOfNames(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2K\u009b1m\x7f\r\n::error::b\u202e.yaml"
	dir := t.TempDir()
	found := file(t, dir, "found/"+hostile, strings.ReplaceAll(releasedPricing, "discount_rules_path=", "password=correcthorsebattery9\nx=")+"          envfrom: []\n")
	broken := file(t, dir, "broken/"+hostile, "kind: Pod\napiVersion: v1\na: [\n")
	remarked := file(t, dir, "remarked/"+hostile, "a: b\n---\n"+releasedPricing)
	for _, args := range [][]string{
		{"-f", found}, {"-f", found, "-o", "wide"}, {"-f", found, "-o", "json"}, {"-f", found, "-o", "sarif"}, {"-f", found, "-o", "github"}, {"-f", found, "-o", "gitlab"},
		{"-f", broken}, {"-f", filepath.Dir(broken)}, {"-f", remarked}, {"-f", remarked + "absent"}, {"-k", filepath.Join(dir, hostile)}, {"-f", found, "--against", broken},
		{"-f", found, "--against", remarked, "-o", "json"},
	} {
		_, out, errOut := checkRun(t, "", args...)
		all := out + errOut
		if i := strings.IndexFunc(all, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == '\u202e') }); i >= 0 || strings.Contains(all, "\n::error::b") || all == "" {
			t.Errorf("%q:\n%q", args, all)
		}
	}
}
