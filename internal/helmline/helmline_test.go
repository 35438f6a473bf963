package helmline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/release"
)

const marker = "S3cretMarker"

func none(string) string { return "" }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if key, value, _ := strings.Cut(p, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestCommandLinesAreReadAsHelmReadsThem(t *testing.T) {
	for line, want := range map[string]string{ // operation release namespace context
		"helm upgrade -i web ./chart -n prod --kube-context x --set a=b":                    "upgrade web prod x",
		"helm -n prod upgrade web ./chart":                                                  "upgrade web prod ",
		"helm --namespace=prod --kube-context=x upgrade --install web ./chart":              "upgrade web prod x",
		"helm upgrade -inprod web ./chart":                                                  "upgrade web prod ",
		"helm upgrade -fvalues.yaml -f other.yaml --set-string a=b --wait web ./chart":      "upgrade web  ",
		"helm upgrade --wait=legacy --timeout 10m --atomic web ./chart --version 1.2":       "upgrade web  ",
		"helm upgrade --values v.yaml --server-side false web ./chart":                      "upgrade web  ",
		"helm upgrade web ./chart -- -n prod":                                               "upgrade web  ",
		"helm upgrade web ./chart -n dev -n prod":                                           "upgrade web prod ",
		"helm upgrade web ./chart --post-renderer ./r --post-renderer-args -x --labels a=b": "upgrade web  ",
		"helm upgrade web ./chart --dry-run=none":                                           "upgrade web  ",
		"helm upgrade web ./chart --dry-run=false":                                          "upgrade web  ",
		"helm upgrade --newer=thing web ./chart":                                            "upgrade web  ",
		"/usr/local/bin/helm3 install web ./chart --create-namespace":                       "install web  ",
		"helm install --server-side web ./chart":                                            "install web  ",
		"helm install ./chart --generate-name":                                              "install   ",
		"helm install -g ./chart":                                                           "install   ",
		"helm install ./chart --name-template {{.Name}}":                                    "install   ",
		"helm-v4.3.1 rollback web 3 --wait":                                                 "rollback web  ",
		"helm --debug rollback -n prod web":                                                 "rollback web prod ",
		"helm uninstall web --keep-history --cascade foreground":                            "uninstall web  ",
		"helm delete web": "uninstall web  ",
		"helm secrets upgrade web ./chart -f secrets.yaml":                   "upgrade web  ",
		"helm secrets --backend vals -q upgrade -i web ./chart":              "upgrade web  ",
		"helm -n prod secrets --evaluate-templates=true upgrade web ./chart": "upgrade web prod ",
		"helm secrets decrypt f.yaml":                                        "   ",
		"helm upgrade web ./chart --dry-run":                                 "   ",
		"helm upgrade web ./chart --dry-run=server":                          "   ",
		"helm upgrade --dry-run=true web ./chart":                            "   ",
		"helm uninstall web --dry-run":                                       "   ",
		"helm upgrade --help":                                                "   ",
		"helm upgrade web -h":                                                "   ",
		"helm upgrade":                                                       "   ",
		"helm":                                                               "   ",
		"helm -n prod list":                                                  "  prod ",
		"helm template web ./chart":                                          "   ",
		"helm lint ./chart":                                                  "   ",
		"helm diff upgrade web ./chart":                                      "   ",
		"helm test web":                                                      "   ",
	} {
		c, err := Read(strings.Fields(line), none)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := strings.Join([]string{string(c.Operation), c.Release, c.Cluster.Namespace, c.Cluster.Context}, " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestWhatIsNotClearIsNotGuessed(t *testing.T) {
	for line, want := range map[string]string{
		"helm upgrade --newer web " + marker:              "flag --newer is not known",
		"helm upgrade -Z" + marker + " web ./chart":       "flag -Z is not known",
		"helm --newer upgrade web " + marker:              "flag --newer is not known",
		"helm frobnicate web " + marker:                   `"frobnicate"`,
		"helm upgrade web ./c --timeout " + marker:        "a value that cannot be read",
		"helm upgrade web ./c --history-max " + marker:    "a value that cannot be read",
		"helm uninstall web db " + marker:                 "one by one",
		"helm secrets --newer upgrade web ./c " + marker:  "flag --newer is not known",
		"helm upgrade --newer --set p=" + marker + " web": "flag --newer is not known",
	} {
		_, err := Read(strings.Fields(line), none)
		var unclear *UnclearError
		if !errors.As(err, &unclear) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), marker) {
			t.Errorf("%s: %v, want one with %q", line, err, want)
		}
	}
}

func TestTheClusterIsThatOfHelmsFlagsAndVariables(t *testing.T) {
	variables := env("HELM_NAMESPACE=dev", "HELM_KUBECONTEXT=one", "HELM_KUBEAPISERVER=https://a", "HELM_KUBECAFILE=ca", "HELM_KUBETLS_SERVER_NAME=tls",
		"HELM_KUBETOKEN=token", "HELM_KUBEASUSER=ann", "HELM_KUBEASGROUPS=a,b", "HELM_KUBEINSECURE_SKIP_TLS_VERIFY=true", "HELM_DRIVER=configmap")
	c, err := Read(strings.Fields("helm upgrade web ./chart"), variables)
	want := Cluster{
		Namespace: "dev", Context: "one", Server: "https://a", CAFile: "ca", TLSServerName: "tls", Token: "token", AsUser: "ann",
		AsGroups: []string{"a", "b"}, InsecureSkipTLSVerify: true,
	}
	if diff := cmp.Diff(want, c.Cluster); err != nil || diff != "" || c.Driver != ConfigMaps || c.Timeout != 5*time.Minute {
		t.Errorf("%v %s, driver %s, timeout %s", err, diff, c.Driver, c.Timeout)
	}
	c, err = Read(strings.Fields("helm --kube-apiserver https://b -n prod upgrade web ./chart --kube-context two --kubeconfig k --kube-ca-file cb "+
		"--kube-tls-server-name s --kube-token t --kube-as-user bob --kube-as-group c --kube-insecure-skip-tls-verify=false --timeout 90s"), variables)
	want = Cluster{
		Namespace: "prod", Context: "two", Kubeconfig: "k", Server: "https://b", CAFile: "cb", TLSServerName: "s", Token: "t", AsUser: "bob", AsGroups: []string{"c"},
	}
	if diff := cmp.Diff(want, c.Cluster); err != nil || diff != "" || c.Timeout != 90*time.Second {
		t.Errorf("%v %s, timeout %s", err, diff, c.Timeout)
	}
	for name, want := range map[string]Driver{"": Secrets, "secret": Secrets, "secrets": Secrets, "configmaps": ConfigMaps, "sql": SQL} {
		if c, _ := Read(strings.Fields("helm upgrade web ./chart"), env("HELM_DRIVER="+name)); c.Driver != want || c.Operation != release.Upgrade {
			t.Errorf("driver %q: %s, %s", name, c.Driver, c.Operation)
		}
	}
	if c, _ := Read(strings.Fields("helm upgrade web ./chart"), env("HELM_DRIVER=memory")); c.Operation != release.NoOperation {
		t.Error("a release in memory is guarded")
	}
}

func TestTheRecordIsLabelledWhereHelmHasAFlagForIt(t *testing.T) {
	for line, want := range map[string]string{
		"helm upgrade web ./chart --labels a=b": "helm upgrade --labels=k=v web ./chart --labels a=b",
		"helm -n prod install web ./chart":      "helm -n prod install --labels=k=v web ./chart",
		"helm secrets -q upgrade web ./chart":   "helm secrets -q upgrade --labels=k=v web ./chart",
		"helm rollback web 2":                   "helm rollback web 2",
		"helm uninstall web":                    "helm uninstall web",
		"helm upgrade web ./chart --dry-run":    "helm upgrade web ./chart --dry-run",
	} {
		args := strings.Fields(line)
		c, err := Read(args, none)
		if got := strings.Join(c.Labels("k", "v"), " "); err != nil || got != want || !slices.Equal(args, strings.Fields(line)) {
			t.Errorf("%s: %v %s, want %s", line, err, got, want)
		}
	}
}

func TestHelmIsKnownByItsProgram(t *testing.T) {
	for program, want := range map[string]bool{
		"helm": true, "/opt/helm": true, "helm3": true, "helm4": true, "helm-v3.19.0": true, `C:\bin\helm.exe`: true, "helmfile": false, "kubectl": false, "helm/run": false, "": false,
	} {
		if Is([]string{program}) != want {
			t.Errorf("%q: %t", program, !want)
		}
	}
	if Is(nil) {
		t.Error("nothing is helm")
	}
}

func TestAPluginThatHandsOnIsToldFromHelm(t *testing.T) {
	for line, want := range map[string]bool{
		"helm secrets upgrade web ./chart": true, "helm -n prod secrets -q rollback web": true, "helm upgrade web ./chart": false, "helm upgrade secrets ./chart": false,
	} {
		if c, err := Read(strings.Fields(line), none); err != nil || c.Handed != want {
			t.Errorf("%s: %t, %v", line, c.Handed, err)
		}
	}
}

func TestTheHistoryIsLimitedAsHelmDoes(t *testing.T) {
	for name, c := range map[string]struct {
		variable, line string
		want           int
	}{
		"by default":                    {"", "helm upgrade web ./chart", 10},
		"by the flag":                   {"", "helm upgrade web ./chart --history-max 3", 3},
		"by the variable":               {"HELM_MAX_HISTORY=25", "helm upgrade web ./chart", 25},
		"by the flag over the variable": {"HELM_MAX_HISTORY=25", "helm rollback web 2 --history-max=0", 0},
		"by no number":                  {"HELM_MAX_HISTORY=all", "helm uninstall web", 10},
	} {
		got, err := Read(strings.Fields(c.line), env(c.variable))
		if err != nil || got.HistoryMax != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got.HistoryMax, err, c.want)
		}
	}
}
