package webhook

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// stampKeys are the annotations of a pod template that are Tidemark's.
var stampKeys = []string{v1.AnnotationConfigHash, v1.AnnotationPins}

// difference is what a write changes of what is decided on here.
type difference struct {
	// template says that the pod template changes in more than what Tidemark left on it.
	template bool
	// moved says that the template's stamp is another one, as after going back to a revision that differs in nothing else.
	moved bool
	// dropped is what the writer's version of the template is without, and the one before had: to be put back. A program that
	// writes whole templates, or whole objects, and does not know of Tidemark leaves it out without meaning to.
	dropped cluster.Patch
	// whole says that nothing at all is left of what Tidemark left on the workload. No rollback does that, since it leaves the
	// labels; one to a revision from before the first stamp does leave out the stamp.
	whole bool
}

// any reports whether there is anything to decide.
func (d difference) any() bool { return d.template || d.moved || d.drops() }

// drops reports whether anything is to be put back.
func (d difference) drops() bool { return d.whole || len(d.dropped.TemplateAnnotations) > 0 }

// differenceOf compares a workload before and after a write.
func differenceOf(kind cluster.Kind, before, after client.Object) (difference, error) {
	old, err := kind.Template(before)
	if err != nil {
		// It could not be read, and now it can: that is a new template.
		return difference{template: true}, nil //nolint:nilerr // as said
	}
	now, err := kind.Template(after)
	if err != nil {
		return difference{}, err
	}
	d := difference{template: !sameButForStamp(old, now)}
	d.dropped, d.whole = dropped(before, after, old, now)
	for _, key := range stampKeys {
		d.moved = d.moved || !d.drops() && old.Annotations[key] != now.Annotations[key]
	}
	return d, nil
}

// sameButForStamp compares pod templates without what Tidemark leaves on them.
func sameButForStamp(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutStamp(a), withoutStamp(b))
}

func withoutStamp(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	bare := *t
	bare.Annotations = make(map[string]string, len(t.Annotations))
	for key, value := range t.Annotations {
		bare.Annotations[key] = value
	}
	for _, key := range stampKeys {
		delete(bare.Annotations, key)
	}
	return &bare
}

// dropped gives what a write leaves out of what Tidemark left; whole says that it leaves out all of it. A record that is no
// longer the one that was left, and a mode that asks for nothing to be written, speak for themselves: nothing is dropped then.
func dropped(before, after client.Object, old, now *corev1.PodTemplateSpec) (p cluster.Patch, whole bool) {
	record, sum := before.GetAnnotations()[v1.AnnotationRecord], before.GetLabels()[v1.LabelRecordSum]
	record2, sum2 := after.GetAnnotations()[v1.AnnotationRecord], after.GetLabels()[v1.LabelRecordSum]
	_, intact, err := stamp.Parse(record, sum)
	whole = record2 == "" && sum2 == ""
	if err != nil || !intact || hasStamp(now) || after.GetAnnotations()[v1.AnnotationMode] == v1.ModeObserve ||
		!whole && (record2 != record || sum2 != sum) {
		return cluster.Patch{}, false
	}
	p.TemplateAnnotations = map[string]*string{}
	for _, key := range stampKeys {
		if value, had := old.Annotations[key]; had {
			p.TemplateAnnotations[key] = &value
		}
	}
	if whole {
		p.Annotations, p.Labels = map[string]*string{v1.AnnotationRecord: &record}, map[string]*string{v1.LabelRecordSum: &sum}
	}
	return p, whole
}

func hasStamp(t *corev1.PodTemplateSpec) bool {
	for _, key := range stampKeys {
		if _, has := t.Annotations[key]; has {
			return true
		}
	}
	return false
}
