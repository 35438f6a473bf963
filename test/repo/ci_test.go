package repo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/cli"
)

// parsed reads a YAML file of the repository strictly, that is without keys that are there twice.
func parsed(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, file)), into, yaml.DisallowUnknownFields); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// checkCommand is `tidemark check`.
func checkCommand(t *testing.T) *cobra.Command {
	t.Helper()
	c, _, err := cli.New(cli.Config{}).Find([]string{"check"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ran runs a script of a CI system with a program tidemark that notes how it is called, and checks that each call can be parsed.
func ran(t *testing.T, script string, env ...string) [][]string {
	t.Helper()
	dir := t.TempDir()
	noted := filepath.Join(dir, "calls")
	program := "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\" >> " + noted + "; done\necho end >> " + noted + "\necho '{}'\n"
	if err := os.WriteFile(filepath.Join(dir, "tidemark"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(context.Background(), "bash", "-e", "-c", script)
	c.Dir = dir
	c.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "GITHUB_OUTPUT=" + filepath.Join(dir, "output"), "REPORT=" + filepath.Join(dir, "report")}, env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	data, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for text := range strings.SplitSeq(strings.TrimSuffix(string(data), "end\n"), "end\n") {
		args := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if args[0] != "check" {
			t.Errorf("it calls tidemark %s", args[0])
		}
		if err := checkCommand(t).ParseFlags(args[1:]); err != nil {
			t.Errorf("tidemark %q: %v", args, err)
		}
		all = append(all, args)
	}
	return all
}

func TestGitHubActionCallsCheck(t *testing.T) {
	var action struct {
		Name, Description string
		Inputs            map[string]struct{ Description, Default string }
		Runs              struct {
			Using string
			Steps []struct {
				Name, ID, Shell, Run, If, Uses string
				Env, With                      map[string]string
			}
		}
	}
	parsed(t, "deploy/ci/github/action.yml", &action)
	step := action.Runs.Steps[0]
	got := ran(
		t, step.Run, "INPUT_TIDEMARK=tidemark", "INPUT_FILES=a b.yaml\ndir", "INPUT_FROM=origin/main", "INPUT_RULES=key-missing=off\nrename-in-one-step=error",
		"INPUT_SCHEMAS=schemas", "INPUT_MODE=pin", "INPUT_STRICT=true", "INPUT_AGAINST=", "INPUT_KUSTOMIZE=", "INPUT_RENDER=",
	)
	flags := []string{"check", "--filename", "a b.yaml", "--filename", "dir", "--from", "origin/main", "--schema", "schemas",
		"--rule", "key-missing=off", "--rule", "rename-in-one-step=error", "--mode", "pin"}
	if len(got) != 2 || !slices.Equal(got[0], append(slices.Clone(flags), "--output", "sarif")) ||
		!slices.Equal(got[1], append(slices.Clone(flags), "--strict", "--output", "github")) {
		t.Errorf("it calls %q", got)
	}
	if upload := action.Runs.Steps[1]; !strings.Contains(upload.Uses, "upload-sarif") || upload.With["sarif_file"] != step.Env["REPORT"] || !strings.Contains(upload.If, "steps."+step.ID+".outputs") {
		t.Errorf("what is written is not what is uploaded: %v", upload)
	}
	// Each input reaches the script, in its environment and never in its text, where it would be run.
	for name := range action.Inputs {
		want := "${{ inputs." + name + " }}"
		if name != "upload" && step.Env["INPUT_"+strings.ToUpper(name)] != want {
			t.Errorf("input %s is not passed on", name)
		}
	}
	if strings.Contains(step.Run, "${{") {
		t.Error("the script has expressions in its text, so that whoever opens a pull request could run commands")
	}
}

func TestGitLabTemplateCallsCheck(t *testing.T) {
	var template map[string]struct {
		Stage, Image string
		Variables    map[string]string
		Rules        []map[string]string
		Script       []string
		Artifacts    struct {
			When    string
			Reports map[string]string
		}
	}
	parsed(t, "deploy/ci/gitlab/tidemark.gitlab-ci.yml", &template)
	job := template["tidemark-check"]
	got := ran(t, strings.Join(job.Script, "\n"), "TIDEMARK_FILES=a b", "TIDEMARK_RENDER=helm template .", "TIDEMARK_FROM=origin/main", "TIDEMARK_STRICT=true", "TIDEMARK_KUSTOMIZE=")
	flags := []string{"check", "--filename", "a", "--filename", "b", "--render", "helm template .", "--from", "origin/main"}
	if len(got) != 2 || !slices.Equal(got[0], append(slices.Clone(flags), "--output", "gitlab")) || !slices.Equal(got[1], append(slices.Clone(flags), "--strict")) {
		t.Errorf("it calls %q", got)
	}
	if report := job.Artifacts.Reports["codequality"]; report == "" || !strings.Contains(strings.Join(job.Script, "\n"), "> "+report) || job.Artifacts.When != "always" {
		t.Errorf("the report %q is not what is written", report)
	}
}

func TestPreCommitHooksCallCheck(t *testing.T) {
	type hook struct {
		ID            string   `json:"id"`
		Name          string   `json:"name"`
		Description   string   `json:"description"`
		Entry         string   `json:"entry"`
		Language      string   `json:"language"`
		PassFilenames *bool    `json:"pass_filenames"`
		AlwaysRun     bool     `json:"always_run"`
		Args          []string `json:"args"`
	}
	var hooks []hook
	parsed(t, ".pre-commit-hooks.yaml", &hooks)
	var config struct {
		Repos []struct {
			Repo, Rev string
			Hooks     []hook
		}
	}
	parsed(t, "deploy/ci/pre-commit/.pre-commit-config.yaml", &config)
	if len(hooks) != 1 || hooks[0].Entry != "tidemark check" || hooks[0].PassFilenames == nil || *hooks[0].PassFilenames || config.Repos[0].Hooks[0].ID != hooks[0].ID {
		t.Errorf("hooks %+v, example %+v", hooks, config)
	}
	for _, args := range [][]string{hooks[0].Args, config.Repos[0].Hooks[0].Args} {
		if err := checkCommand(t).ParseFlags(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

var longFlag = regexp.MustCompile(`(?:^|[\s"'\x60\[])--([a-z][a-z-]*)`)

func TestDocumentOfCIUsesFlagsThatExist(t *testing.T) {
	c := checkCommand(t)
	found := longFlag.FindAllStringSubmatch(read(t, "docs/ci.md"), -1)
	for _, m := range found {
		if c.Flag(m[1]) == nil {
			t.Errorf("docs/ci.md uses --%s, which check does not have", m[1])
		}
	}
	if len(found) == 0 {
		t.Error("docs/ci.md uses no flag")
	}
}
