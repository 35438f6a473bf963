package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// completionPatience is how long a person at a prompt waits for a cluster.
const completionPatience = 3 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeFlags offers values for the flags that all verbs share.
func (s *session) completeFlags(root *cobra.Command) {
	offer(root, "namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.ask(cmd.Context(), cluster.Namespaces), noFiles
	})
	offer(root, "tidemark-namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.ask(cmd.Context(), cluster.Namespaces), noFiles
	})
	offer(root, "context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.contexts(), noFiles
	})
	offer(root, "default-mode", fixed(string(stamp.Observe), string(stamp.Roll)))
	for _, free := range []string{"kind", "refresh-lag", "read-lag", "clock-skew"} {
		offer(root, free, fixed())
	}
}

// contexts are those of the kubeconfig; none where it cannot be read.
func (s *session) contexts() []string {
	config, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// completeContexts offers contexts for a list of them, behind those that it has already.
func (s *session) completeContexts(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	given := strings.Split(toComplete, ",")
	given = given[:len(given)-1]
	before := ""
	if len(given) > 0 {
		before = strings.Join(given, ",") + ","
	}
	var out []string
	for _, name := range without(s.contexts(), given) {
		out = append(out, before+name)
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// completeWorkloads offers KIND/NAME, or names after a kind.
func (s *session) completeWorkloads(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	kinds, err := s.allKinds()
	if err != nil {
		return nil, noFiles
	}
	namespace, err := s.namespace()
	if err != nil {
		return nil, noFiles
	}
	byKind := len(args) > 0 && !strings.Contains(args[0], "/")
	if byKind {
		k, err := cluster.FindKind(kinds, args[0], s.mapper)
		if err != nil {
			return nil, noFiles
		}
		kinds = []cluster.Kind{k}
	}
	offered := s.ask(cmd.Context(), func(ctx context.Context, c *cluster.Connection) []string {
		var out []string
		for _, t := range cluster.Names(ctx, c, kinds, namespace) {
			if byKind {
				out = append(out, t.Name)
			} else {
				out = append(out, t.String())
			}
		}
		return out
	})
	return without(offered, args), noFiles
}

// completePods offers the pods of the namespace.
func (s *session) completePods(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespace, err := s.namespace()
	if err != nil || len(args) > 0 {
		return nil, noFiles
	}
	return s.ask(cmd.Context(), func(ctx context.Context, c *cluster.Connection) []string {
		return cluster.PodNames(ctx, c, namespace)
	}), noFiles
}

// ask asks the cluster; whatever goes wrong, nothing is offered and nothing said. Not all that connects heeds a context, so when the
// time is over what still asks is left to itself: the program ends at once.
func (s *session) ask(ctx context.Context, question func(context.Context, *cluster.Connection) []string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	offered := make(chan []string, 1)
	go func() {
		c, err := s.connect()
		if err != nil {
			offered <- nil
			return
		}
		offered <- question(ctx, c)
	}()
	select {
	case out := <-offered:
		return out
	case <-ctx.Done():
		return nil
	}
}

// completeFormat offers the formats of --output.
func completeFormat(cmd *cobra.Command, formats []string) { offer(cmd, "output", fixed(formats...)) }

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func fixed(values ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return values, noFiles }
}

// offer sets the completion of a flag that exists; for one that does not, there is nothing to complete.
func offer(cmd *cobra.Command, flag string, with completer) {
	if cmd.Flag(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, with) // it fails only for flags that do not exist
	}
}

func without(offered, given []string) []string {
	have := map[string]bool{}
	for _, g := range given {
		have[g] = true
	}
	var out []string
	for _, o := range offered {
		if !have[o] {
			out = append(out, o)
		}
	}
	return out
}
