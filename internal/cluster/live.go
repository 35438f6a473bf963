package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Live gathers what a decision about a workload stands on by reads of the API, for who follows no watches. A look is one
// request for the namespace and one for Tidemark's own, and one for the Rollouts beside a Deployment that is scaled to none;
// what it consumes is one for each object, one for each snapshot that the template names and that is no copy of what is
// applied, and one for the retained revisions where they decide. To pin is one more for each snapshot that is to be there.
type Live struct {
	// Copier reads config objects.
	Copier *Copier
	// Namespace is Tidemark's own.
	Namespace string
	// DefaultMode is the mode of workloads for which nothing else says one.
	DefaultMode stamp.Mode
	// Secrets says whether Secrets are read; without, references to them are as if they were not there.
	Secrets bool
}

// Facts is what was gathered of a workload. The controller's view of it, made of what it watched, is the same.
type Facts struct {
	State stamp.State
	// Paused says who stopped all writes, or that somebody did; "" when nobody.
	Paused string
	// LostMode is the mode that a rollback took away, to be put back; "" where none did.
	LostMode stamp.Mode
	// Pinned says that the pod template carries pins, be they readable or not.
	Pinned bool

	// Object is the workload, Template its pod template.
	Object   client.Object
	Template *corev1.PodTemplateSpec

	// sources are the objects that were read.
	sources map[workload.Object]Source
}

// ConfigMap is one that the workload consumes, nil when it is not there; read says that it was looked for.
func (f Facts) ConfigMap(o workload.Object) (cm *corev1.ConfigMap, read bool) {
	if o.Kind != workload.ConfigMap {
		return nil, false
	}
	source, read := f.sources[o]
	return source.configMap, read
}

// Look reads what a workload, as it is handed in, says itself, with the mode and the pauses of namespaces. [Live.Consumed]
// adds what it consumes. An error is a template or a record that cannot be read, or a read that failed.
func (l *Live) Look(ctx context.Context, kind Kind, obj client.Object) (Facts, error) {
	template, err := kind.Template(obj)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Object: obj, Template: template, sources: map[workload.Object]Source{}}
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	f.State = stamp.State{
		Namespace: obj.GetNamespace(), Stamp: template.Annotations[v1.AnnotationConfigHash], Images: images(&template.Spec),
	}
	_, f.Pinned = template.Annotations[v1.AnnotationPins]
	// Pins that cannot be read are as none; the controller tells.
	f.State.Pins, _ = snapshot.ParsePins(obj.GetNamespace(), template.Annotations[v1.AnnotationPins])

	sum, marked := labels[v1.LabelRecordSum]
	record, intact, err := stamp.Parse(annotations[v1.AnnotationRecord], sum)
	if err != nil {
		return Facts{}, err
	}
	f.State.Record, f.State.Intact, f.State.Marked = record, intact, marked

	own, err := l.place(ctx, obj.GetNamespace())
	if err != nil {
		return Facts{}, err
	}
	f.State.Mode, _ = ModeOf(annotations, template.Annotations, own.Labels, l.DefaultMode)
	if f.LostMode = LostMode(annotations, f.State.Mode, record, marked, intact); f.LostMode != "" {
		f.State.Mode = f.LostMode
	}
	if f.State.Mode == stamp.Observe {
		return f, nil
	}
	system, err := l.place(ctx, l.Namespace)
	if f.Paused = PausedBy(annotations, labels, own.Annotations, system.Annotations); f.Paused == "" && err == nil {
		f.Paused, err = l.pausedByRollout(ctx, obj)
	}
	return f, err
}

// pausedByRollout says who paused a Rollout that takes its template from the Deployment. Only for one that is scaled to none, as
// Argo asks for, are the Rollouts of its namespace listed, so that no other costs a request.
func (l *Live) pausedByRollout(ctx context.Context, obj client.Object) (paused string, err error) {
	d, is := obj.(*appsv1.Deployment)
	if !is || d.Spec.Replicas == nil || *d.Spec.Replicas != 0 {
		return "", nil
	}
	err = EachItem(ctx, l.Copier.Client, RolloutKind.NewList, PageSize, func(u *unstructured.Unstructured) {
		if e := elsewhere(u); paused == "" && e != nil && e.Known() && e.Name == d.Name {
			paused = PausedBy(u.GetAnnotations(), u.GetLabels(), nil, nil)
		}
	}, client.InNamespace(d.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return "", fmt.Errorf("list rollouts: %w", err)
	}
	return paused, nil
}

// place reads a namespace; one that is not there says nothing.
func (l *Live) place(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	m := MetadataOf(NamespaceKind)
	err := l.Copier.Client.Get(ctx, client.ObjectKey{Name: name}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		return m, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return m, nil
}

// images are those of a pod template in the order of the record.
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

// Consumed adds the content of what the workload consumes, and its retained revisions when the decision depends on them. A
// workload without a UID is only being created, and has none.
func (l *Live) Consumed(ctx context.Context, f *Facts) error {
	var uses []workload.Consumption
	_, all, _ := ConsumptionOf(f.State.Namespace, f.Object.GetAnnotations(), f.Template)
	for _, use := range all {
		if use.Object.Kind != workload.Secret || l.Secrets {
			uses = append(uses, use)
		}
	}
	if err := l.readAll(ctx, uses, f); err != nil {
		return err
	}
	if f.Object.GetUID() == "" || !f.State.NeedsRevisions() {
		return nil
	}
	var err error
	if f.State.Revisions, err = Retained(ctx, l.Copier.Client, f.Object); err != nil {
		return fmt.Errorf("read revisions: %w", err)
	}
	return nil
}

// Pin makes the snapshots that a decision on the facts asks for, or that the template names already and that are gone, of what was
// read for them: see [Copier.Pin].
func (l *Live) Pin(ctx context.Context, f Facts, d stamp.Decision, now time.Time) (stamp.Decision, error) {
	return l.Copier.pin(ctx, f.State, d, f.sources, l.Copier.NextRevision, now)
}

// atOnce bounds how many reads of one look are under way at the same time.
const atOnce = 8

// readAll reads the objects side by side, and leaves out those that are marked to be ignored.
func (l *Live) readAll(ctx context.Context, uses []workload.Consumption, f *Facts) error {
	found := make([]consumed, len(uses))
	var wait sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i, use := range uses {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			found[i] = l.read(ctx, use, f.State.Pins[use.Object])
		})
	}
	wait.Wait()
	var errs []error
	for _, o := range found {
		errs = append(errs, o.err)
		if o.err == nil && !o.setting.Ignore {
			f.State.Objects = append(f.State.Objects, stamp.Object{
				Use: o.use, Applied: o.source.Content, Live: o.setting.Live(), Versioned: o.setting.Versioned(), Pinned: o.pinned,
			})
			f.sources[o.use.Object] = o.source
		}
	}
	return errors.Join(errs...)
}

// consumed is an object that a workload consumes, as it was read.
type consumed struct {
	use     workload.Consumption
	source  Source
	setting Setting
	// pinned is what the snapshot holds that the template pins it to; nil when that is not known.
	pinned *digest.Content
	err    error
}

func (l *Live) read(ctx context.Context, use workload.Consumption, pin string) consumed {
	o := consumed{use: use}
	if o.source, o.err = l.Copier.Read(ctx, use.Object); o.err != nil {
		return o
	}
	o.setting = SettingOf(use.Object.Kind, o.source.metadata())
	o.pinned, o.err = l.pinned(ctx, use.Object, o.source.Content, pin)
	return o
}

// metadata is that of the object that was read; of an absent one its name.
func (s Source) metadata() metav1.Object {
	switch {
	case s.configMap != nil:
		return s.configMap
	case s.secret != nil:
		return s.secret
	}
	return &metav1.ObjectMeta{Name: s.Object.Name}
}

// pinned reads what the snapshot of that name holds of an object; nil when there is none. One whose name says that it holds
// what is applied is not read: what it holds is known, if it is there. [Live.Pin] sees to that.
func (l *Live) pinned(ctx context.Context, o workload.Object, applied digest.Content, name string) (*digest.Content, error) {
	if name == "" || name == v1.AbsentName || isCopyOf(name, o, applied) {
		return nil, nil
	}
	copied, err := l.Copier.Read(ctx, workload.Object{Kind: o.Kind, Namespace: o.Namespace, Name: name})
	if err != nil || copied.snapshotOf() != o {
		return nil, err
	}
	return &copied.Content, nil
}

// snapshotOf is the object of which this is the snapshot; the zero value when it is none.
func (s Source) snapshotOf() workload.Object {
	var of *snapshot.Snapshot
	switch {
	case s.configMap != nil:
		of = SnapshotOf(workload.ConfigMap, s.configMap, s.configMap.Immutable)
	case s.secret != nil:
		of = SnapshotOf(workload.Secret, s.secret, s.secret.Immutable)
	}
	if of == nil {
		return workload.Object{}
	}
	return of.Source
}

// Serves reports whether every object that the pins name is there.
func (l *Live) Serves(ctx context.Context, pins snapshot.Pins) (bool, error) {
	for o, name := range pins {
		if name == v1.AbsentName {
			continue
		}
		if there, err := l.Copier.isThere(ctx, pinnedAs(o, name)); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// Foresee names the snapshots that a decision asks for as they would be named, and makes none. Where something else has such
// a name, the snapshot would get another.
func Foresee(state stamp.State, d stamp.Decision) stamp.Decision {
	names := map[workload.Object]string{}
	for _, o := range state.Objects {
		names[o.Use.Object] = v1.AbsentName
		if o.Applied.Present {
			names[o.Use.Object] = snapshot.Name(o.Use.Object, o.Applied.Whole(o.Use.Object), 0)
		}
	}
	return d.Pinned(names)
}

// Patch is the write of a decision: the record, and with [stamp.WriteStamp] the stamp.
func (f Facts) Patch(d stamp.Decision, record stamp.Record) Patch {
	annotation, sum := stamp.Encode(record)
	p := Patch{Labels: map[string]*string{v1.LabelRecordSum: &sum}}
	p.Set(v1.AnnotationRecord, &annotation)
	if f.LostMode != "" {
		mode := string(f.LostMode)
		p.Set(v1.AnnotationMode, &mode)
	}
	if d.Action == stamp.WriteStamp {
		p.TemplateAnnotations = map[string]*string{v1.AnnotationConfigHash: &d.Stamp}
		if pins := d.Pins.String(); pins != "" {
			p.TemplateAnnotations[v1.AnnotationPins] = &pins
		} else if f.Pinned {
			p.TemplateAnnotations[v1.AnnotationPins] = nil
		}
	}
	return p
}
