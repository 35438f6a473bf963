package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// ofTheRollout are the annotations that count on a Rollout itself when its template is elsewhere. All others of Tidemark's stand
// on what has the template.
var ofTheRollout = []string{
	v1.AnnotationPaused, v1.AnnotationPausedBy, v1.AnnotationRolloutBudget, v1.AnnotationUnfinishedAfter, v1.AnnotationPromoteAfter,
}

// misplaced are the annotations that say something of a template on a Rollout that does not have it.
var misplaced = []string{
	v1.AnnotationMode, v1.AnnotationExtraConfigMaps, v1.AnnotationExtraSecrets, v1.AnnotationWholeObject, v1.AnnotationReloads,
}

// Problems words what is wrong with a workload whose template is elsewhere: annotations that belong there, or an object there
// of which nothing is known.
func (e *ElsewhereError) Problems(annotations map[string]string) []string {
	if !e.Known() {
		return []string{e.Error()}
	}
	var out []string
	for _, name := range misplaced {
		if _, has := annotations[name]; has {
			out = append(out, fmt.Sprintf("annotation %s has no effect here: put it on deployment/%s, which has the pod template", name, e.Name))
		}
	}
	return out
}

// followElsewhere gives the Rollouts that take their template from a Deployment what that one says: the template, and the
// record of what Tidemark left on it.
func (r *reading) followElsewhere(ctx context.Context) error {
	listed := map[client.ObjectKey]*seen{}
	for _, s := range r.seen {
		if s.Kind.GroupVersionKind == deployment {
			listed[client.ObjectKey{Namespace: s.Namespace, Name: s.Name}] = s
		}
	}
	for _, s := range r.seen {
		if s.elsewhere == nil {
			continue
		}
		s.problems = append(s.problems, s.elsewhere.Problems(s.annotations)...)
		if !s.elsewhere.Known() {
			continue
		}
		key := client.ObjectKey{Namespace: s.Namespace, Name: s.elsewhere.Name}
		holder := listed[key]
		if holder == nil {
			var err error
			if holder, err = r.getHolder(ctx, key); err != nil {
				return err
			}
		}
		s.takeFrom(holder)
		holder.referred = true
	}
	return nil
}

// getHolder reads a Deployment that is not among the workloads looked at. One that cannot be read is blind.
func (r *reading) getHolder(ctx context.Context, key client.ObjectKey) (*seen, error) {
	d := &appsv1.Deployment{}
	err := r.Client.Get(ctx, key, d)
	switch {
	case apierrors.IsNotFound(err):
		return &seen{blind: fmt.Sprintf("its pod template is that of deployment/%s (spec.workloadRef), which does not exist", key.Name)}, nil
	case apierrors.IsForbidden(err):
		return &seen{blind: Right{Verb: "get", Resource: "deployment/" + key.Name, Namespace: key.Namespace}.Missing()}, nil
	case err != nil:
		return nil, fmt.Errorf("get deployment/%s: %w", key.Name, err)
	}
	apart := &reading{Survey: r.Survey}
	apart.see(BuiltinKinds()[0], d)
	return apart.seen[0], nil
}

// takeFrom makes what a Deployment says of the template, and what is left on it, that of the Rollout.
func (s *seen) takeFrom(holder *seen) {
	own := s.annotations
	s.annotations, s.labels = maps.Clone(holder.annotations), maps.Clone(holder.labels)
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	for _, name := range ofTheRollout {
		if value, has := own[name]; has {
			s.annotations[name] = value
		}
	}
	s.template, s.references, s.uses, s.pins = holder.template, holder.references, holder.uses, holder.pins
	s.problems = append(s.problems, holder.problems...)
	if s.selector == nil {
		s.selector = holder.selector
	}
	if holder.blind != "" {
		s.blind = holder.blind
	}
	// The Rollout's controller may not have heard yet that the template is another one.
	s.rollout.Done = s.rollout.Done && s.observes == fmt.Sprint(holder.generation)
}

// hideHolders leaves out the Deployments that are nothing but the place of a Rollout's template: scaled to none, as Argo asks
// for, and without pods. One that is named is shown.
func (r *reading) hideHolders(context.Context) error {
	if len(r.Targets) == 0 {
		r.seen = slices.DeleteFunc(r.seen, func(s *seen) bool { return s.referred && s.pace.Replicas == 0 && len(s.pods) == 0 })
	}
	return nil
}

// readUnfinished reads the revisions of workloads of which more than one may run for long.
func (r *reading) readUnfinished(ctx context.Context) error {
	for _, s := range r.seen {
		if s.suspect == nil {
			continue
		}
		after, _ := UnfinishedAfter(s.annotations, s.template) // a problem of it is told already
		var err error
		s.partial, err = PartialOf(ctx, r.Client, s.suspect, after)
		needs := Right{"list", "", s.Namespace, "how long rollouts have been unfinished is unknown"}
		var forbidden *unreadableRevisionsError
		if errors.As(err, &forbidden) {
			needs.Resource, err = forbidden.resource, forbidden.error
		}
		if _, err := r.permitted(err, needs); err != nil {
			return err
		}
	}
	return nil
}
