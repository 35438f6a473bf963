package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/report"
)

// checkFlags are the flags of check.
type checkFlags struct {
	*session
	files     []string
	kustomize string
	command   string
	from, to  string
	against   []string
	schemas   []string
	rules     []string
	mode      string
	strict    bool
	listRules bool
	output    string
}

// checkOptions are what check does.
type checkOptions struct {
	genericiooptions.IOStreams
	checkInput

	severities map[check.RuleID]check.Severity
	mode       string
	now        time.Time
	strict     bool
	output     report.Format
	version    string
}

const checkHelp = `
	Check rendered manifests, before they are applied, for configuration that pods could not read: those
	of the release before, which run on and are gone back to, as well as those of the new one. It needs
	no cluster, and changes nothing in one.

	What is checked are files, directories and the standard input (-f), a kustomization (-k), or what a
	command writes (--render "helm template ."). It is compared with the release before, if one is named:
	manifests (--against, which may be repeated), another revision of the Git repository of the working
	directory, rendered the same way (--from, with --to for another one than the working tree), or the
	cluster (--against live): each revision that runs, a forgotten canary too, and each that a rollback
	can reach, of the workloads that are given and of those that use a given ConfigMap or Secret. A
	pinned revision reads its own copies; of others what is applied counts. What may not be read is
	unknown. Manifests that name no namespace are of that of -n, or of the current context.

	Configuration is compared by settings: the keys of ConfigMaps and Secrets, and what is inside the
	YAML, JSON, TOML, INI, dotenv and Java properties that keys hold. What a program reads of them is
	known where a template names keys; else the annotation tidemark.dev/reads says it, or a JSON Schema:
	the annotation tidemark.dev/config-schema, or --schema. Where nothing says it, it is "possible".
	A schema in a file judges what is checked and, with --from, each revision by its own.

	Findings are warnings unless --rule makes them something else. One is excused in place, on a
	workload or config object:

	    tidemark.dev/check-excuse: "rename-in-one-step until 2026-12-31: deployed by hand"

	and in a CI workflow by the same text in a comment. --list-rules lists the rules; with -o wide, with
	when each finds something and how to mend it.

	No value of a Secret is shown, nor one that looks like a credential.

	Exit status: 0, 1 with --strict when there are findings that are not excused, 2 on any error.`

func newCheck(s *session, name string) *cobra.Command {
	flags := &checkFlags{session: s}
	cmd := &cobra.Command{
		Use:   "check (-f FILE | -k DIR | --render COMMAND) [--against FILE | --from REV [--to REV]]",
		Short: "Say before a change what it would break",
		Long:  fill(name, checkHelp),
		Example: examples(name, `
			# What a branch would break
			tidemark check -k deploy/production --from origin/main

			# A chart, at two revisions, for GitHub's code scanning
			tidemark check --render "helm template web ./chart" --from v1.4.0 --to HEAD -o sarif > check.sarif

			# Rendered manifests against those of the release before; findings fail the build
			helm template web ./chart | tidemark check -f - --against released.yaml --strict

			# Against what runs, and what a rollback could bring back
			helm template web ./chart | tidemark check -f - --against live -n shop

			# What is wrong in itself, without a release before
			tidemark check -f manifests/ -f .github/workflows/

			# Other severities
			tidemark check -f out/ --rule rename-in-one-step=error --rule env-name-collision=off`),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.listRules {
				return flags.printRules()
			}
			o, err := flags.toOptions()
			if err != nil {
				return err
			}
			return plain(o.run(cmd.Context()))
		},
	}
	flags.addFlags(cmd)
	return cmd
}

func (f *checkFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "File or directory of rendered manifests or CI workflows; - for the standard input. May be repeated.")
	flags.VarP(single{&f.kustomize}, "kustomize", "k", "Directory with a kustomization.")
	flags.Var(single{&f.command}, "render", "Command that writes manifests, run by the shell.")
	flags.StringArrayVar(&f.against, "against", nil, "File, directory or kustomization of a release before, or live for what the cluster has. May be repeated.")
	flags.Var(single{&f.from}, "from", "Git revision of the release before.")
	flags.Var(single{&f.to}, "to", "Git revision that is checked, rather than the working tree.")
	flags.StringArrayVar(&f.schemas, "schema", nil,
		"JSON Schema of a workload's configuration as KIND/NAME=FILE, or a directory with files KIND-NAME.json. May be repeated.")
	flags.StringVar(&f.mode, "mode", "", "Mode of workloads that say none: observe, roll or pin. Without it nothing is concluded from the mode.")
	flags.StringArrayVar(&f.rules, "rule", nil, "Severity of a rule as RULE=error, RULE=warning or RULE=off. May be repeated.")
	flags.BoolVar(&f.strict, "strict", false, "Exit with 1 when there are findings.")
	flags.BoolVar(&f.listRules, "list-rules", false, "List the rules.")
	flags.StringVarP(&f.output, "output", "o", "", "Output format: wide, json, sarif, github or gitlab.")
	completeFormat(cmd, report.Formats())
	offer(cmd, "mode", fixed("observe", "roll", "pin"))
	offer(cmd, "rule", fixed(ruleSettings()...))
	offer(cmd, "render", fixed())
}

// ruleSettings are the values that --rule may have.
func ruleSettings() []string {
	var out []string
	for _, r := range check.Rules() {
		for _, s := range []check.Severity{check.Error, check.Warning, check.Off} {
			out = append(out, string(r.ID)+"="+string(s))
		}
	}
	return out
}

func (f *checkFlags) toOptions() (*checkOptions, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	severities, err := parseSeverities(f.rules)
	if err != nil {
		return nil, err
	}
	input, err := f.input()
	return &checkOptions{
		IOStreams: f.IOStreams, severities: severities, mode: f.mode, now: f.Clock.Now(), strict: f.strict,
		output: report.Format(f.output), version: f.Build.Version, checkInput: input,
	}, err
}

// input is what the flags name to be read.
func (f *checkFlags) input() (checkInput, error) {
	kinds, err := f.allKinds()
	if err != nil {
		return checkInput{}, err
	}
	mode, err := f.session.mode()
	if err != nil {
		return checkInput{}, err
	}
	i := checkInput{
		source: render.Source{Files: f.files, Kustomize: f.kustomize, Command: f.command, In: f.In, Err: f.ErrOut},
		from:   f.from, to: f.to, against: f.against, schemas: f.schemas, kinds: manifestKinds(kinds),
		connect: f.connect, clusterKinds: kinds, defaultMode: mode,
	}
	switch {
	case f.namespaceGiven():
		i.namespace = *f.flags.Namespace
	case i.againstLive():
		i.namespace, err = f.namespace()
	}
	return i, err
}

func (f *checkFlags) validate() error {
	if err := checkFormat(f.output, report.Formats()...); err != nil {
		return err
	}
	given := 0
	for _, is := range []bool{len(f.files) > 0, f.kustomize != "", f.command != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return usagef("name what to check: -f FILE, -k DIR or --render COMMAND")
	case given > 1:
		return usagef("-f, -k and --render do not go together")
	case f.from != "" && len(f.against) > 0:
		return usagef("--from and --against do not go together: each names the release before")
	case f.to != "" && f.from == "":
		return usagef("--to needs --from, the revision to compare with")
	case f.from != "" && slices.Contains(f.files, render.Stdin):
		return usagef("-f - does not go with --from: the standard input is of no revision")
	case f.mode != "" && !slices.Contains([]string{"observe", "roll", "pin"}, f.mode):
		return usagef("--mode: %q is no mode: write observe, roll or pin", f.mode)
	}
	if err := checkNames(append(slices.Clone(f.files), f.against...)); err != nil {
		return err
	}
	return checkSchemas(f.schemas)
}

// checkNames holds that each file has a name, and that the standard input is read once: it would be empty then.
func checkNames(files []string) error {
	inputs := 0
	for _, file := range files {
		switch file {
		case "":
			return usagef("-f and --against are names, and one is empty")
		case render.Stdin:
			inputs++
		}
	}
	if inputs > 1 {
		return usagef("the standard input can be read once")
	}
	return nil
}

// checkSchemas holds that a directory of schemas is one: where a file is not in it, nothing is amiss.
func checkSchemas(flags []string) error {
	for _, flag := range flags {
		if strings.Contains(flag, "=") {
			continue
		}
		if info, err := os.Stat(flag); err != nil || !info.IsDir() {
			return usagef("--schema: %q is no directory: write KIND/NAME=FILE, or a directory with files KIND-NAME.json", flag)
		}
	}
	return nil
}

func parseSeverities(settings []string) (map[check.RuleID]check.Severity, error) {
	out := map[check.RuleID]check.Severity{}
	for _, text := range settings {
		id, severity, _ := strings.Cut(text, "=")
		if _, known := check.RuleOf(check.RuleID(id)); !known {
			return nil, usagef("--rule: there is no rule %q: see --list-rules", id)
		}
		switch s := check.Severity(severity); s {
		case check.Error, check.Warning, check.Off:
			out[check.RuleID(id)] = s
		default:
			return nil, usagef("--rule: %q is no severity: write %s=error, warning or off", severity, id)
		}
	}
	return out, nil
}

// manifestKinds are the kinds of workload that are known, with those that --kind adds.
func manifestKinds(all []cluster.Kind) []manifest.Kind {
	kinds := manifest.Kinds()
	for _, k := range all {
		if !slices.ContainsFunc(kinds, func(m manifest.Kind) bool { return m.Group == k.Group && m.Kind == k.GroupVersionKind.Kind }) {
			kinds = append(kinds, manifest.Kind{Group: k.Group, Kind: k.GroupVersionKind.Kind, TemplatePath: k.TemplatePath})
		}
	}
	return kinds
}

// errFindings ends a run with findings that the caller asked to have in the exit status; it is not reported.
var errFindings = errors.New("there are findings")

// plain is an error without the control characters that names of files may have.
func plain(err error) error {
	if err == nil || report.Plain(err.Error()) == err.Error() {
		return err
	}
	return plainError{err}
}

type plainError struct{ error }

func (e plainError) Error() string { return report.Plain(e.error.Error()) }

func (e plainError) Unwrap() error { return e.error }

func (o *checkOptions) run(ctx context.Context) error {
	in, err := o.read(ctx)
	if err != nil {
		return err
	}
	result := check.Run(check.Input{Before: in.before, After: in.after, Mode: o.mode, Modes: in.modes, Severities: o.severities, Now: o.now})
	r := report.Report{Result: result, Before: o.releases(in.before), After: in.after.Name, Version: o.version}
	if o.output != report.Text && o.output != report.Wide {
		r.Locate = newLocator(o.source.Command).locate // people are where they are, machines at the top of the repository
	}
	if o.output != report.JSON {
		for _, remark := range result.Remarks {
			fmt.Fprintln(o.ErrOut, "remark:", report.Plain(remark))
		}
	}
	if err := r.Write(o.Out, o.output); err != nil {
		return err
	}
	if o.strict && len(r.Counting()) > 0 {
		return errFindings
	}
	return nil
}
