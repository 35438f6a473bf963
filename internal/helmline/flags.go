package helmline

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tidemark.dev/tidemark/internal/release"
)

// operations are the commands that write a release's record, by their names.
var operations = map[string]release.Operation{
	"install": release.Install, "upgrade": release.Upgrade, "rollback": release.Rollback, "uninstall": release.Uninstall,
}

var aliases = map[string]string{"del": "uninstall", "delete": "uninstall", "un": "uninstall"}

// readers are commands that change no release: those of Helm 3 and 4, then plugins that are widely used.
var readers = []string{
	"completion", "create", "dep", "dependency", "dependencies", "docs", "env", "fetch", "get", "help", "hist", "history", "inspect", "lint", "list", "ls",
	"package", "plugin", "pull", "push", "registry", "repo", "search", "show", "status", "template", "test", "verify", "version",
	"__complete", "__completeNoDesc",
	"diff", "unittest", "schema", "cm-push", "datree", "kubeconform",
}

// Flags of the four commands in Helm 3 and 4, apart from those that are read. Those with a value, and those without.
var (
	valued = []string{
		"set", "set-string", "set-file", "set-json", "set-literal", "values/f", "version", "keyring", "repo", "username", "password",
		"cert-file", "key-file", "ca-file", "post-renderer", "post-renderer-args", "description", "output/o", "labels/l",
		"cascade", "registry-config", "repository-config", "repository-cache", "content-cache", "burst-limit", "qps",
		"color", "colour",
	}
	switches = []string{
		"debug", "create-namespace", "install/i", "devel", "hide-secret", "force", "force-replace", "force-conflicts", "no-hooks",
		"disable-openapi-validation", "skip-crds", "reset-values", "reuse-values", "reset-then-reuse-values", "wait-for-jobs",
		"rollback-on-failure", "atomic", "cleanup-on-fail", "render-subchart-notes", "hide-notes", "skip-schema-validation",
		"dependency-update", "enable-dns", "take-ownership", "verify", "insecure-skip-tls-verify", "plain-http", "pass-credentials",
		"replace", "ignore-not-found", "keep-history", "recreate-pods", "no-update",
	}
)

// operationTimeout is Helm's default of --timeout.
const operationTimeout = 5 * time.Minute

// DefaultHistoryMax is Helm's default of --history-max.
const DefaultHistoryMax = 10

// HistoryMax is how many revisions Helm leaves where --history-max is not given, by its variable HELM_MAX_HISTORY: 0 or less for
// all. Helm takes what is no number for none.
func HistoryMax(getenv func(string) string) int {
	if n, err := strconv.Atoi(getenv("HELM_MAX_HISTORY")); err == nil {
		return n
	}
	return DefaultHistoryMax
}

func newFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("helm", pflag.ContinueOnError)
	flags.Usage = func() {}
	return flags
}

// globals are the flags that every command of helm's has, with their variables.
func (p *parser) globals() {
	c, f := &p.command.Cluster, p.flags
	for _, g := range []struct {
		to                    *string
		name, short, variable string
	}{
		{&c.Namespace, "namespace", "n", "HELM_NAMESPACE"},
		{&c.Kubeconfig, "kubeconfig", "", ""}, // without the flag, KUBECONFIG is read as a list by who connects
		{&c.Context, "kube-context", "", "HELM_KUBECONTEXT"},
		{&c.Server, "kube-apiserver", "", "HELM_KUBEAPISERVER"},
		{&c.CAFile, "kube-ca-file", "", "HELM_KUBECAFILE"},
		{&c.TLSServerName, "kube-tls-server-name", "", "HELM_KUBETLS_SERVER_NAME"},
		{&c.Token, "kube-token", "", "HELM_KUBETOKEN"},
		{&c.AsUser, "kube-as-user", "", "HELM_KUBEASUSER"},
	} {
		if *g.to == "" && g.variable != "" {
			*g.to = p.getenv(g.variable)
		}
		f.StringVarP(g.to, g.name, g.short, *g.to, "")
	}
	if groups := strings.Trim(p.getenv("HELM_KUBEASGROUPS"), ", "); c.AsGroups == nil && groups != "" {
		c.AsGroups = strings.Split(groups, ",")
	}
	f.StringArrayVar(&c.AsGroups, "kube-as-group", c.AsGroups, "")
	if insecure, err := strconv.ParseBool(p.getenv("HELM_KUBEINSECURE_SKIP_TLS_VERIFY")); err == nil && insecure {
		c.InsecureSkipTLSVerify = true
	}
	f.BoolVar(&c.InsecureSkipTLSVerify, "kube-insecure-skip-tls-verify", c.InsecureSkipTLSVerify, "")
	f.BoolVarP(&p.off, "help", "h", false, "")
	for _, name := range []string{"debug", "registry-config", "repository-config", "repository-cache", "content-cache", "burst-limit", "qps", "color", "colour"} {
		add(f, name, slices.Contains(switches, name))
	}
}

// own are the flags of the commands that change a release.
func (p *parser) own(verb string) {
	for _, name := range valued {
		add(p.flags, name, false)
	}
	for _, name := range switches {
		add(p.flags, name, true)
	}
	p.flags.DurationVar(&p.command.Timeout, "timeout", operationTimeout, "")
	p.flags.IntVar(&p.command.HistoryMax, "history-max", HistoryMax(p.getenv), "")
	p.flags.StringVar(&p.dryRun, "dry-run", "", "")
	p.flags.Lookup("dry-run").NoOptDefVal = "client"
	p.flags.String("wait", "", "")
	p.flags.Lookup("wait").NoOptDefVal = "watcher"
	switch verb {
	case "install":
		p.flags.BoolVarP(&p.named, "generate-name", "g", false, "")
		p.flags.VarPF(presence{&p.named}, "name-template", "", "")
		add(p.flags, "server-side", true)
	default:
		add(p.flags, "server-side", false)
	}
}

// presence is a flag of which it only counts that it has a value.
type presence struct{ to *bool }

func (p presence) String() string     { return "" }
func (p presence) Type() string       { return "string" }
func (p presence) Set(v string) error { *p.to = *p.to || v != ""; return nil }

// add adds a flag that is only passed over, written as name or name/short, unless it is there.
func add(flags *pflag.FlagSet, name string, isSwitch bool) {
	name, short, _ := strings.Cut(name, "/")
	switch {
	case flags.Lookup(name) != nil:
	case isSwitch:
		flags.BoolP(name, short, false, "")
	default:
		flags.StringP(name, short, "", "")
	}
}

func (p *parser) parse(args []string) error { return parseKnown(p.flags, args) }

// parseKnown parses. A flag that is not known is passed over where its value, if any, stands in the same argument; otherwise
// nothing tells whether the next argument is its value or the release. What is wrong with the value of a known flag is for helm
// to say, and no argument is repeated: it may be a password.
func parseKnown(flags *pflag.FlagSet, args []string) error {
	for {
		err := flags.Parse(args)
		var unknown *pflag.NotExistError
		switch {
		case err == nil || errors.Is(err, pflag.ErrHelp):
			return nil
		case !errors.As(err, &unknown):
			return &UnclearError{"one of helm's flags has a value that cannot be read"}
		}
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return &UnclearError{"helm's flag -" + name + " is not known here"}
		}
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--"+name+"=") }) {
			return &UnclearError{"helm's flag --" + name + " is not known here"}
		}
		flags.String(name, "", "")
	}
}
