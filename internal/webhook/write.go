package webhook

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
)

// write is a workload as somebody wants it written, with what is added to that.
type write struct {
	kind cluster.Kind
	// asked is the object as it was handed in, for the steps of the answer.
	asked map[string]any
	// object is what is decided on: as it was handed in, with what was added.
	object client.Object
	// added is the patch so far.
	added cluster.Patch
}

// readWrite reads a workload of an admission request. Before it has its final name a namespace is all it has.
func readWrite(kind cluster.Kind, raw runtime.RawExtension, namespace string) (*write, error) {
	w := &write{kind: kind}
	if err := json.Unmarshal(raw.Raw, &w.asked); err != nil {
		return nil, fmt.Errorf("read %s: %w", kind.Lower(), err)
	}
	var err error
	if w.object, err = decode(kind, raw.Raw); err != nil {
		return nil, err
	}
	w.object.SetNamespace(namespace)
	return w, nil
}

func decode(kind cluster.Kind, raw []byte) (client.Object, error) {
	obj := kind.NewObject()
	if err := json.Unmarshal(raw, obj); err != nil {
		return nil, fmt.Errorf("read %s: %w", kind.Lower(), err)
	}
	return obj, nil
}

// add adds a patch, and decides on the object with it from here on.
func (w *write) add(p cluster.Patch) error {
	namespace := w.object.GetNamespace()
	w.extend(p)
	var changed map[string]any
	body, err := json.Marshal(w.asked)
	if err == nil {
		err = json.Unmarshal(body, &changed) // a copy
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", w.kind.Lower(), err)
	}
	for _, part := range parts(w.kind, w.added) {
		put(changed, part.path, part.values)
	}
	if body, err = json.Marshal(changed); err != nil {
		return fmt.Errorf("write %s: %w", w.kind.Lower(), err)
	}
	if w.object, err = decode(w.kind, body); err != nil {
		return err
	}
	w.object.SetNamespace(namespace)
	return nil
}

// extend adds to the patch alone; what comes later counts.
func (w *write) extend(p cluster.Patch) {
	w.added = cluster.Patch{
		Annotations: union(w.added.Annotations, p.Annotations), Labels: union(w.added.Labels, p.Labels),
		TemplateAnnotations: union(w.added.TemplateAnnotations, p.TemplateAnnotations),
	}
}

func union(a, b map[string]*string) map[string]*string {
	out := map[string]*string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// operations are the steps of the answer.
func (w *write) operations() []operation { return operations(w.asked, w.kind, w.added) }

// put sets values in the map at a path, and removes those that are nil.
func put(object map[string]any, path []string, values map[string]*string) {
	for _, field := range path {
		inner, ok := object[field].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[field] = inner
		}
		object = inner
	}
	for key, value := range values {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = *value
	}
}
