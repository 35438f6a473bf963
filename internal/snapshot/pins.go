package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

// Pins say for config objects of one namespace which object a pod reads in place of each: the name of a snapshot, or
// [v1.AbsentName].
type Pins map[workload.Object]string

// ParsePins reads the value of [v1.AnnotationPins] on a pod, or a pod template, of the namespace: "configmap/NAME=SNAPSHOT"
// or "secret/NAME=SNAPSHOT", comma separated. The empty text has no pins. An error names the entry, and no pins are
// returned with it: a text that is half understood must not be acted upon.
func ParsePins(namespace, text string) (Pins, error) {
	if text == "" {
		return nil, nil
	}
	pins := Pins{}
	for entry := range strings.SplitSeq(text, ",") {
		object, name, ok := strings.Cut(entry, "=")
		if !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("annotation %s: entry %q: want configmap/NAME=SNAPSHOT or secret/NAME=SNAPSHOT", v1.AnnotationPins, entry)
		}
		o, err := workload.ParseObject(object, namespace)
		switch {
		case err != nil:
			return nil, fmt.Errorf("annotation %s: entry %q: %w", v1.AnnotationPins, entry, err)
		case strings.Count(object, "/") > 1:
			return nil, fmt.Errorf("annotation %s: entry %q: objects of other namespaces cannot be pinned", v1.AnnotationPins, entry)
		}
		if _, again := pins[o]; again {
			return nil, fmt.Errorf("annotation %s: %s is named twice", v1.AnnotationPins, object)
		}
		pins[o] = name
	}
	return pins, nil
}

// String is the text that [ParsePins] reads back, its entries sorted: equal pins have equal texts.
func (p Pins) String() string {
	entries := make([]string, 0, len(p))
	for _, o := range slices.SortedFunc(maps.Keys(p), workload.Object.Compare) {
		entries = append(entries, o.Relative(o.Namespace)+"="+p[o])
	}
	return strings.Join(entries, ",")
}
