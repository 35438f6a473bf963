package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// job is stamped when it is created, and never again: its template cannot change.
var job = cluster.Kind{
	GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), TemplatePath: []string{"spec", "template"},
}

// workloads decides about writes of workloads: where the template changes anyway, what the controller would decide is
// decided in the same write.
type workloads struct {
	kinds map[schema.GroupVersionKind]cluster.Kind
	live  *cluster.Live
	clock clock.PassiveClock
	// pinsLack says why it is not known that new pods of a namespace read what their pins say; "" when it is known that they do.
	pinsLack func(namespace string) string
	// tell is told what is decided; not for dry runs.
	tell func(cluster.Kind, client.Object, stamp.Decision, cluster.Patch)
}

func (w *workloads) decide(ctx context.Context, req admission.Request) (answer, error) {
	kind, known := w.kinds[schema.GroupVersionKind(req.Kind)]
	if !known || req.SubResource != "" {
		return answer{outcome: unchanged}, nil
	}
	after, err := readWrite(kind, req.Object, req.Namespace)
	if err != nil {
		return answer{}, err
	}
	if _, err := kind.Template(after.object); err != nil || after.object.GetDeletionTimestamp() != nil {
		return answer{outcome: unchanged}, nil //nolint:nilerr // a template that cannot be read is the controller's to tell of
	}
	dryRun := req.DryRun != nil && *req.DryRun
	switch {
	case req.Operation == admissionv1.Create && kind.GroupVersionKind == job.GroupVersionKind:
		return w.job(ctx, after, dryRun)
	case req.Operation == admissionv1.Create:
		return w.created(ctx, after, dryRun)
	case req.Operation == admissionv1.Update && kind.GroupVersionKind != job.GroupVersionKind:
		return w.updated(ctx, after, req, dryRun)
	}
	return answer{outcome: unchanged}, nil
}

// created decides about a new workload. In mode roll nothing is to be done until something changes. What a copy of another
// workload's manifest carries of Tidemark's does not count when it names snapshots that are not there.
func (w *workloads) created(ctx context.Context, o *write, dryRun bool) (answer, error) {
	f, err := w.live.Look(ctx, o.kind, o.object)
	if err != nil {
		return answer{}, err
	}
	if a, ended := outset(f); ended {
		return a, nil
	}
	if there, err := w.live.Serves(ctx, f.State.Pins); err != nil {
		return answer{}, err
	} else if !there {
		return w.copied(ctx, o, dryRun)
	}
	if f.State.Mode == stamp.Roll && f.State.Record == nil {
		return answer{outcome: settled}, nil
	}
	return w.settle(ctx, o, f, dryRun)
}

// copied decides about a workload that was made from the manifest of another one.
func (w *workloads) copied(ctx context.Context, o *write, dryRun bool) (answer, error) {
	f, err := w.bared(ctx, o)
	if err != nil {
		return answer{}, err
	}
	a, err := w.settle(ctx, o, f, dryRun)
	if a.outcome != stamped {
		a.outcome = stripped
	}
	a.remarks = append(a.remarks, notKept(v1.AnnotationPins+" and "+v1.AnnotationRecord))
	return a, err
}

// bared takes away from an object what another one's manifest had of Tidemark's, and looks at it again.
func (w *workloads) bared(ctx context.Context, o *write) (cluster.Facts, error) {
	err := o.add(cluster.Patch{
		Annotations: map[string]*string{v1.AnnotationRecord: nil}, Labels: map[string]*string{v1.LabelRecordSum: nil},
		TemplateAnnotations: map[string]*string{v1.AnnotationConfigHash: nil, v1.AnnotationPins: nil},
	})
	if err != nil {
		return cluster.Facts{}, err
	}
	return w.live.Look(ctx, o.kind, o.object)
}

func notKept(annotations string) string {
	return annotations + " came from another object, and what names snapshots that are not there is not kept"
}

// updated decides about a change of a workload. A write that leaves the template as it is, such as one of labels, replicas or
// status, is nobody's moment to roll.
func (w *workloads) updated(ctx context.Context, o *write, req admission.Request, dryRun bool) (answer, error) {
	before, err := decode(o.kind, req.OldObject.Raw)
	if err != nil {
		return answer{}, err
	}
	d, err := differenceOf(o.kind, before, o.object)
	if err != nil || !d.any() {
		return answer{outcome: unchanged}, err
	}
	f, err := w.live.Look(ctx, o.kind, o.object)
	if err != nil {
		return answer{}, err
	}
	if a, ended := outset(f); ended {
		return a, nil
	}
	if d.drops() {
		return w.dropped(ctx, o, f, d, dryRun)
	}
	return w.settle(ctx, o, f, dryRun)
}

// dropped decides about a write that leaves out what Tidemark left. Unless it goes back to a revision from before the first
// stamp, that is put back; and where nothing else changes of the template, that is all.
func (w *workloads) dropped(ctx context.Context, o *write, f cluster.Facts, d difference, dryRun bool) (answer, error) {
	if !d.whole {
		if err := w.live.Consumed(ctx, &f); err != nil {
			return answer{}, err
		}
		if decision := stamp.Decide(f.State); decision.Reason == stamp.RolledBack {
			decision, err := w.provide(ctx, f, decision, dryRun)
			if err != nil {
				return answer{}, err
			}
			return w.apply(o, f, decision, dryRun), nil
		}
	}
	if err := o.add(d.dropped); err != nil {
		return answer{}, err
	}
	if !d.template {
		return answer{outcome: kept, patch: o.operations()}, nil
	}
	f, err := w.live.Look(ctx, o.kind, o.object)
	if err != nil {
		return answer{}, err
	}
	a, err := w.settle(ctx, o, f, dryRun)
	if a.outcome == settled {
		a.outcome = kept
	}
	return a, err
}

// outset says whether it is decided already, before anything that the workload consumes is read.
func outset(f cluster.Facts) (answer, bool) {
	switch {
	case f.State.Mode == stamp.Observe:
		return answer{outcome: observed}, true
	case f.Paused != "":
		return answer{outcome: paused}, true
	}
	return answer{}, false
}

// settle decides as the controller does, and adds what is decided to the write.
func (w *workloads) settle(ctx context.Context, o *write, f cluster.Facts, dryRun bool) (answer, error) {
	d, held, err := w.decision(ctx, &f, dryRun)
	if err != nil {
		return answer{}, err
	}
	if held != "" {
		return withoutPins(o, held), nil
	}
	return w.apply(o, f, d, dryRun), nil
}

// apply adds what is decided to the write. The first record of a workload is left to the controller, which waits for the
// objects that come with it.
func (w *workloads) apply(o *write, f cluster.Facts, d stamp.Decision, dryRun bool) answer {
	result := settled
	switch d.Action {
	case stamp.Nothing:
		if d.Reason == stamp.Waiting {
			result = waiting
		}
	case stamp.WriteRecord:
		if d.Reason != stamp.FirstRecord {
			result = recorded
		}
	case stamp.WriteStamp:
		result = stamped
	}
	if result == recorded || result == stamped {
		record := d.Record.Noted(w.clock.Now(), f.State.Namespace, d)
		record.Rolls = d.Record.Rolls // the rollout is the writer's, and no storm of Tidemark's
		p := f.Patch(d, record)
		o.extend(p)
		if !dryRun {
			w.tell(o.kind, o.object, d, p)
		}
	}
	return answer{outcome: result, patch: o.operations()}
}

// withoutPins lets a template go without its first pins, and tells the writer why.
func withoutPins(o *write, why string) answer {
	return answer{outcome: settled, patch: o.operations(), remarks: []string{"it gets no pins yet: " + why}}
}

// job stamps a Job in mode pin, unless it has its pins from what made it, such as a CronJob. It gets no record, as nothing is
// ever decided about it again.
func (w *workloads) job(ctx context.Context, o *write, dryRun bool) (answer, error) {
	f, err := w.live.Look(ctx, o.kind, o.object)
	if err != nil {
		return answer{}, err
	}
	if a, ended := outset(f); ended {
		return a, nil
	}
	if len(f.State.Pins) > 0 && metav1.GetControllerOfNoCopy(o.object) != nil {
		return answer{outcome: settled}, nil
	}
	out := answer{outcome: settled}
	if there, err := w.live.Serves(ctx, f.State.Pins); err != nil {
		return answer{}, err
	} else if !there {
		if f, err = w.bared(ctx, o); err != nil {
			return answer{}, err
		}
		out = answer{outcome: stripped, patch: o.operations(), remarks: []string{notKept(v1.AnnotationPins)}}
	}
	if f.State.Mode != stamp.Pin {
		return out, nil
	}
	d, held, err := w.decision(ctx, &f, dryRun)
	switch {
	case err != nil:
		return answer{}, err
	case held != "":
		lacks := withoutPins(o, held)
		out.patch, out.remarks = lacks.patch, append(lacks.remarks, out.remarks...)
		return out, nil
	case d.Reason == stamp.Waiting && out.outcome == settled:
		return answer{outcome: waiting}, nil
	case d.Action != stamp.WriteStamp:
		return out, nil
	}
	o.extend(cluster.Patch{TemplateAnnotations: f.Patch(d, d.Record).TemplateAnnotations})
	return answer{outcome: stamped, patch: o.operations(), remarks: out.remarks}, nil
}

// decision reads what the workload consumes and decides. The snapshots of a decision are there when this returns, and so are those
// that the template names without a change to it; those of a dry run are named as they would be, and not made. held says why the workload must wait for its first pins: the pods of this
// write would not read them, and nothing would replace these pods later. The controller sees to it then.
func (w *workloads) decision(ctx context.Context, f *cluster.Facts, dryRun bool) (d stamp.Decision, held string, err error) {
	if err := w.live.Consumed(ctx, f); err != nil {
		return d, "", err
	}
	d = stamp.Decide(f.State)
	if d.Action == stamp.WriteStamp && d.Reason == stamp.FirstPin {
		if held = w.pinsLack(f.State.Namespace); held != "" {
			return d, held, nil
		}
	}
	d, err = w.provide(ctx, *f, d, dryRun)
	return d, "", err
}

// provide makes the snapshots of a decision, but not for a dry run.
func (w *workloads) provide(ctx context.Context, f cluster.Facts, d stamp.Decision, dryRun bool) (stamp.Decision, error) {
	if dryRun {
		return cluster.Foresee(f.State, d), nil
	}
	return w.live.Pin(ctx, f, d, w.clock.Now())
}
