package cluster

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

// ConsumptionOf lists what a workload of the namespace uses: the references of its pod template with the objects that
// annotations of the workload or of the template name, and what is consumed of each object. The annotation
// tidemark.dev/whole-object makes every key count. Whoever knows the objects' own annotations leaves out the ignored
// ones with [Heeded]. An error names the annotation that could not be read, and hinders nothing else.
func ConsumptionOf(
	namespace string, annotations map[string]string, template *corev1.PodTemplateSpec,
) ([]workload.Reference, []workload.Consumption, []error) {
	refs := workload.References(namespace, template)
	named, errs := workload.Named(namespace, annotations)
	below, errsBelow := workload.Named(namespace, template.Annotations)
	refs = slices.Concat(refs, named, slices.DeleteFunc(below, func(r workload.Reference) bool {
		return slices.ContainsFunc(named, func(n workload.Reference) bool { return n.Object == r.Object })
	}))
	errs = append(errs, errsBelow...)

	uses := workload.Consumed(refs)
	whole, err := Switch(v1.AnnotationWholeObject, annotations, template.Annotations)
	if err != nil {
		errs = append(errs, err)
	}
	if whole {
		for i := range uses {
			uses[i] = uses[i].Whole()
		}
	}
	return refs, uses, errs
}

// Switch reads a boolean annotation from the first of the sets that has it: the workload's own, then its template's.
func Switch(name string, annotations ...map[string]string) (bool, error) {
	for _, a := range annotations {
		if _, ok := a[name]; !ok {
			continue
		}
		on, problem := flag(a, name)
		if problem != "" {
			return false, errors.New("annotation " + problem)
		}
		return on, nil
	}
	return false, nil
}

// Heeded leaves out the objects that are marked to be ignored.
func Heeded(uses []workload.Consumption, ignored func(workload.Object) bool) []workload.Consumption {
	return slices.DeleteFunc(slices.Clone(uses), func(u workload.Consumption) bool { return ignored(u.Object) })
}
