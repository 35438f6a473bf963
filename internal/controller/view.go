package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// view is all that a decision about a workload stands on, as the index has it at one moment.
type view struct {
	state stamp.State
	// pinned says that the pod template carries pins, be they readable or not.
	pinned bool
	// problems are what cannot be read, for people.
	problems []string
	// blind says why nothing may be decided; "" when something may.
	blind string
	// changed is when the content of any of the objects was last seen to change.
	changed time.Time
	// paused says who stopped all writes, or that somebody did; "" when nobody.
	paused string
	// optIn is set when a rollback took the workload's mode annotation away: the mode to put back.
	optIn stamp.Mode
	// scheduler is the one that Wave took away, to be put back when nothing is missing; nil when it did not.
	scheduler *string
}

// enables reports whether the scheduler that Wave took away may be put back, beside what is decided.
func (v view) enables(d stamp.Decision) bool {
	return v.scheduler != nil && v.paused == "" && d.Reason != stamp.Observed && d.Reason != stamp.Waiting
}

// view gathers what is known of a workload.
func (c *Controller) view(s *subject) view {
	v := view{problems: cluster.RolloutProblems(s.object)}
	if s.referred(&v) {
		return v
	}
	if s.bad != nil {
		v.problems = append(v.problems, s.bad.Error())
		v.blind = s.bad.Error()
		return v
	}
	template, err := s.kind.Template(s.object)
	if err != nil { // as when it was taken in
		v.blind = err.Error()
		return v
	}
	for _, p := range s.problems {
		v.problems = append(v.problems, p.Error())
	}
	v.state = stamp.State{
		Namespace: s.id.Namespace,
		Stamp:     template.Annotations[v1.AnnotationConfigHash],
		Images:    images(&template.Spec),
	}
	v.scheduler = cluster.WaveScheduler(s.object.GetAnnotations(), template)
	_, v.pinned = template.Annotations[v1.AnnotationPins]
	if v.state.Pins, err = snapshot.ParsePins(s.id.Namespace, template.Annotations[v1.AnnotationPins]); err != nil {
		v.problems = append(v.problems, "pod template: "+err.Error())
	}
	c.readRecord(s, template.Annotations, &v)
	v.paused = cluster.PausedBy(s.object.GetAnnotations(), s.object.GetLabels(),
		c.index.namespace(s.id.Namespace).annotations, c.index.namespace(c.options.Namespace).annotations)
	if v.paused == "" {
		v.paused = c.pausedByReferrer(s.id)
	}
	c.readObjects(s, &v)
	return v
}

func (c *Controller) readRecord(s *subject, template map[string]string, v *view) {
	annotations, labels := s.object.GetAnnotations(), s.object.GetLabels()
	sum, marked := labels[v1.LabelRecordSum]
	record, intact, err := stamp.Parse(annotations[v1.AnnotationRecord], sum)
	v.state.Record, v.state.Intact, v.state.Marked = record, intact, marked
	if err != nil {
		v.problems = append(v.problems, err.Error())
		v.blind = err.Error()
	}
	mode, problems := cluster.ModeOf(annotations, template, c.index.namespace(s.id.Namespace).labels, c.options.DefaultMode)
	v.state.Mode = mode
	v.problems = append(v.problems, problems...)
	if v.optIn = cluster.LostMode(annotations, mode, record, marked, intact); v.optIn != "" {
		v.state.Mode = v.optIn
	}
}

func (c *Controller) readObjects(s *subject, v *view) {
	if !c.watcher.knowsNamespaces() { // any may be paused, or observed only
		v.blind = "namespaces are not known yet"
	}
	if !c.watcher.knows(workload.ConfigMap) {
		v.blind = "ConfigMaps are not known yet"
	}
	for _, use := range s.uses {
		if use.Object.Kind == workload.Secret {
			if !c.options.Secrets {
				continue
			}
			if !c.watcher.knows(workload.Secret) {
				v.blind = "Secrets cannot be read (yet), and it consumes " + use.Object.Relative(s.id.Namespace)
			}
		}
		content, setting, changed := c.index.content(use.Object, c.options.Key)
		if setting.Problem != "" {
			v.problems = append(v.problems, use.Object.Relative(s.id.Namespace)+": "+setting.Problem)
		}
		if setting.Ignore {
			continue
		}
		if changed.After(v.changed) {
			v.changed = changed
		}
		v.state.Objects = append(v.state.Objects, stamp.Object{
			Use: use, Applied: content, Live: setting.Live(), Versioned: setting.Versioned(),
			Pinned: c.index.pinned(use.Object, v.state.Pins[use.Object]),
		})
	}
}

// addRevisions reads the retained revisions from the API, when the decision depends on them.
func (c *Controller) addRevisions(ctx context.Context, s *subject, v *view) error {
	st := &v.state
	if !st.NeedsRevisions() {
		return nil
	}
	revisions, err := cluster.Retained(ctx, c.reader, s.object)
	if err != nil {
		return fmt.Errorf("read revisions of %s: %w", s.id, err)
	}
	st.Revisions = revisions
	return nil
}

func images(spec *corev1.PodSpec) []string {
	var out []string
	for i := range spec.InitContainers {
		out = append(out, spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		out = append(out, spec.Containers[i].Image)
	}
	return out
}
