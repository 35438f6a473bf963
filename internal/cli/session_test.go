package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// underHelm runs the command line as a plugin of helm, with its variables, where no cluster answers.
func underHelm(t *testing.T, variables map[string]string, args ...string) (code int, errOut string) {
	t.Helper()
	kubeconfig := kubeconfigOf(t, `{apiVersion: v1, kind: Config, clusters: [{name: down, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: down, context: {cluster: down}}], current-context: down}`)
	var o, e bytes.Buffer
	code = Run(t.Context(), Config{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &o, ErrOut: &e}, Clock: clocktesting.NewFakeClock(now),
		HelmPlugin: true, Getenv: func(name string) string { return variables[name] },
	}, append(args, "--kubeconfig", kubeconfig))
	return code, e.String()
}

func kubeconfigOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatHelmSetsInAnyCaseIsNoChoice(t *testing.T) {
	variables := map[string]string{"HELM_NAMESPACE": "shop", "HELM_KUBECONTEXT": "down"}
	for args, want := range map[string]string{
		"pause --all":                           "pause everything, by namespace tidemark-system: ",
		"resume --all":                          "resume everything, by namespace tidemark-system: ",
		"pause":                                 "name what to pause: KIND/NAME, or --all",
		"resume":                                "name what to resume: KIND/NAME, or --all",
		"pause -nshop":                          "pause namespace shop: ",
		"pause --all -nshop":                    "--all does not go with --namespace",
		"pause deployment/web":                  "pause deployment/web in namespace shop: ",
		"status --contexts down":                "context down: ",
		"status --contexts down --context down": "--context does not go with --contexts",
	} {
		t.Run(args, func(t *testing.T) {
			code, errOut := underHelm(t, variables, strings.Fields(args)...)
			if code != exitError || !strings.Contains(errOut, want) {
				t.Errorf("exit status %d, said %q, want %q in it", code, errOut, want)
			}
		})
	}
}

func TestAllOfHelmsFlagsAboutTheClusterAreTaken(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	s := &session{flags: newFlags(), Config: Config{Getenv: func(name string) string {
		return map[string]string{
			"HELM_KUBEAPISERVER": "https://127.0.0.1:1", "HELM_KUBEASUSER": "ann", "HELM_KUBEASGROUPS": "deployers,readers",
			"HELM_KUBEINSECURE_SKIP_TLS_VERIFY": "true",
		}[name]
	}}}
	s.takeHelms()
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || config.Impersonate.UserName != "ann" || strings.Join(config.Impersonate.Groups, " ") != "deployers readers" {
		t.Errorf("it goes to %s as %+v", config.Host, config.Impersonate)
	}
	if !config.Insecure {
		t.Error("it verifies the certificate")
	}
}

func TestAnotherContextHasAllOtherFlags(t *testing.T) {
	s := &session{flags: newFlags()}
	other := s.in("east")
	if *other.flags.Context != "east" || *s.flags.Context != "" {
		t.Errorf("it looks at %q, and the session it is made of at %q", *other.flags.Context, *s.flags.Context)
	}
	own, shared := reflect.ValueOf(other.flags).Elem(), reflect.ValueOf(s.flags).Elem()
	for i := range own.NumField() {
		f := own.Type().Field(i)
		if !f.IsExported() || f.Name == "Context" {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Pointer:
			if own.Field(i).Pointer() != shared.Field(i).Pointer() {
				t.Errorf("%s is not the one that was given", f.Name)
			}
		case reflect.Func:
		default:
			t.Errorf("%s is no pointer, so another context does not have it", f.Name)
		}
	}
}
