// Package helmline understands the command lines of helm.
package helmline

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tidemark.dev/tidemark/internal/release"
)

// Command is what a command line of helm does.
type Command struct {
	// Operation on the release; [release.NoOperation] for a command that changes none: one that reads, renders or only tries.
	Operation release.Operation
	// Release is its name; "" where Helm makes one up.
	Release string
	// Verb is helm's word for the command, such as "upgrade".
	Verb string
	// Cluster is where.
	Cluster Cluster
	// Driver is where Helm keeps its records.
	Driver Driver
	// Timeout is what Helm allows each of its steps, of which one command has several.
	Timeout time.Duration
	// HistoryMax is how many revisions Helm leaves, 0 or less for all.
	HistoryMax int
	// Handed says that a plugin of helm's hands the command on to another helm, which is not the process that is started.
	Handed bool
	// labelled is after which of the arguments labels may be given; 0 where the command has none.
	labelled int
	args     []string
}

// Cluster is which cluster and namespace the command works on, by helm's own flags and variables; what is empty is as in the
// kubeconfig.
type Cluster struct {
	Namespace, Kubeconfig, Context string
	Server, CAFile, TLSServerName  string
	Token, AsUser                  string
	AsGroups                       []string
	InsecureSkipTLSVerify          bool
}

// Driver is a storage of Helm's.
type Driver string

// The drivers.
const (
	Secrets    Driver = "secrets"
	ConfigMaps Driver = "configmaps"
	SQL        Driver = "sql"
	Memory     Driver = "memory"
)

// UnclearError says that the guard cannot tell what a command line of helm does. It holds no argument but a flag's name.
type UnclearError struct{ What string }

func (e *UnclearError) Error() string { return e.What }

// program is how helm's program is called: helm, helm3, helm-v4.3.1, helm.exe.
var program = regexp.MustCompile(`^helm(-?v?[0-9][0-9.]*)?(\.exe)?$`)

// Is reports whether a command is helm's.
func Is(args []string) bool {
	return len(args) > 0 && program.MatchString(path.Base(strings.ReplaceAll(args[0], `\`, "/")))
}

// Labels gives the command line with a label for the record that it writes. A command without labels stays as it is.
func (c Command) Labels(key, value string) []string {
	if c.labelled == 0 {
		return c.args
	}
	return slices.Insert(slices.Clone(c.args), c.labelled, "--labels="+key+"="+value)
}

// Labelled reports whether the record that the command writes can be given a label.
func (c Command) Labelled() bool { return c.labelled > 0 }

// Read reads a command line of helm's, with helm's own variables. An error is an [UnclearError]: then the command may change a
// release.
func Read(args []string, getenv func(string) string) (Command, error) {
	c := Command{args: args, Driver: DriverOf(getenv)}
	p := &parser{command: &c, getenv: getenv}
	position, err := p.verb(args, 1)
	if err != nil || position == 0 {
		return c, err
	}
	return c, p.read(position)
}

// DriverOf is the storage that helm's variable names, or the default of Helm's.
func DriverOf(getenv func(string) string) Driver {
	switch strings.ToLower(getenv("HELM_DRIVER")) {
	case "configmap", "configmaps":
		return ConfigMaps
	case "sql":
		return SQL
	case "memory":
		return Memory
	}
	return Secrets
}

// parser reads one command line.
type parser struct {
	command *Command
	getenv  func(string) string
	flags   *pflag.FlagSet
	dryRun  string
	off     bool // help was asked for, or a trial
	named   bool // Helm makes the name up
}

// verb finds the word that says what helm is to do, behind flags of helm itself or of a plugin that hands on to helm. It gives
// the position behind it; 0 where helm changes no release.
func (p *parser) verb(args []string, from int) (int, error) {
	p.flags = newFlags()
	p.globals()
	p.flags.SetInterspersed(false)
	if err := p.parse(args[from:]); err != nil {
		return 0, err
	}
	at := len(args) - p.flags.NArg()
	if at >= len(args) || p.off {
		return 0, nil
	}
	word := args[at]
	switch {
	case slices.Contains(readers, word):
		return 0, nil
	case word == "secrets": // decrypts value files, and hands the rest to helm
		p.command.Handed = true
		return p.secrets(args, at+1)
	}
	if canonical, has := aliases[word]; has {
		word = canonical
	}
	if _, has := operations[word]; !has {
		return 0, &UnclearError{"what helm's plugin or command " + strconv.Quote(word) + " deploys"}
	}
	p.command.Verb = word
	return at + 1, nil
}

// read reads what follows the verb.
func (p *parser) read(position int) error {
	c := p.command
	p.flags = newFlags()
	p.globals()
	p.own(c.Verb)
	if err := p.parse(c.args[position:]); err != nil {
		return err
	}
	if p.off || dry(p.flags, p.dryRun) || c.Driver == Memory {
		return nil
	}
	c.Operation = operations[c.Verb]
	names := p.flags.Args()
	if c.Operation == release.Install || c.Operation == release.Upgrade {
		c.labelled = position
	}
	switch {
	case p.named:
	case len(names) == 0:
		c.Operation = release.NoOperation // helm itself will say what is missing
	case c.Operation == release.Uninstall && len(names) > 1:
		return &UnclearError{"which one of several releases to guard: uninstall them one by one"}
	default:
		c.Release = names[0]
	}
	return nil
}

// dry reports whether the command only tries. The flag's values are those of Helm 3 and 4; without one it is a trial.
func dry(flags *pflag.FlagSet, value string) bool {
	if !flags.Changed("dry-run") {
		return false
	}
	isTrue, err := strconv.ParseBool(value)
	return value != "none" && (err != nil || isTrue)
}

// secrets passes over the flags of the plugin that decrypts values.
func (p *parser) secrets(args []string, from int) (int, error) {
	inner := newFlags()
	inner.SetInterspersed(false)
	for _, name := range []string{"ignore-missing-values", "evaluate-templates", "evaluate-templates-decode-secrets", "decrypt-secrets-in-tmp-dir", "quiet/q"} {
		add(inner, name, true)
	}
	inner.StringP("backend", "b", "", "")
	inner.StringP("args", "a", "", "")
	if err := parseKnown(inner, args[from:]); err != nil {
		return 0, err
	}
	rest := len(args) - inner.NArg()
	if rest < len(args) && slices.Contains([]string{"encrypt", "decrypt", "edit", "patch"}, args[rest]) {
		return 0, nil
	}
	return p.verb(args, rest)
}
