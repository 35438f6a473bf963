package helm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// Survey reads the releases of a cluster, by the metadata of Helm's records. Of what is pending it also reads the record itself, for the
// hooks that may run, and the pod of the guard's job.
type Survey struct {
	Client client.Reader
	// Now is the API server's clock.
	Now func() time.Time
	// Namespace to look at; "" for all.
	Namespace string
	// Name of the only release to look at; "" for all.
	Name string
	// Before is what the lease of that release was before the caller took it over, and counts in its place; nil where the caller
	// has not.
	Before *Before
}

// Before is what a guard's lease was before another took it.
type Before struct {
	// Lease of the deploy before; nil when there was none.
	Lease *release.Lease
	// Problem says why it cannot be read; "" when it can.
	Problem string
}

// Release is one release with what its records and its guard's Lease say.
type Release struct {
	types.NamespacedName
	release.Input
	// Foreign names another tool that owns the release and recovers it by its own rules; "" for none, or nothing is pending.
	Foreign string
	// PodEnd is what ended the pod of the lease's job, in Kubernetes' words, such as "EvictionByEvictionAPI" or "OOMKilled"; "" where
	// that is not known.
	PodEnd string
	// Formers are deploys before that of the lease whose starters are to be told what became of them.
	Formers []Former
}

// Sight is what a survey found.
type Sight struct {
	Now time.Time
	// Releases by namespace and name.
	Releases []Release
	// Unrecorded are leases of guards whose releases have no record: a first install has written nothing yet, or all is gone. It is
	// empty where not all records may be listed.
	Unrecorded []Release
	// Refused are the kinds of object, of those in which Helm keeps its records, that may not be listed.
	Refused []string
	// Remarks say what could not be told.
	Remarks []string
}

// Find returns the releases. What one record or one Lease says wrongly stops no other; a record from which not even a release can
// be told is a remark, and so is a kind that may not be listed. That neither Secrets nor ConfigMaps may be is an error.
func (s Survey) Find(ctx context.Context) (*Sight, error) {
	found := map[types.NamespacedName]*Release{}
	sight := &Sight{}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		switch err := s.records(ctx, kind, found, sight); {
		case apierrors.IsForbidden(err):
			sight.Refused = append(sight.Refused, kind)
			sight.remark("missing the right to list %s %s: releases that Helm keeps there are not shown", plural(kind), s.where())
		case err != nil:
			return nil, fmt.Errorf("list Helm's records in %s %s: %w", plural(kind), s.where(), err)
		}
	}
	if len(sight.Refused) == 2 {
		return nil, fmt.Errorf("missing the right to list secrets and configmaps %s: Helm's records are in one of them; grant it with a Role", s.where())
	}
	if err := s.leases(ctx, found, sight); err != nil {
		return nil, err
	}
	if len(sight.Refused) > 0 {
		sight.Unrecorded = nil
	}
	sight.Now = s.Now()
	for _, r := range found {
		r.Now = sight.Now
		if s.Before != nil {
			r.Lease, r.LeaseProblem = s.Before.Lease, s.Before.Problem
		}
		s.evidence(ctx, r, sight)
		sight.Releases = append(sight.Releases, *r)
	}
	slices.SortFunc(sight.Releases, func(a, b Release) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(sight.Remarks)
	sight.Remarks = slices.Compact(sight.Remarks)
	return sight, nil
}

// evidence reads what proves life or death of what is pending. What cannot be read stays unknown.
func (s Survey) evidence(ctx context.Context, r *Release, sight *Sight) {
	v := release.Judge(r.Input)
	if l := r.Lease; l != nil && (v.Operation != release.NoOperation || l.Cancelled() && r.Now.Sub(l.Finished.Time) < formersKept) {
		r.PodEnd = podEnd(ctx, s.Client, l.Pod)
	}
	if v.Operation == release.NoOperation {
		return
	}
	in := look(ctx, s.Client, r.Namespace, v.Newest)
	r.HookActive, r.HookProblem, r.Foreign = in.hookActive, in.problem, in.foreign
	if r.Lease == nil {
		return
	}
	var problem string
	if r.Life, problem = life(ctx, s.Client, r.Lease.Pod); problem != "" {
		sight.remark("whether the job of a deploy still runs is unknown: %s", problem)
	}
}

func (s *Sight) remark(format string, args ...any) {
	s.Remarks = append(s.Remarks, fmt.Sprintf(format, args...))
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }

func (s Survey) where() string {
	if s.Namespace == "" {
		return "in all namespaces"
	}
	return "in namespace " + s.Namespace
}

// records takes in the records of one kind of object, page by page.
func (s Survey) records(ctx context.Context, kind string, found map[types.NamespacedName]*Release, sight *Sight) error {
	selected := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels(helmrecord.Labels(""))}
	if kind == "Secret" { // ConfigMaps have no type; for them the label must do
		selected = append(selected, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", string(helmrecord.SecretType))})
	}
	return cluster.EachItem(ctx, s.Client, cluster.MetadataList(corev1.SchemeGroupVersion.WithKind(kind)), cluster.PageSize,
		func(m *metav1.PartialObjectMetadata) { s.take(kind, m, found, sight) }, selected...)
}

// take takes in one record.
func (s Survey) take(kind string, m *metav1.PartialObjectMetadata, found map[types.NamespacedName]*Release, sight *Sight) {
	name, revision, err := helmrecord.Decode(kind, m)
	record := fmt.Sprintf("%s/%s", strings.ToLower(kind), m.Name)
	if name == "" {
		sight.remark("%s in namespace %s is labelled as a record of Helm's, and of no release: %v", record, m.Namespace, err)
		return
	}
	if s.Name != "" && s.Name != name {
		return
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: name}
	r := found[key]
	if r == nil {
		r = &Release{NamespacedName: key}
		found[key] = r
	}
	if err != nil {
		r.Undecodable = append(r.Undecodable, fmt.Sprintf("%s (%v)", record, err))
		return
	}
	r.Revisions = append(r.Revisions, revision)
}

// leases takes in what guards say of the releases. A Lease of a release that has no record is of a first install that has
// written nothing yet, or of one that is gone.
func (s Survey) leases(ctx context.Context, found map[types.NamespacedName]*Release, sight *Sight) error {
	err := cluster.EachItem(ctx, s.Client, func() client.ObjectList { return &coordinationv1.LeaseList{} }, cluster.PageSize, func(l *coordinationv1.Lease) {
		name, is := strings.CutPrefix(l.Name, v1.DeployLeasePrefix)
		if !is {
			return
		}
		key := types.NamespacedName{Namespace: l.Namespace, Name: name}
		lease, err := DecodeLease(l, s.Now())
		formers := Formers(l, s.Now())
		switch r := found[key]; {
		case r != nil && err != nil:
			r.LeaseProblem, r.Formers = err.Error(), formers
		case r != nil:
			r.Lease, r.Formers = lease, formers
		case err == nil:
			sight.Unrecorded = append(sight.Unrecorded, Release{NamespacedName: key, Input: release.Input{Now: s.Now(), Lease: lease}, Formers: formers})
		}
	}, client.InNamespace(s.Namespace), client.HasLabels{v1.LabelDeploy})
	if apierrors.IsForbidden(err) {
		sight.remark("missing the right to list leases %s: who is deploying, and whether they are alive, is unknown", s.where())
		for _, r := range found {
			r.LeaseProblem = "missing the right to list leases " + s.where()
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("list leases %s: %w", s.where(), err)
	}
	return nil
}
