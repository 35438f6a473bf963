package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
)

func run(t *testing.T, plugin bool, args ...string) (code int, out, errOut string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = Run(t.Context(), Config{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &o, ErrOut: &e},
		Clock:     clocktesting.NewFakeClock(now), Plugin: plugin, Build: Build{Version: "v1.2.3"},
	}, append(args, "--kubeconfig", kubeconfig, "--server", "http://127.0.0.1:1"))
	return code, o.String(), e.String()
}

func TestWrongCallsSayWhatToWrite(t *testing.T) {
	for args, want := range map[string]string{
		"status -o xml":                     "write one of wide, fleet, json, yaml, name",
		"status deployment":                 "",
		"status web/":                       "write KIND/NAME",
		"status deployment/web -A":          "--all-namespaces does not go with names",
		"status deployment/web -l a=b":      "--selector does not go with names",
		"status -l =":                       "--selector",
		"status --contexts a,b --watch":     "--watch does not go with --contexts",
		"status --contexts a,a":             "name each context once",
		"status --contexts a --context b":   "--context does not go with --contexts",
		"status --interval 0s":              "--interval",
		"status --kind Rollout":             "want GROUP/VERSION/KIND",
		"status --default-mode all":         "write observe, roll or pin",
		"status --refresh-lag -1s":          "--refresh-lag",
		"status --colour":                   "unknown flag",
		"explain":                           "name one workload",
		"explain deployment/a deployment/b": "name one workload",
		"explain deployment":                "name one workload",
		"pause":                             "name what to pause",
		"resume":                            "name what to resume",
		"pause --all deployment/web":        "--all does not go with names",
		"pause --all -n shop":               "--all does not go with --namespace",
		"pause deployment -n shop":          "write KIND/NAME",
		"verify":                            "name one pod",
		"verify a b":                        "name one pod",
		"verify deployment/web":             "names no pod",
		"verify web -o wide":                "write one of json, yaml",
		"version 1":                         "unexpected argument",
		"version -o wide":                   "write one of json, yaml",
	} {
		t.Run(args, func(t *testing.T) {
			code, out, errOut := run(t, true, strings.Fields(args)...)
			if code != exitError || out != "" {
				t.Errorf("exit status %d, printed %q; want %d and nothing", code, out, exitError)
			}
			if !strings.Contains(errOut, want) {
				t.Errorf("said %q, want %q in it", errOut, want)
			}
			if want != "" && !strings.Contains(errOut, "See 'kubectl tidemark ") {
				t.Errorf("said %q, want where to look", errOut)
			}
		})
	}
}

func TestMarginsOfFlagsReachTheLook(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	s := &session{Config: Config{Clock: clocktesting.NewFakeClock(now)}, flags: newFlags(), defaultMode: "observe"}
	root := &cobra.Command{Run: func(*cobra.Command, []string) {}}
	s.addFlags(root)
	root.SetArgs([]string{"--server", "http://127.0.0.1:1", "--refresh-lag", "7m", "--read-lag", "4s", "--clock-skew", "3s"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session{"the context": s, "another context": s.in("")} {
		survey, err := s.survey(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := fleet.Settings{RefreshLag: 7 * time.Minute, ReadLag: 4 * time.Second, Skew: 3 * time.Second}
		if survey.Settings != want {
			t.Errorf("%s is looked at with %+v, want %+v and the rest as the controller states it", name, survey.Settings, want)
		}
	}
}

func TestAClusterThatCannotBeReachedIsAnError(t *testing.T) {
	code, out, errOut := run(t, false, "status")
	if code != exitError || out != "" || !strings.Contains(errOut, "refused") {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
}

func TestVersion(t *testing.T) {
	code, out, errOut := run(t, false, "version")
	if code != exitOK || !strings.HasPrefix(out, "Tidemark v1.2.3 (go") || !strings.Contains(errOut, "remark: the cluster does not tell") {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
	code, out, errOut = run(t, false, "version", "--client", "-o", "json")
	if code != exitOK || !strings.Contains(out, `"version": "v1.2.3"`) || errOut != "" {
		t.Errorf("exit status %d, printed %q, said %q", code, out, errOut)
	}
}

func TestHelpNamesTheProgramAsItWasCalled(t *testing.T) {
	for name, plugin := range map[string]bool{"tidemark": false, "kubectl tidemark": true} {
		for _, verb := range []string{"status", "explain", "pause", "resume", "version", "history", "diff", "rollback", "gc", "verify"} {
			_, out, _ := run(t, plugin, verb, "--help")
			if !strings.Contains(out, "  "+name+" "+verb) || !strings.Contains(out, "Exit status:") {
				t.Errorf("help of %s %s:\n%s", name, verb, out)
			}
		}
	}
}

func TestSelectWorkloads(t *testing.T) {
	kinds := cluster.BuiltinKinds()
	noMapper := func() (meta.RESTMapper, error) { return nil, errors.New("not reachable") }
	for args, want := range map[string]string{
		"":                               "",
		"deployment/web statefulsets/db": "deployment/web statefulset/db",
		"Deployment.apps/web":            "deployment/web",
		"deployment web api":             "deployment/web deployment/api",
		"cronjobs":                       "cronjob",
		"deployment/web/x":               "error: names no workload",
		"deployment/web api":             "error: names no workload",
		"deployment web sts/db":          "error: names alone, or KIND/NAME throughout",
		"sts/db":                         "error: not reachable",
	} {
		t.Run(args, func(t *testing.T) {
			s, err := selectWorkloads(strings.Fields(args), "shop", kinds, noMapper)
			if part, isError := strings.CutPrefix(want, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q", err, part)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range s.targets {
				got = append(got, target.String())
			}
			if len(got) == 0 && len(s.kinds) == 1 {
				got = []string{s.kinds[0].Lower()}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("selected %v, want %s", got, want)
			}
		})
	}
}

func TestInStepIsWhatExitCodeCounts(t *testing.T) {
	for verdict, want := range map[fleet.Verdict]bool{
		fleet.InStep: true, fleet.Unknown: true, fleet.Rolling: false, fleet.Split: false, fleet.Dormant: false,
		fleet.RolledBack: false, fleet.Waiting: false, fleet.Held: false, fleet.Unpinned: false,
	} {
		if got := inStep(fleet.Result{Verdict: verdict}); got != want {
			t.Errorf("%s: %v, want %v", verdict, got, want)
		}
	}
	if inStep(fleet.Result{Verdict: fleet.Unknown, Possibly: fleet.Dormant}) {
		t.Error("possibly dormant counts as in step")
	}
}
