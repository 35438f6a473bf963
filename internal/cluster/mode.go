package cluster

import (
	"fmt"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/stamp"
)

// ModeOf resolves the mode of a workload: the annotation on the workload, else on its pod template, else Wave's opt-in,
// else the label on the namespace, else the fallback. Where workload and template disagree the workload's wins. A value
// that is no mode gives [stamp.Observe], so that nothing is written by mistake. Each problem names where the value
// stands, the value, and what to write in its place.
func ModeOf(workload, template, namespaceLabels map[string]string, fallback stamp.Mode) (stamp.Mode, []string) {
	const onWorkload, onTemplate = "annotation on the workload", "annotation on the pod template"
	own, hasOwn := workload[v1.AnnotationMode]
	below, hasBelow := template[v1.AnnotationMode]
	switch {
	case hasOwn:
		mode, problems := parseMode(own, onWorkload)
		if hasBelow && below != own {
			problems = append(problems, fmt.Sprintf(
				"%s is %q on the workload and %q on the pod template: the workload's counts; remove one of the two",
				v1.AnnotationMode, own, below))
		}
		return mode, problems
	case hasBelow:
		return parseMode(below, onTemplate)
	case workload[v1.WaveOptIn] == v1.True:
		return stamp.Roll, nil
	}
	if label, ok := namespaceLabels[v1.LabelMode]; ok {
		return parseMode(label, "label on the namespace")
	}
	return fallback, nil
}

// LostMode is the mode that a rollback took away from a workload, to be put back; "" where none did. A rollback of a
// Deployment puts the annotations of another time back, and with them the record, which the checksum in the label (marked:
// there is one) then no longer fits. So a mode that the workload's own annotations do not state is no opt-out: it is the
// record's, else roll. An explicit one is obeyed, and so is any other choice than to observe; chosen is "" where there is none.
func LostMode(workload map[string]string, chosen stamp.Mode, record *stamp.Record, marked, intact bool) stamp.Mode {
	_, says := workload[v1.AnnotationMode]
	switch {
	case says || !marked || intact || chosen != "" && chosen != stamp.Observe:
		return ""
	case record != nil && record.Mode != stamp.Observe:
		return record.Mode
	}
	return stamp.Roll
}

func parseMode(value, where string) (stamp.Mode, []string) {
	switch value {
	case v1.ModeObserve:
		return stamp.Observe, nil
	case v1.ModeRoll:
		return stamp.Roll, nil
	case v1.ModePin:
		return stamp.Pin, nil
	}
	return stamp.Observe, []string{fmt.Sprintf(
		"%s: %q as %s is no mode, so the workload is only observed; write %q, %q or %q",
		v1.AnnotationMode, value, where, v1.ModeObserve, v1.ModeRoll, v1.ModePin)}
}

// flag reads a boolean annotation: only "true" switches it on, and anything but "true" and "false" is a problem.
func flag(annotations map[string]string, name string) (on bool, problem string) {
	switch value := annotations[name]; value {
	case v1.True:
		return true, ""
	case "", "false":
		return false, ""
	default:
		return false, fmt.Sprintf("%s: %q is neither \"true\" nor \"false\" and is taken as \"false\"", name, value)
	}
}
