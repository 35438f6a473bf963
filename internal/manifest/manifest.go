// Package manifest reads rendered manifests, each object with where it stands.
package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/workload"
)

// Position is where something stands.
type Position struct {
	// File it was read from, as it was named to [Set.Read]; what was rendered by a program has the name of the input.
	File string
	// Line counts from 1; 0 where not known.
	Line int
	// Source is the file that it was rendered from, by helm's comment or kustomize's origin; "" where there is none, or where
	// what was read is a file by itself.
	Source string
}

// String gives "FILE:LINE", or the source.
func (p Position) String() string {
	switch {
	case p.Source != "":
		return p.Source
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Config is a ConfigMap or Secret.
type Config struct {
	workload.Object
	Position

	Annotations map[string]string
	// Data by key; that of a Secret is decoded.
	Data map[string]string
	// Binary are the keys of binaryData, sorted.
	Binary []string
	// BinaryData is what they hold; nil for one that is not base64.
	BinaryData map[string][]byte
	Immutable  bool
	// lines of keys.
	lines map[string]int
}

// At is the position of a key; of the object where the key is not there.
func (c *Config) At(key string) Position {
	p := c.Position
	if line, has := c.lines[key]; has {
		p.Line = line
	}
	return p
}

// Has reports whether the object has the key, in data or binaryData.
func (c *Config) Has(key string) bool {
	_, has := c.Data[key]
	return has || slices.Contains(c.Binary, key)
}

// Keys of data and binaryData, sorted.
func (c *Config) Keys() []string {
	names := slices.Clone(c.Binary)
	for k := range c.Data {
		names = append(names, k)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Workload is an object with a pod template.
type Workload struct {
	Position

	Kind            Kind
	Namespace, Name string
	Annotations     map[string]string
	// Template as the API takes it: without what is in Strays.
	Template *corev1.PodTemplateSpec
	Strays   []Stray
	// Rollout are the fields of its spec, of those that it gives, that say how many pods it has and how they are replaced, as JSON has them.
	Rollout map[string]any
}

// String gives "deployment/NAME", with the namespace where there is one.
func (w *Workload) String() string {
	if w.Namespace == "" {
		return w.Kind.lower() + "/" + w.Name
	}
	return w.Kind.lower() + "/" + w.Namespace + "/" + w.Name
}

// Annotation is that of the workload, else that of its pod template.
func (w *Workload) Annotation(name string) string {
	if v, has := w.Annotations[name]; has {
		return v
	}
	return w.Template.Annotations[name]
}

// References lists what the pod template uses, with what annotations name.
func (w *Workload) References() []workload.Reference {
	named, _ := workload.Named(w.Namespace, w.Annotations)
	return append(workload.References(w.Namespace, w.Template), named...)
}

// Set is everything that is applied together.
type Set struct {
	// Kinds that have pod templates.
	Kinds []Kind
	// Namespace of objects that name none.
	Namespace string
	// Rendered says that what is read comes from a program rather than from files, so that the sources it names are where
	// something stands.
	Rendered bool
	// Lenient passes documents that are no objects over without a remark.
	Lenient bool

	Configs    map[workload.Object]*Config
	Workloads  []*Workload
	Namespaces map[string]map[string]string // labels by name
	Pipelines  []*Pipeline
	// Objects counts the objects that were read, of whatever kind.
	Objects int
	// Remarks say what was passed over.
	Remarks []string

	// size is how much was read, in bytes.
	size int
	// places are where in Workloads each is that was read.
	places map[string]int
}

// Find gives the workload of the same kind, namespace and name; nil when there is none.
func (s *Set) Find(w *Workload) *Workload {
	for _, other := range s.Workloads {
		if other.Kind.sameAs(w.Kind) && other.Namespace == w.Namespace && other.Name == w.Name {
			return other
		}
	}
	return nil
}

// Sorted lists the config objects in the order of [workload.Object.Compare].
func (s *Set) Sorted() []*Config {
	var out []*Config
	for _, c := range s.Configs {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Config) int { return a.Object.Compare(b.Object) })
	return out
}

// Resolve rewrites the sources of what was read from a file.
func (s *Set) Resolve(file string, source func(string) string) {
	for _, c := range s.Configs {
		if c.File == file && c.Source != "" {
			c.Source = source(c.Source)
		}
	}
	for _, w := range s.Workloads {
		if w.File == file && w.Source != "" {
			w.Source = source(w.Source)
		}
	}
}
