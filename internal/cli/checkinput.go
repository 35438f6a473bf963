package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/render"
	"tidemark.dev/tidemark/internal/stamp"
)

// checkInput is what check reads.
type checkInput struct {
	source    render.Source
	from, to  string
	against   []string
	schemas   []string
	kinds     []manifest.Kind
	namespace string

	// What leads to the cluster, for --against live.
	connect      func() (*cluster.Connection, error)
	clusterKinds []cluster.Kind
	defaultMode  stamp.Mode
}

// checked is what is compared.
type checked struct {
	before []check.Release
	after  check.Release
	// modes of workloads in the cluster.
	modes map[string]string
}

// workingTree is the name of what is checked when it is of no revision.
const workingTree = "the working tree"

// read reads the releases before, and the one that is checked.
func (i checkInput) read(ctx context.Context) (checked, error) {
	out, err := i.compared(ctx)
	if err == nil {
		err = nothingGiven(out.after.Name, out.after.Set)
	}
	if err == nil {
		out.after.Set.Remarks = append(out.after.Set.Remarks, i.idleSchemas(out)...)
	}
	return out, err
}

// nothingGiven is the error of manifests in which there is nothing: that there are no findings would be no more than that. What was passed
// over may be why. Of a release before it is a remark, since the first change has none.
func nothingGiven(name string, set *manifest.Set) error {
	if set.Objects > 0 || len(set.Pipelines) > 0 {
		return nil
	}
	why := "did what renders it fail?"
	if len(set.Remarks) > 0 {
		why = set.Remarks[0]
	}
	return fmt.Errorf("there are no objects in %s: %s", name, why)
}

// idleSchemas says which schemas are for workloads that are not there. A misspelled name would go unnoticed.
func (i checkInput) idleSchemas(c checked) []string {
	var remarks []string
	for _, flag := range i.schemas {
		target, _, is := strings.Cut(flag, "=")
		there := slices.ContainsFunc(append(slices.Clone(c.before), c.after), func(r check.Release) bool {
			return slices.ContainsFunc(r.Set.Workloads, func(w *manifest.Workload) bool { return schemaFits(target, w) })
		})
		if is && !there {
			remarks = append(remarks, "--schema: there is no "+target+", so its schema is not used")
		}
	}
	return remarks
}

// schemaFits reports whether a flag's KIND/NAME, or KIND/NAMESPACE/NAME, is the workload.
func schemaFits(target string, w *manifest.Workload) bool {
	return target == w.String() || target == strings.ToLower(w.Kind.Kind)+"/"+w.Name
}

func (i checkInput) compared(ctx context.Context) (checked, error) {
	if i.from == "" {
		return i.named(ctx)
	}
	from, err := i.revision(ctx, i.from, true)
	if err != nil {
		return checked{}, err
	}
	out := checked{before: []check.Release{from}}
	if i.to == "" {
		out.after, err = i.release(ctx, workingTree, i.source, onDisk(i.source))
	} else {
		out.after, err = i.revision(ctx, i.to, false)
	}
	return out, err
}

// named reads the releases before that are named by themselves.
func (i checkInput) named(ctx context.Context) (out checked, err error) {
	for _, name := range i.against {
		if name == againstLive {
			continue
		}
		r, err := i.release(ctx, givenName(name), i.released(name), ofAnother)
		if err != nil {
			return out, err
		}
		out.before = append(out.before, r)
	}
	if out.after, err = i.release(ctx, i.name(), i.source, onDisk(i.source)); err != nil || !i.againstLive() {
		return out, err
	}
	running, modes, err := i.live(ctx, &out.after)
	out.before, out.modes = append(out.before, running...), modes
	return out, err
}

func (i checkInput) againstLive() bool { return slices.Contains(i.against, againstLive) }

// releases are the names of the releases before, for people.
func (i checkInput) releases(before []check.Release) []string {
	var out []string
	for _, r := range before {
		if !r.Running {
			out = append(out, r.Name)
		}
	}
	if i.againstLive() {
		out = append(out, theCluster)
	}
	return out
}

// name of what is checked.
func (i checkInput) name() string {
	switch {
	case i.source.Kustomize != "":
		return i.source.Kustomize
	case i.source.Command != "":
		return "what was rendered"
	}
	var names []string
	for _, file := range i.source.Files {
		names = append(names, givenName(file))
	}
	return strings.Join(names, ", ")
}

// givenName is a file's name for people.
func givenName(file string) string {
	if file == render.Stdin {
		return "the standard input"
	}
	return file
}

// released is the source of a release before: files, or a kustomization where a directory has one.
func (i checkInput) released(name string) render.Source {
	s := render.Source{Files: []string{name}, In: i.source.In, Err: i.source.Err}
	if render.IsKustomization(name) {
		s.Files, s.Kustomize = nil, name
	}
	return s
}

// revision reads a release from a revision of Git. One before need not have all that is checked.
func (i checkInput) revision(ctx context.Context, name string, before bool) (r check.Release, err error) {
	tree, err := render.NewCheckout(ctx, name)
	if err != nil {
		return check.Release{}, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	s, err := tree.Source(i.source)
	if err != nil {
		return check.Release{}, err
	}
	var absent []string
	if before {
		s, absent = s.Present()
	}
	r, err = i.release(ctx, name, s, inTree(tree, s, before))
	if err == nil && len(absent) > 0 {
		r.Set.Remarks = append(r.Set.Remarks, fmt.Sprintf("%s has no %s, so nothing there is compared with it", name, strings.Join(absent, ", ")))
	}
	return r, err
}

func (i checkInput) release(ctx context.Context, name string, source render.Source, read schemaFile) (check.Release, error) {
	set := &manifest.Set{Kinds: i.kinds, Namespace: i.namespace}
	if err := source.Read(ctx, set); err != nil {
		return check.Release{}, err
	}
	if set.Objects == 0 && len(set.Pipelines) == 0 {
		set.Remarks = append(set.Remarks, name+" has no objects") // after what says why
	}
	r := check.Release{Name: name, Set: set, Schemas: check.Schemas{}}
	for _, w := range set.Workloads {
		text, from, err := i.schemaOf(w, read)
		switch {
		case errors.Is(err, errOfAnother):
			set.Remarks = append(set.Remarks, unjudged(name, from, w))
			continue
		case err != nil:
			return check.Release{}, fmt.Errorf("schema of %s: %w", w, err)
		case text == "":
			continue
		}
		if r.Schemas[w.String()], err = check.CompileSchema(text); err != nil {
			return check.Release{}, fmt.Errorf("schema of %s in %s: %w", w, from, err)
		}
	}
	return r, nil
}
