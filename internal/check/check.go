// Package check finds what a change of configuration would break, before it is applied.
package check

import (
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
}

// Input is what is compared.
type Input struct {
	// Before are the releases of which pods may still run, or to which one may go back. None: only what After says of itself
	// is looked at.
	Before []Release
	After  Release
	// Mode of workloads that say none: observe, roll, pin, or "" where it is not known.
	Mode       string
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
		c.immutable(before)
		for _, w := range in.After.Set.Workloads {
			if old := before.Set.Find(w); old != nil {
				c.transition(before, old, w)
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
}

// remark takes over what the reading of a release passed over, and says which files are opaque.
func (c *checker) remark(r Release) {
	c.Remarks = append(c.Remarks, r.Set.Remarks...)
	for _, config := range r.Set.Sorted() {
		for _, o := range c.opaque[config] {
			c.Remarks = append(c.Remarks, fmt.Sprintf("%s: key %s of %s is compared as a whole, because it %s",
				config.At(o.Key), masked(o.Key), objectText(config.Object), o.Why))
		}
	}
}

func (c *checker) add(f Finding) {
	f.After = c.After.Name
	c.Findings = append(c.Findings, f)
}

// mode of a workload: its own, else its namespace's, else the one that was given; "" where none is known.
func (c *checker) mode(w *manifest.Workload) string {
	return cmp.Or(w.Annotation(v1.AnnotationMode), c.After.Set.Namespaces[w.Namespace][v1.LabelMode], c.Mode)
}

// owned reports whether each revision of a workload reads its own copy of an object.
func (c *checker) owned(w *manifest.Workload, config *manifest.Config) bool {
	if c.mode(w) != v1.ModePin {
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

func ignored(config *manifest.Config) bool { return config.Annotations[v1.AnnotationIgnore] == v1.True }

// consumed lists what a workload reads of objects that are not ignored.
func (r Release) consumed(w *manifest.Workload) []workload.Consumption {
	return slices.DeleteFunc(workload.Consumed(w.References()), func(u workload.Consumption) bool {
		config := r.Set.Configs[u.Object]
		return config != nil && ignored(config)
	})
}

// immutable finds immutable objects that change under their name.
func (c *checker) immutable(before Release) {
	for _, old := range before.Set.Sorted() {
		config := c.After.Set.Configs[old.Object]
		if !old.Immutable || config == nil || config.Immutable && maps.Equal(old.Data, config.Data) && slices.Equal(old.Binary, config.Binary) {
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
