package manifest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/internal/yamltree"
)

// MaxSize is how large one input may be, and all of a set together, in bytes.
const MaxSize = 64 << 20

// Annotations of kustomize that say where an object comes from.
const annotationOrigin = "config.kubernetes.io/origin"

// ErrLarge is the error of an input that is larger than [MaxSize].
var ErrLarge = fmt.Errorf("larger than %d MiB: check it in parts", MaxSize>>20)

// errTogether is the error of one of several inputs that are larger than [MaxSize] together.
var errTogether = fmt.Errorf("together with what was read before it %w", ErrLarge)

// Error is what keeps an input from being read. It has nothing of the input's text.
type Error struct {
	Position

	Err error
}

// Error names the place.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Position, e.Err) }

// Unwrap gives what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Read adds what a stream of YAML or JSON documents has: ConfigMaps, Secrets, objects with a pod template, namespaces, Lists of
// these, CI workflows. Objects of other kinds are counted, documents that are no objects are remarked.
func (s *Set) Read(file, text string) error {
	if len(text) > MaxSize {
		return &Error{Position{File: file}, ErrLarge}
	}
	if s.size += len(text); s.size > MaxSize {
		return &Error{Position{File: file}, errTogether}
	}
	if s.Configs == nil {
		s.Configs, s.Namespaces, s.places = map[workload.Object]*Config{}, map[string]map[string]string{}, map[string]int{}
	}
	for _, r := range s.readers(file, split(text)) {
		if r.err != nil {
			return r.err
		}
		s.take(r)
	}
	return nil
}

// readers read the documents of a file, as many at a time as there are processors.
func (s *Set) readers(file string, documents []document) []*reader {
	readers := make([]*reader, len(documents))
	work := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range work {
				d := documents[i]
				r := &reader{set: s, at: Position{File: file, Line: d.line}}
				if s.Rendered {
					r.at.Source = d.source
				}
				r.err = r.document(d)
				readers[i] = r
			}
		})
	}
	for i := range documents {
		work <- i
	}
	close(work)
	workers.Wait()
	return readers
}

// take adds what a document has.
func (s *Set) take(r *reader) {
	s.Objects += r.objects
	s.Remarks = append(s.Remarks, r.remarks...)
	for _, w := range r.workloads {
		s.takeWorkload(w)
	}
	s.Pipelines = append(s.Pipelines, r.pipelines...)
	for _, n := range r.namespaces {
		s.Namespaces[n.name] = n.labels
	}
	for _, c := range r.configs {
		if _, twice := s.Configs[c.Object]; twice {
			s.Remarks = append(s.Remarks, fmt.Sprintf("%s: %s is there twice, and the last one counts", c.Position, c.Relative("")))
		}
		s.Configs[c.Object] = c
	}
}

// takeWorkload adds a workload. Of names that the API server completes, each stands for another object.
func (s *Set) takeWorkload(w *Workload) {
	id := w.Kind.Group + "/" + w.String()
	i, twice := s.places[id]
	if !twice || strings.HasSuffix(w.Name, "*") {
		s.places[id] = len(s.Workloads)
		s.Workloads = append(s.Workloads, w)
		return
	}
	s.Remarks = append(s.Remarks, fmt.Sprintf("%s: %s is there twice, and the last one counts", w.Position, w))
	s.Workloads[i] = w
}

// wanted reports whether objects of a kind are read.
func (s *Set) wanted(kind string) bool {
	return kind == "ConfigMap" || kind == "Secret" || kind == "Namespace" || strings.HasSuffix(kind, "List") ||
		slices.ContainsFunc(s.Kinds, func(k Kind) bool { return k.Kind == kind })
}

// reader reads one document into what it has, apart from the set, which others read beside it.
type reader struct {
	// set says what to look for; nothing is added to it.
	set *Set
	// at is where the document begins.
	at Position

	configs    []*Config
	workloads  []*Workload
	namespaces []namespace
	pipelines  []*Pipeline
	objects    int
	remarks    []string
	err        error
}

type namespace struct {
	name   string
	labels map[string]string
}

func (r *reader) document(d document) error {
	if d.blank() {
		return nil
	}
	if kind := d.kind(); kind != "" && !r.set.wanted(kind) && !mayHaveTemplate(kind, d.text) && !anchored.MatchString(d.text) {
		r.objects++
		return nil
	}
	nodes, err := yamltree.Parse(d.text)
	if err != nil {
		return r.failed(d, err)
	}
	for _, n := range nodes {
		if n.Kind != yaml.DocumentNode || len(n.Content) == 0 {
			continue
		}
		if err := r.root(d, yamltree.Resolve(n.Content[0])); err != nil {
			return r.failed(d, err)
		}
	}
	return nil
}

// failed places an error at the line that it tells, counted within the document.
func (r *reader) failed(d document, err error) error {
	at := r.at
	var inner *yamltree.Error
	if errors.As(err, &inner) && inner.Line > 0 {
		at.Line, err = d.line+inner.Line-1, inner.Err
	}
	at.Source = "" // the line is that of the file
	return &Error{at, err}
}

func (r *reader) root(d document, n *yaml.Node) error {
	twice := 0
	value, err := yamltree.ManifestValue(n, func(line int) { twice = cmp.Or(twice, line) })
	if err != nil {
		return err
	}
	if twice > 0 {
		at := r.at
		at.Line, at.Source = d.line+twice-1, ""
		r.remarks = append(r.remarks, fmt.Sprintf("%s: a key is there twice, and the last one counts", at))
	}
	m, isMap := value.(map[string]any)
	if !isMap {
		r.passOver(r.at, "holds no object")
		return nil
	}
	if text(m, "kind") == "" || text(m, "apiVersion") == "" {
		if p := pipelineOf(r.at, d, n, m); p != nil {
			r.pipelines = append(r.pipelines, p)
			return nil
		}
		r.passOver(r.at, "has no apiVersion and kind")
		return nil
	}
	return r.object(n, m)
}

// object reads one object, or each of a List. Nodes have lines, and the map the same content.
func (r *reader) object(n *yaml.Node, m map[string]any) error {
	kind := text(m, "kind")
	if items, isList := m["items"].([]any); isList && strings.HasSuffix(kind, "List") {
		return r.list(field(n, "items"), items, m)
	}
	r.objects++
	group, _, hasGroup := strings.Cut(text(m, "apiVersion"), "/")
	if !hasGroup {
		group = ""
	}
	switch {
	case group == "" && (kind == "ConfigMap" || kind == "Secret"):
		return r.config(n, m, workload.ObjectKind(kind))
	case group == "" && kind == "Namespace":
		meta := object(m, "metadata")
		r.namespaces = append(r.namespaces, namespace{text(meta, "name"), texts(object(meta, "labels"))})
	}
	for _, k := range r.set.Kinds {
		if k.Kind == kind && k.Group == group {
			return r.workload(n, m, k)
		}
	}
	r.unknown(kind, m)
	return nil
}

// list reads the items of a List; the nodes are nil where the field is merged in from elsewhere. In a list of one kind, such as a
// ConfigMapList, its items need not say their own.
func (r *reader) list(nodes *yaml.Node, items []any, list map[string]any) error {
	for i, item := range items {
		object, isMap := item.(map[string]any)
		if !isMap || nodes == nil || i >= len(nodes.Content) {
			continue
		}
		if text(object, "kind") == "" {
			object["kind"], object["apiVersion"] = strings.TrimSuffix(text(list, "kind"), "List"), list["apiVersion"]
		}
		if err := r.object(yamltree.Resolve(nodes.Content[i]), object); err != nil {
			return err
		}
	}
	return nil
}

// position of an object, with kustomize's origin taken off its annotations.
func (r *reader) position(n *yaml.Node, annotations map[string]string) Position {
	p := r.at
	p.Line += n.Line - 1
	if origin, has := annotations[annotationOrigin]; has {
		if r.set.Rendered {
			p.Source = originPath(origin)
		}
		delete(annotations, annotationOrigin)
	}
	return p
}

// originPath is the file that kustomize's origin names.
func originPath(origin string) string {
	var o struct{ Path, Repo, ConfiguredIn string }
	for line := range strings.Lines(origin) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "path":
			o.Path = value
		case "repo":
			o.Repo = value
		case "configuredIn":
			o.ConfiguredIn = value
		}
	}
	if o.Repo != "" {
		return o.Repo + "//" + o.Path
	}
	if o.Path == "" {
		return o.ConfiguredIn
	}
	return o.Path
}

func (r *reader) namespace(meta map[string]any) string {
	if ns := text(meta, "namespace"); ns != "" {
		return ns
	}
	return r.set.Namespace
}

// name of an object. One that the API server completes ends in a star, which no other name has.
func name(meta map[string]any) string {
	if prefix := text(meta, "generateName"); prefix != "" && text(meta, "name") == "" {
		return prefix + "*"
	}
	return text(meta, "name")
}

func (r *reader) config(n *yaml.Node, m map[string]any, kind workload.ObjectKind) error {
	meta := object(m, "metadata")
	c := &Config{
		Object:      workload.Object{Kind: kind, Namespace: r.namespace(meta), Name: name(meta)},
		Annotations: texts(object(meta, "annotations")), Data: make(map[string]string, len(object(m, "data"))), lines: make(map[string]int, len(object(m, "data"))),
		Binary: slices.Sorted(maps.Keys(object(m, "binaryData"))),
	}
	c.BinaryData = map[string][]byte{}
	for k, v := range texts(object(m, "binaryData")) {
		c.BinaryData[k], _ = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), "")) // a key is there all the same
	}
	c.Immutable, _ = m["immutable"].(bool)
	c.Position = r.position(n, c.Annotations)
	for _, f := range []string{"data", "stringData", "binaryData"} {
		r.lines(c.lines, field(n, f))
	}
	for k, v := range texts(object(m, "data")) {
		if kind == workload.Secret {
			decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), ""))
			if err != nil {
				r.remarks = append(r.remarks, fmt.Sprintf("%s: a value of %s is not base64, so the API would refuse it", c.At(k), c.Relative("")))
			}
			v = string(decoded)
		}
		c.Data[k] = v
	}
	if kind == workload.Secret {
		maps.Copy(c.Data, texts(object(m, "stringData")))
	}
	for _, f := range []string{"data", "stringData", "binaryData"} {
		r.remarks = append(r.remarks, c.mistyped(f, m[f])...)
	}
	r.configs = append(r.configs, c)
	return nil
}

// mistyped says which values of a field are no strings, as YAML reads them: the API takes nothing else.
func (c *Config) mistyped(name string, value any) []string {
	fields, isMap := value.(map[string]any)
	if !isMap && value != nil {
		return []string{fmt.Sprintf("%s: %s of %s is no map, so the API would refuse it", c.Position, name, c.Relative(""))}
	}
	var remarks []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, isText := fields[key].(string); !isText && fields[key] != nil {
			remarks = append(remarks, fmt.Sprintf("%s: a value of %s is no string, so the API would refuse it: quote it", c.At(key), c.Relative("")))
		}
	}
	return remarks
}

func (r *reader) lines(into map[string]int, n *yaml.Node) {
	if n == nil {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := yamltree.Resolve(n.Content[i])
		into[k.Value] = r.at.Line + k.Line - 1
	}
}

func (r *reader) workload(n *yaml.Node, m map[string]any, k Kind) error {
	meta := object(m, "metadata")
	w := &Workload{Kind: k, Namespace: r.namespace(meta), Name: name(meta), Annotations: texts(object(meta, "annotations"))}
	w.Position = r.position(n, w.Annotations)
	template := m
	for _, f := range k.TemplatePath {
		template = object(template, f)
	}
	w.Strays, w.Rollout = r.strays(n, template, w), rolloutOf(object(m, "spec"))
	data, err := json.Marshal(template)
	if err == nil {
		w.Template = &corev1.PodTemplateSpec{}
		err = json.Unmarshal(data, w.Template)
	}
	if err != nil {
		return &yamltree.Error{Line: n.Line, Err: fmt.Errorf("%s has a pod template that the API would refuse%s", w, typeOf(err))}
	}
	if len(w.Template.Spec.Containers) > 0 || len(w.Strays) > 0 { // else it takes its template from elsewhere, or is none
		r.workloads = append(r.workloads, w)
	}
	return nil
}

// rolloutOf are the fields of a workload's spec that say how it rolls.
func rolloutOf(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"replicas", "minReadySeconds", "paused", "strategy", "updateStrategy"} {
		if value := spec[name]; value != nil {
			out[name] = value
		}
	}
	return out
}

// typeOf says which field has a value of another type than the API's. The error itself may quote the value.
func typeOf(err error) string {
	if mismatch := new(json.UnmarshalTypeError); errors.As(err, &mismatch) && mismatch.Field != "" {
		return ": " + mismatch.Field + " is of another type there"
	}
	return ""
}

func (r *reader) passOver(at Position, why string) {
	if !r.set.Lenient {
		r.remarks = append(r.remarks, at.String()+" "+why+" and is passed over")
	}
}

// field is the value of a field of a map: of one that is there twice, the last.
func field(n *yaml.Node, name string) *yaml.Node {
	for i := len(n.Content)/2*2 - 2; i >= 0; i -= 2 {
		if yamltree.Resolve(n.Content[i]).Value == name {
			return yamltree.Resolve(n.Content[i+1])
		}
	}
	return nil
}

func object(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

func text(m map[string]any, name string) string {
	t, _ := m[name].(string)
	return t
}

// texts gives a map of strings. What is no string is written as YAML has it; the API would refuse it.
func texts(m map[string]any) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		switch v := v.(type) {
		case string:
			out[k] = v
		case nil:
			out[k] = ""
		default:
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}
