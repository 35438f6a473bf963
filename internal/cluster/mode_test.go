package cluster

import (
	"strings"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/stamp"
)

func TestModeOf(t *testing.T) {
	mode := func(m string) map[string]string { return map[string]string{v1.AnnotationMode: m} }
	wave := map[string]string{v1.WaveOptIn: "true"}
	for name, tc := range map[string]struct {
		workload, template, namespace map[string]string
		fallback                      stamp.Mode
		want                          stamp.Mode
		problem                       string // part of the only problem; "" for none
	}{
		"nothing is set: the fallback":                   {fallback: stamp.Roll, want: stamp.Roll},
		"the workload's annotation":                      {workload: mode("roll"), fallback: stamp.Observe, want: stamp.Roll},
		"the template's annotation":                      {template: mode("roll"), fallback: stamp.Observe, want: stamp.Roll},
		"workload and template agree":                    {workload: mode("roll"), template: mode("roll"), want: stamp.Roll},
		"workload and template disagree: the workload's": {workload: mode("observe"), template: mode("roll"), want: stamp.Observe, problem: "remove one of the two"},
		"Wave's opt-in":                                  {workload: wave, fallback: stamp.Observe, want: stamp.Roll},
		"Wave's opt-in on the template is none":          {template: wave, fallback: stamp.Observe, want: stamp.Observe},
		"an own annotation wins over Wave's":             {template: mode("observe"), workload: wave, want: stamp.Observe},
		"Wave's opt-in wins over the namespace":          {workload: wave, namespace: mode("observe"), want: stamp.Roll},
		"the namespace's label":                          {namespace: mode("roll"), fallback: stamp.Observe, want: stamp.Roll},
		"a workload opts out in a rolling namespace":     {workload: mode("observe"), namespace: mode("roll"), want: stamp.Observe},
		"pin": {workload: mode("pin"), want: stamp.Pin},
		"an unparsable annotation observes, and is said":  {workload: mode("rol"), fallback: stamp.Roll, want: stamp.Observe, problem: `"rol" as annotation on the workload is no mode`},
		"an empty annotation observes, and is said":       {template: mode(""), fallback: stamp.Roll, want: stamp.Observe, problem: "pod template is no mode"},
		"an unparsable label observes, and is said":       {namespace: mode("Roll"), fallback: stamp.Roll, want: stamp.Observe, problem: "label on the namespace"},
		"an unparsable label under an annotation is idle": {workload: mode("roll"), namespace: mode("x"), want: stamp.Roll},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := ModeOf(tc.workload, tc.template, tc.namespace, tc.fallback)
			if got != tc.want {
				t.Errorf("mode %q, want %q", got, tc.want)
			}
			switch text := strings.Join(problems, "\n"); {
			case tc.problem == "" && text != "":
				t.Errorf("problem %q, want none", text)
			case tc.problem != "" && (len(problems) != 1 || !strings.Contains(text, tc.problem)):
				t.Errorf("problems %q, want one with %q", problems, tc.problem)
			}
		})
	}
}

func TestLostMode(t *testing.T) {
	says := func(m string) map[string]string { return map[string]string{v1.AnnotationMode: m} }
	left := func(m stamp.Mode) *stamp.Record { return &stamp.Record{Mode: m} }
	for name, tc := range map[string]struct {
		workload       map[string]string
		chosen         stamp.Mode
		record         *stamp.Record
		marked, intact bool
		want           stamp.Mode
	}{
		"a rollback took the annotation: the record's":           {chosen: stamp.Observe, record: left(stamp.Roll), marked: true, want: stamp.Roll},
		"a rollback took the annotation, and nobody chose":       {record: left(stamp.Roll), marked: true, want: stamp.Roll},
		"a rollback to before the first record: roll":            {chosen: stamp.Observe, marked: true, want: stamp.Roll},
		"a record of a time in which it was observed: roll":      {chosen: stamp.Observe, record: left(stamp.Observe), marked: true, want: stamp.Roll},
		"an explicit annotation is obeyed":                       {workload: says("observe"), chosen: stamp.Observe, record: left(stamp.Roll), marked: true},
		"one that is no mode too":                                {workload: says("x"), chosen: stamp.Observe, record: left(stamp.Roll), marked: true},
		"the namespace rolls anyway":                             {chosen: stamp.Roll, record: left(stamp.Roll), marked: true},
		"the record is the one left: the annotation was removed": {chosen: stamp.Observe, record: left(stamp.Roll), marked: true, intact: true},
		"Tidemark was never here":                                {chosen: stamp.Observe},
		"somebody took the label away, which no rollback does":   {chosen: stamp.Observe, record: left(stamp.Roll)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LostMode(tc.workload, tc.chosen, tc.record, tc.marked, tc.intact); got != tc.want {
				t.Errorf("mode %q, want %q", got, tc.want)
			}
		})
	}
}
