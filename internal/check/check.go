// Package check finds what a change of configuration would break, before it is applied.
package check

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// Release is what is applied together at one time.
type Release struct {
	// Name for people: a file, a revision of Git.
	Name string
	Set  *manifest.Set
	// Schemas of the workloads.
	Schemas Schemas

	// Running says that it is what a cluster has: what After does not name stays, and what a revision reads of its own is in
	// Settled, whatever the mode.
	Running bool
	// Past says that its workloads have another template by now, so that it says nothing of what the change does.
	Past bool
	// Settled are the objects of which a change cannot reach its pods, or is not known to: they read a copy, or it is not known.
	Settled map[workload.Object]Settled
	// Unknown are workloads, as [manifest.Workload.String] gives them, of which the revisions are not known, with why.
	Unknown map[string]string
}

// Settled is what becomes of pods that read an object, whatever the change.
type Settled struct {
	Outcome Outcome
	Why     string
}

// Input is what is compared.
type Input struct {
	// Before are the releases of which pods may still run, or to which one may go back. None: only what After says of itself
	// is looked at.
	Before []Release
	After  Release
	// Mode of workloads that say none: observe, roll, pin, or "" where it is not known.
	Mode string
	// Modes of workloads in the cluster, by what [manifest.Workload.String] gives.
	Modes      map[string]string
	Severities map[RuleID]Severity
	// Now decides whether an excuse has expired.
	Now time.Time
}

// Outcome is what happens when pods of a revision read a configuration.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeBreaks  Outcome = "breaks"
	OutcomeUnknown Outcome = "unknown"
	// OutcomeNever says that they never read it, because each revision reads its own.
	OutcomeNever Outcome = "never"
)

// Cell is one revision of a workload with one configuration that its pods could read.
type Cell struct {
	Workload string
	// Revision and Configuration are names of releases.
	Revision, Configuration string
	Outcome                 Outcome
	// Why in words, of anything but ok.
	Why string
}

// Result is what was found.
type Result struct {
	Findings []Finding
	Matrix   []Cell
	// Remarks say what could not be looked into.
	Remarks []string
}

// Run looks for everything that the rules say.
func Run(in Input) Result {
	c := &checker{Input: in}
	c.look()
	c.remark(in.After)
	for _, before := range in.Before {
		c.remark(before)
		c.stranger(before)
		c.immutable(before)
		for _, w := range in.After.Set.Workloads {
			if old := before.Set.Find(w); old != nil {
				c.transition(before, old, w)
			}
			if why := before.Unknown[w.String()]; why != "" {
				c.Matrix = append(c.Matrix, Cell{w.String(), before.Name, in.After.Name, OutcomeUnknown, why})
			}
		}
	}
	for _, w := range in.After.Set.Workloads {
		c.present(w)
	}
	c.credentials()
	c.pipelines()
	c.Remarks = slices.Compact(slices.Sorted(slices.Values(c.Remarks)))
	c.Findings = finish(c.Findings, in.Severities, in.Now)
	return c.Result
}

// checker gathers what is found.
type checker struct {
	Input
	Result

	settings map[*manifest.Config]keys.Settings
	opaque   map[*manifest.Config][]keys.Opaque
	// names of the config objects of the new release, by an object of their kind and namespace without a name.
	names map[workload.Object][]string
}

// remark takes over what the reading of a release passed over, and says which files are opaque.
func (c *checker) remark(r Release) {
	c.Remarks = append(c.Remarks, r.Set.Remarks...)
	for _, config := range r.Set.Sorted() {
		for _, o := range c.opaque[config] {
			c.Remarks = append(c.Remarks, fmt.Sprintf("%s: key %s of %s is compared as a whole, because it %s",
				config.At(o.Key), Masked(o.Key), objectText(config.Object), o.Why))
		}
	}
}

// stranger remarks a release before that has nothing of the new one, so that no finding says nothing. Mostly one of them names the
// namespace and the other does not.
func (c *checker) stranger(before Release) {
	a, b := before.Set, c.After.Set
	if before.Running || len(a.Workloads)+len(a.Configs) == 0 || len(b.Workloads)+len(b.Configs) == 0 {
		return
	}
	for _, w := range b.Workloads {
		if a.Find(w) != nil {
			return
		}
	}
	for o := range b.Configs {
		if a.Configs[o] != nil {
			return
		}
	}
	c.Remarks = append(c.Remarks, fmt.Sprintf("%s has no workload, ConfigMap or Secret of %s by the same namespace and name, so nothing is compared "+
		"(manifests that name no namespace are of that of -n)", before.Name, c.After.Name))
}

func (c *checker) add(f Finding) {
	f.After = c.After.Name
	c.Findings = append(c.Findings, f)
}

// mode of a workload in a release: its own, else that of its opt-in to Wave, else its namespace's, else the one that was given; "" where none is known.
func (c *checker) mode(r Release, w *manifest.Workload) string {
	wave := ""
	if w.Annotations[v1.WaveOptIn] == v1.True {
		wave = v1.ModeRoll
	}
	return cmp.Or(w.Annotation(v1.AnnotationMode), wave, r.Set.Namespaces[w.Namespace][v1.LabelMode], c.Modes[w.String()], c.Mode)
}

// owned reports whether each revision of a workload reads its own copy of an object, in the mode that it has in a release.
func (c *checker) owned(r Release, w *manifest.Workload, config *manifest.Config) bool {
	if c.mode(r, w) != v1.ModePin {
		return false
	}
	switch config.Annotations[v1.AnnotationTreatAs] {
	case v1.TreatAsVersioned:
		return true
	case v1.TreatAsRestart, v1.TreatAsLive:
		return false
	}
	return config.Kind == workload.ConfigMap
}

// guards reports whether it must not be told whether an object differs from what is released: a Secret that is in use.
func (r Release) guards(o workload.Object) bool { return r.Running && o.Kind == workload.Secret }

func ignored(config *manifest.Config) bool { return config.Annotations[v1.AnnotationIgnore] == v1.True }

// consumed lists what a workload reads of objects that are not ignored.
func (r Release) consumed(w *manifest.Workload) []workload.Consumption {
	return slices.DeleteFunc(workload.Consumed(w.References()), func(u workload.Consumption) bool {
		config := r.Set.Configs[u.Object]
		return config != nil && ignored(config)
	})
}

// sameContent reports whether two states of an object hold the same, as far as that is known: of binary data in a cluster only the keys are.
func sameContent(a, b *manifest.Config) bool {
	return maps.Equal(a.Data, b.Data) && slices.Equal(a.Binary, b.Binary) && !slices.ContainsFunc(a.Binary, func(key string) bool { return otherBinary(a, b, key) })
}

// otherBinary reports whether two states of an object are known to hold something else under a key of binary data.
func otherBinary(a, b *manifest.Config, key string) bool {
	x, y := a.BinaryData[key], b.BinaryData[key]
	return x != nil && y != nil && !bytes.Equal(x, y)
}

// immutable finds immutable objects that change under their name.
func (c *checker) immutable(before Release) {
	if before.Past {
		return
	}
	for _, old := range before.Set.Sorted() {
		config := c.After.Set.Configs[old.Object]
		if !old.Immutable || config == nil || before.guards(old.Object) || config.Immutable && sameContent(old, config) {
			continue
		}
		why := "It is immutable in %s, and has other content in %s."
		if !config.Immutable {
			why = "It is immutable in %s, and is no more in %s."
		}
		c.add(Finding{
			Rule: ImmutableChanged, Object: objectText(old.Object), Before: before.Name, At: config.Position,
			Why: fmt.Sprintf(why, before.Name, c.After.Name), excusable: []map[string]string{config.Annotations},
		})
	}
}
