package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
)

// gcFlags are the flags of gc.
type gcFlags struct {
	*session
	retention     snapshot.Retention
	release       string
	dryRun        bool
	allNamespaces bool
	output        string
}

// gcOptions are what gc does.
type gcOptions struct {
	genericiooptions.IOStreams
	cleanup cleanup.Round
	// release is the Helm release whose left-overs are removed; "" for snapshots.
	release       string
	output        string
	withNamespace bool
}

func newGC(s *session, name string) *cobra.Command {
	flags := &gcFlags{session: s, retention: snapshot.Defaults()}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove copies of configuration that nothing needs any more",
		Long: fill(name, `
			Remove the snapshots of mode pin, or with --helm-release what a Helm release left in place, that
			nothing needs any more. The controller does the former by itself, with the same rules.

			A snapshot stays while anything uses it, by its pins or by name: a pod, the template of a workload
			(of a paused one too), a ReplicaSet or ControllerRevision, to which a rollback may go back, a Job,
			a CronJob, an Argo Rollout; of Secrets also a ServiceAccount or an Ingress. Name with --kind each
			kind of workload that the controller has by its --kind: a use by a kind that is not known is not
			seen. Of each source the newest --history stay in any case, unless the source is gone together with
			all that used it.

			It takes two runs to remove one. The first condemns it: it gets a mark with the time. A run that
			finds it still not needed when the mark has stood for --min-age deletes it. A use in between takes
			the mark away, and a snapshot younger than --min-age is never condemned. Everything is listed anew
			in each run; when one list fails, for lack of a right too, nothing is written. What somebody else
			writes meanwhile, and what is in a namespace that is paused or being deleted, waits for the next run.

			With --helm-release NAME it is about ConfigMaps and Secrets of that release that its chart made Helm
			keep (helm.sh/resource-policy: keep), under names that differ only by the revision number or hash at
			their end: "config-11", "config-12"; "config-v12"; "config-3f2a9c01". The newest --history of each
			such family stay (by number, hashes by age), what the release has deployed, and what anything uses
			as above. The others are deleted in one run: Helm makes one that it needs again. --min-age then
			counts from the creation, and is 0 unless given. While the release is being deployed nothing is done.

			What is done is listed, and with -o wide also what is kept, each with its reason; -o name lists only
			what was deleted. It needs the rights to list all of the above, and to patch and delete ConfigMaps
			and Secrets; where snapshots are protected, also the verb "retire" on snapshots.tidemark.dev.

			Exit status: 0, also when there was nothing to do or something was left for the next run; 2 on any
			error.`),
		Example: examples(name, `
			# What the next run would do in namespace shop, and why the rest is kept
			tidemark gc -n shop --dry-run -o wide

			# Everywhere, and keep more
			tidemark gc --all-namespaces --history 10

			# Copies that the chart of release app left behind
			tidemark gc -n shop --helm-release app --history 5`),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.release != "" && !cmd.Flags().Changed("min-age") {
				flags.retention.MinAge = 0
			}
			o, err := flags.toOptions()
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags.addFlags(cmd)
	return cmd
}

var gcFormats = []string{"wide", "json", "yaml", "name"}

func (f *gcFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.retention.History, "history", f.retention.History, "How many of each source stay although nothing uses them, the newest ones.")
	flags.DurationVar(&f.retention.MinAge, "min-age", f.retention.MinAge, "How old a snapshot is at least, and how long it has been condemned, when it is deleted.")
	flags.StringVar(&f.release, "helm-release", "", "Remove what this Helm release left in place, rather than snapshots.")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Only show what would be done.")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Clean up all namespaces.")
	flags.StringVarP(&f.output, "output", "o", "", "Output format: wide, json, yaml or name.")
	completeFormat(cmd, gcFormats)
	offer(cmd, "helm-release", fixed())
}

func (f *gcFlags) toOptions() (*gcOptions, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	kinds, err := f.allKinds()
	if err != nil {
		return nil, err
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	if f.allNamespaces {
		namespace = ""
	}
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	return &gcOptions{
		IOStreams: f.IOStreams, release: f.release, output: f.output, withNamespace: f.allNamespaces,
		cleanup: cleanup.Round{
			Client: c.Client, Now: c.Now, Kinds: kinds, Namespace: namespace, System: f.system, Secrets: true,
			Retention: f.retention, DryRun: f.dryRun,
		},
	}, nil
}

func (f *gcFlags) validate() error {
	if err := checkFormat(f.output, gcFormats...); err != nil {
		return err
	}
	r := f.retention
	if f.release != "" {
		r.MinAge = max(r.MinAge, snapshot.ShortestAge) // which a release has no need of
	}
	switch err := r.Validate(); {
	case r.History < 1:
		return usagef("--history: %d: want 1 or more", r.History)
	case err != nil:
		return usagef("--min-age: %v: want %v or more", r.MinAge, snapshot.ShortestAge)
	case f.retention.MinAge < 0:
		return usagef("--min-age: %v: want 0s or more", f.retention.MinAge)
	case f.release != "" && f.allNamespaces:
		return usagef("--all-namespaces does not go with --helm-release: a release is in one namespace")
	case f.release != "" && len(validation.IsDNS1123Subdomain(f.release)) > 0:
		return usagef("--helm-release: %q is no name of a release", f.release)
	}
	return nil
}

func (o *gcOptions) run(ctx context.Context) error {
	run := o.cleanup.Run
	if o.release != "" {
		run = func(ctx context.Context) (*cleanup.Outcome, error) { return o.cleanup.RunRelease(ctx, o.release) }
	}
	cleaned, err := run(ctx)
	if err != nil {
		return err
	}
	return errors.Join(o.print(cleaned), cleaned.Err())
}
