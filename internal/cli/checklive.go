package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/check"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

const (
	// againstLive is the value of --against that stands for the cluster.
	againstLive = "live"
	// theCluster is the name of what the cluster has.
	theCluster = "the cluster"
)

// liveInput is the cluster as a release before: each live revision, and each that a rollback can reach.
type liveInput struct {
	connection *cluster.Connection
	kinds      []cluster.Kind
	mode       stamp.Mode
	// schemaOf gives the schema of a workload, if it has one, with where it is from.
	schemaOf func(*manifest.Workload) (text, from string, err error)

	held    map[workload.Object]revisions.Held
	configs map[workload.Object]*manifest.Config
	modes   map[string]string
	remarks []string
}

// read adds to what is checked the workloads of the cluster that use it, and gives the revisions of all.
func (l *liveInput) read(ctx context.Context, after *manifest.Set) ([]check.Release, error) {
	l.held, l.configs, l.modes = map[workload.Object]revisions.Held{}, map[workload.Object]*manifest.Config{}, map[string]string{}
	var releases []check.Release
	given := slices.Clone(after.Workloads)
	for _, w := range given {
		if w.Kind.Once || strings.HasSuffix(w.Name, "*") {
			continue
		}
		kind, known := l.kind(w.Kind)
		if !known {
			continue
		}
		found, _, err := l.workload(ctx, cluster.Target{Kind: kind, Namespace: w.Namespace, Name: w.Name}, w)
		if err != nil {
			return nil, err
		}
		releases = append(releases, found...)
	}
	others, err := l.others(ctx, l.kinds, after)
	if err != nil {
		return nil, err
	}
	for _, t := range others {
		found, w, err := l.workload(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		if w != nil {
			after.Workloads = append(after.Workloads, w)
		}
		releases = append(releases, found...)
	}
	return releases, nil
}

func (l *liveInput) kind(k manifest.Kind) (cluster.Kind, bool) {
	i := slices.IndexFunc(l.kinds, func(c cluster.Kind) bool {
		return c.Group == k.Group && c.GroupVersionKind.Kind == k.Kind
	})
	if i < 0 {
		return cluster.Kind{}, false
	}
	return l.kinds[i], true
}

// others are the workloads that use what is given without being among it.
func (l *liveInput) others(ctx context.Context, kinds []cluster.Kind, after *manifest.Set) ([]cluster.Target, error) {
	namespaces := map[string]bool{}
	for o := range after.Configs {
		namespaces[o.Namespace] = true
	}
	if len(namespaces) == 0 {
		return nil, nil
	}
	given := func(o workload.Object) bool { return after.Configs[o] != nil }
	found, remarks, err := cluster.Using(ctx, l.connection.Client, kinds, slices.Sorted(maps.Keys(namespaces)), given)
	if err != nil {
		return nil, err
	}
	l.remarks = append(l.remarks, remarks...)
	return slices.DeleteFunc(found, func(t cluster.Target) bool {
		return slices.ContainsFunc(after.Workloads, func(w *manifest.Workload) bool { return isOf(w, t) })
	}), nil
}

// once reports whether pods of a kind are never replaced by those of an older template.
func once(c cluster.Kind) bool {
	return slices.ContainsFunc(manifest.Kinds(), func(k manifest.Kind) bool { return k.Once && k.Group == c.Group && k.Kind == c.GroupVersionKind.Kind })
}

// history reads the revisions of a workload; of a CronJob, whose next Job has its template as it is now, that one.
func (l *liveInput) history(ctx context.Context, t cluster.Target) (*revisions.History, error) {
	if once(t.Kind) {
		return revisions.PresentOf(ctx, l.connection, t, l.mode)
	}
	return revisions.HistoryOf(ctx, l.connection, t, l.mode)
}

func isOf(w *manifest.Workload, t cluster.Target) bool {
	return w.Kind.Group == t.Kind.Group && w.Kind.Kind == t.Kind.GroupVersionKind.Kind && w.Namespace == t.Namespace && w.Name == t.Name
}

// workload gives the revisions of one workload, and the workload as it is. One that is not there has none.
func (l *liveInput) workload(ctx context.Context, t cluster.Target, given *manifest.Workload) ([]check.Release, *manifest.Workload, error) {
	h, err := l.history(ctx, t)
	var absent *revisions.AbsentError
	var lacks *revisions.RightError
	var unserved *cluster.NotServedError
	var keepsNone *revisions.NoRevisionsError
	switch {
	case errors.As(err, &absent), errors.As(err, &unserved):
		return nil, nil, nil
	case errors.As(err, &lacks), errors.As(err, &keepsNone):
		l.remarks = append(l.remarks, err.Error()+": revisions are unknown")
		if given == nil {
			return nil, nil, nil
		}
		unknown := map[string]string{given.String(): err.Error()}
		return []check.Release{{Name: theCluster, Set: &manifest.Set{}, Running: true, Past: true, Unknown: unknown}}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	l.remarks = append(l.remarks, h.Remarks...)
	groups, err := l.groups(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	var releases []check.Release
	var now *manifest.Workload
	for _, g := range groups {
		r, w, err := l.release(ctx, h, g)
		if err != nil {
			return nil, nil, err
		}
		if !r.Past {
			now = w
			l.modes[w.String()] = string(h.Mode)
			if given != nil && podtemplate.Leaves(w.Template, given.Template) {
				w.Template = given.Template
			}
		}
		releases = append(releases, r)
	}
	return releases, now, nil
}

// alike are revisions whose pods read the same, in the same place.
type alike struct {
	key       string
	settled   map[workload.Object]check.Settled
	revisions []revision.Revision
}

// text is "revision 3", or "revisions 3, 4 and 5".
func (a alike) text() string {
	var texts []string
	for _, r := range a.revisions {
		texts = append(texts, r.Text())
	}
	switch {
	case len(texts) == 1 && a.revisions[0].Number == 0:
		return "the present template"
	case len(texts) == 1:
		return "revision " + texts[0]
	}
	last := len(texts) - 1
	return "revisions " + strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// shown is the revision that stands for all.
func (a alike) shown() revision.Revision { return a.revisions[len(a.revisions)-1] }

// groups puts past revisions together that differ in nothing that matters, so that what is found is not said ten times.
func (l *liveInput) groups(ctx context.Context, h *revisions.History) ([]alike, error) {
	var out []alike
	for _, r := range h.Revisions {
		settled, err := l.settled(ctx, h, r)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprint(r.Current, settled, workload.Consumed(workload.References(h.Namespace, r.Template)),
			r.Template.Annotations[v1.AnnotationReads], r.Template.Annotations[v1.AnnotationSchema])
		i := slices.IndexFunc(out, func(a alike) bool { return a.key == key })
		if i < 0 {
			out = append(out, alike{key: key, settled: settled})
			i = len(out) - 1
		}
		out[i].revisions = append(out[i].revisions, r)
	}
	return out, nil
}

// settled says of each object that a change does not reach, or of which that is not known, what becomes of the revision's pods.
func (l *liveInput) settled(ctx context.Context, h *revisions.History, r revision.Revision) (map[workload.Object]check.Settled, error) {
	out := map[workload.Object]check.Settled{}
	for _, reading := range r.Readings() {
		name := reading.Object.String()
		copied, has := reading.Copy()
		switch {
		case r.PinsProblem != "":
			out[reading.Object] = check.Settled{Outcome: check.OutcomeUnknown, Why: r.PinsProblem}
		case reading.Absent():
			out[reading.Object] = check.Settled{Outcome: check.OutcomeNever, Why: name + " was absent when it was released, and stays so for it"}
		case has:
			out[reading.Object] = ofCopy(name, h.Copies.Of(copied))
		default:
			held, err := l.apply(ctx, h, reading.Object)
			if err != nil {
				return nil, err
			}
			if held.Problem != "" {
				out[reading.Object] = check.Settled{Outcome: check.OutcomeUnknown, Why: held.Problem}
			}
		}
	}
	return out, nil
}

func ofCopy(name string, c revision.Copy) check.Settled {
	switch c.State {
	case revision.CopyThere:
		return check.Settled{Outcome: check.OutcomeNever, Why: "it reads its own copy of " + name}
	case revision.CopyGone, revision.CopyForeign:
		return check.Settled{Outcome: check.OutcomeBreaks, Why: c.Why + ", whatever changes"}
	case revision.CopyUnknown:
	}
	return check.Settled{Outcome: check.OutcomeUnknown, Why: c.Why}
}

// apply reads what is applied, once.
func (l *liveInput) apply(ctx context.Context, h *revisions.History, o workload.Object) (revisions.Held, error) {
	if held, known := l.held[o]; known {
		return held, nil
	}
	held, err := h.Read(ctx, o)
	if err != nil {
		return held, err
	}
	l.held[o] = held
	if held.Problem != "" {
		l.remarks = append(l.remarks, held.Problem+": what revisions read of them is unknown")
	}
	if !held.Present {
		return held, nil
	}
	c := &manifest.Config{
		Object: o, Position: manifest.Position{File: theCluster}, Annotations: held.Annotations(), Data: map[string]string{}, Immutable: held.Immutable(),
	}
	for key, value := range held.Data {
		if held.Binary[key] {
			c.Binary = append(c.Binary, key)
			continue
		}
		c.Data[key] = string(value)
	}
	slices.Sort(c.Binary)
	l.configs[o] = c
	return held, nil
}

// release is what revisions are, and what their pods read.
func (l *liveInput) release(ctx context.Context, h *revisions.History, a alike) (check.Release, *manifest.Workload, error) {
	r := a.shown()
	kind := manifest.Kind{Group: h.Kind.Group, Kind: h.Kind.GroupVersionKind.Kind, TemplatePath: h.Kind.TemplatePath, Once: once(h.Kind)}
	w := &manifest.Workload{
		Position: manifest.Position{File: theCluster}, Kind: kind,
		Namespace: h.Namespace, Name: h.Name, Annotations: maps.Clone(h.Annotations()), Template: r.Template.DeepCopy(),
	}
	for _, name := range []string{v1.AnnotationReads, v1.AnnotationSchema} { // what it said when it was released
		if value, has := r.Template.Annotations[name]; has {
			w.Annotations = with(w.Annotations, name, value)
		}
	}
	strip(w.Template, v1.AnnotationConfigHash, v1.AnnotationPins)
	release := check.Release{
		Name: a.text(), Set: &manifest.Set{Workloads: []*manifest.Workload{w}, Configs: map[workload.Object]*manifest.Config{}},
		Schemas: check.Schemas{}, Running: true, Past: !r.Current, Settled: a.settled,
	}
	for _, reading := range r.Readings() {
		if _, err := l.apply(ctx, h, reading.Object); err != nil {
			return release, nil, err
		}
		if c := l.configs[reading.Object]; c != nil {
			release.Set.Configs[reading.Object] = c
		}
	}
	text, from, err := l.schemaOf(w)
	switch {
	case errors.Is(err, errOfAnother):
		l.remarks, err = append(l.remarks, unjudged(theCluster, from, w)), nil
	case err == nil && text != "":
		release.Schemas[w.String()], err = check.CompileSchema(text)
	}
	if err != nil {
		return release, nil, fmt.Errorf("schema of %s, %s: %w", w, a.text(), err)
	}
	return release, w, nil
}

func with(annotations map[string]string, name, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	return annotations
}

// strip takes annotations off a template that Tidemark put there.
func strip(t *corev1.PodTemplateSpec, names ...string) {
	for _, name := range names {
		delete(t.Annotations, name)
	}
}

// live reads the cluster as a release before.
func (i checkInput) live(ctx context.Context, after *check.Release) ([]check.Release, map[string]string, error) {
	c, err := i.connect()
	if err != nil {
		return nil, nil, err
	}
	l := &liveInput{
		connection: c, kinds: i.clusterKinds, mode: i.defaultMode,
		schemaOf: func(w *manifest.Workload) (string, string, error) { return i.schemaOf(w, ofAnother) },
	}
	releases, err := l.read(ctx, after.Set)
	after.Set.Remarks = append(after.Set.Remarks, l.remarks...)
	return releases, l.modes, err
}
