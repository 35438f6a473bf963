package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// view is a cluster to look at.
type view struct {
	// context is its name in the kubeconfig where several clusters were asked for; else "".
	context string
	look    func(context.Context) (*cluster.Sight, error)
}

// seen is what was seen of a cluster.
type seen struct {
	view
	sight  *cluster.Sight // nil with an error
	fleets []judged
	err    error
}

// addContexts adds a view for each context. One that cannot be reached fails when it is looked at; a mistake in the
// arguments fails at once.
func (f *statusFlags) addContexts(o *statusOptions, args []string) error {
	if f.flags.Context != nil && *f.flags.Context != "" && !f.fromHelm("context") {
		return usagef("--context does not go with --contexts")
	}
	for _, name := range f.contexts {
		if name == "" || slices.ContainsFunc(o.views, func(v view) bool { return v.context == name }) {
			return usagef("--contexts: %q: name each context once", strings.Join(f.contexts, ","))
		}
		survey, err := f.survey(f.in(name), args)
		var usage usageError
		if errors.As(err, &usage) {
			return err
		}
		look := survey.Read
		if err != nil {
			look = func(context.Context) (*cluster.Sight, error) { return nil, err }
		}
		o.views = append(o.views, view{name, look})
		o.named = o.named || len(survey.Targets) > 0
		if o.namespace = survey.Namespace; f.namespaceGiven() || f.allNamespaces {
			continue
		}
		o.withNamespace = true // which may be another in each context
	}
	return nil
}

// withContexts reports whether clusters were asked for by their contexts.
func (o *statusOptions) withContexts() bool { return len(o.views) > 0 && o.views[0].context != "" }

// lookAll looks at all clusters side by side.
func (o *statusOptions) lookAll(ctx context.Context) []seen {
	out := make([]seen, len(o.views))
	var wait sync.WaitGroup
	for i, v := range o.views {
		out[i].view = v
		wait.Go(func() { out[i].sight, out[i].err = v.look(ctx) })
	}
	wait.Wait()
	return out
}

func (s *seen) judge() {
	if s.sight == nil {
		return
	}
	s.fleets = judge(s.sight.Workloads)
	for i := range s.fleets {
		s.fleets[i].context = s.context
	}
}

// remarks are those of a cluster, which is named where there are several.
func (s *seen) remarks() []string {
	switch {
	case s.sight == nil:
		return nil
	case s.context == "":
		return s.sight.Remarks
	}
	var out []string
	for _, r := range s.sight.Remarks {
		out = append(out, "context "+s.context+": "+r)
	}
	return out
}

func (s *seen) document() v1.FleetContext {
	out := v1.FleetContext{Context: s.context}
	if s.sight != nil {
		out.Time, out.Remarks = seconds(s.sight.Now), s.sight.Remarks
	}
	if s.err != nil {
		out.Error = s.err.Error()
	}
	return out
}

// found reports whether every cluster could be read, and had what was named.
func found(all []seen) bool {
	return !slices.ContainsFunc(all, func(s seen) bool { return s.err != nil || len(s.sight.NotFound) > 0 })
}

// failures joins what could not be read, and what was named and is not there.
func failures(all []seen) error {
	var errs []error
	for _, s := range all {
		err := s.err
		if err == nil {
			err = notFound(s.sight.NotFound)
		}
		if err != nil && s.context != "" {
			err = fmt.Errorf("context %s: %w", s.context, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
