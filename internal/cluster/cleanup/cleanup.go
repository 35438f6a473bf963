// Package cleanup removes the copies of configuration that nothing uses any more.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// What clean-up needs beside the rights to make snapshots, which are in rbac.go, and to read workloads, which the controller
// has in any case: to list all that may use one, to delete, to see that a namespace is not paused.
//+kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=list;delete
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get
//+kubebuilder:rbac:groups="",resources=pods;replicationcontrollers;serviceaccounts;resourcequotas,verbs=list
//+kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=list
//+kubebuilder:rbac:groups=batch,resources=jobs,verbs=list
//+kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list
//+kubebuilder:rbac:groups=argoproj.io,resources=rollouts,verbs=list

// Round removes the copies of configuration in a scope that nothing needs any more. It lists everything that may use them,
// page by page and never from a cache; a list that fails ends the round, and nothing is written in it.
type Round struct {
	// Client reads and writes without a cache.
	Client client.Client
	// Now is the API server's time, never ahead of it and at most a second behind.
	Now func() time.Time
	// Kinds are the kinds of workload whose templates count. Others that are built into Kubernetes, and Argo's Rollouts, count
	// in any case.
	Kinds []cluster.Kind
	// Namespace to clean up; "" for all.
	Namespace string
	// System is Tidemark's own namespace.
	System string
	// Secrets says whether Secrets are looked at too.
	Secrets bool
	// Retention says what stays.
	Retention snapshot.Retention
	// DryRun writes nothing.
	DryRun bool
}

// Outcome is what a round did, or would do.
type Outcome struct {
	// Now is when what is used was read, by the API server's clock.
	Now time.Time
	// Items are all copies that were found, by source and the newest first.
	Items []Item
	// Quotas that are nearly full, of the namespaces that have copies.
	Quotas []Quota
	// Unreachable counts by namespace the retained revisions that pin a copy which is not there: a rollback to one of them would
	// start no pod.
	Unreachable map[string]int
	// Remarks say what could not be told.
	Remarks []string
}

// Item is one copy with what became of it.
type Item struct {
	snapshot.Verdict
	// Done says that what the verdict asks for was done.
	Done bool
	// Left is why it was left for another time; "" when it was not.
	Left string
	// Err is why it could not be done.
	Err error
}

// maxErrors bounds how many errors are told one by one.
const maxErrors = 5

// Err joins what could not be done, a few of it in words.
func (c *Outcome) Err() error {
	var errs []error
	told := map[string]bool{}
	n := 0
	for _, item := range c.Items {
		if item.Err == nil {
			continue
		}
		n++
		if text := item.Err.Error(); !told[text] && len(errs) < maxErrors {
			told[text] = true
			errs = append(errs, item.Err)
		}
	}
	if n > len(errs) {
		errs = append(errs, fmt.Errorf("%d objects in all could not be written", n))
	}
	return errors.Join(errs...)
}

// Run cleans up once. Where there are no snapshots it asks only for the revisions that may pin one.
func (c Round) Run(ctx context.Context) (*Outcome, error) {
	out := &Outcome{}
	snapshots, err := c.snapshots(ctx, out)
	if err != nil {
		return nil, err
	}
	out.Now = c.Now() // after an answer that told the server's time, before anything that uses snapshots is listed
	if len(snapshots) == 0 {
		out.Unreachable, err = c.allLost(ctx)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	stock := snapshot.Stock{Now: out.Now, Snapshots: snapshots, Gone: map[workload.Object]bool{}}
	found, err := c.uses(ctx, snapshots)
	if err != nil {
		return nil, err
	}
	stock.Uses = found.uses
	if out.Unreachable, err = c.unreachable(ctx, found.lost); err != nil {
		return nil, err
	}
	for _, kind := range c.objectKinds() {
		if err := c.findGone(ctx, kind, stock); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Retention.Plan(stock) {
		out.Items = append(out.Items, Item{Verdict: v})
	}
	c.tellQuotas(ctx, out)
	c.write(ctx, out)
	return out, nil
}

func (c Round) objectKinds() []workload.ObjectKind {
	if c.Secrets {
		return []workload.ObjectKind{workload.ConfigMap, workload.Secret}
	}
	return []workload.ObjectKind{workload.ConfigMap}
}

const notCleaned = "nothing is condemned or deleted"

// snapshots lists the metadata of all snapshots of the scope.
func (c Round) snapshots(ctx context.Context, out *Outcome) ([]snapshot.Snapshot, error) {
	var all []snapshot.Snapshot
	odd := 0
	for _, kind := range c.objectKinds() {
		gvk := cluster.GVKOf(kind)
		err := cluster.EachItem(ctx, c.Client, cluster.MetadataList(gvk), cluster.PageSize, func(m *metav1.PartialObjectMetadata) {
			s, ok := snapshot.Read(kind, m)
			switch {
			case m.DeletionTimestamp != nil:
			case ok:
				all = append(all, s)
			default:
				odd++
			}
		}, client.InNamespace(c.Namespace), client.MatchingLabels{v1.LabelSnapshot: v1.True})
		if err := blind(err, right("list", cluster.Plural(gvk), c.Namespace, notCleaned)); err != nil {
			return nil, err
		}
	}
	if odd > 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("%d objects have the label %s and do not say of what they are a copy: they are left alone",
			odd, v1.LabelSnapshot))
	}
	return all, nil
}

// uses finds what uses the snapshots, or their sources by name.
func (c Round) uses(ctx context.Context, snapshots []snapshot.Snapshot) (*usage, error) {
	u := c.usage()
	for _, s := range snapshots {
		u.wanted[s.Object], u.wanted[s.Source] = true, true
	}
	err := u.read(ctx)
	return u, err
}

// usage is what is to find the uses of objects; of none yet.
func (c Round) usage() *usage {
	return &usage{
		client: c.Client, namespace: c.Namespace, kinds: c.Kinds, wanted: map[workload.Object]bool{}, uses: snapshot.Uses{}, lost: map[workload.Object][]string{},
	}
}

// allLost counts the revisions that pin a copy where there is none at all.
func (c Round) allLost(ctx context.Context) (map[string]int, error) {
	u := c.usage()
	if err := u.readRevisions(ctx); err != nil {
		return nil, err
	}
	return c.unreachable(ctx, u.lost)
}

// unreachable counts the revisions that pin a copy which is not there, and was not made since the copies were listed either.
func (c Round) unreachable(ctx context.Context, lost map[workload.Object][]string) (map[string]int, error) {
	revisions := map[string]map[string]bool{}
	for _, kind := range c.objectKinds() {
		open := map[workload.Object]bool{}
		for o := range lost {
			if o.Kind == kind {
				open[o] = true
			}
		}
		if err := c.findPresent(ctx, kind, open); err != nil {
			return nil, err
		}
		for o := range open {
			if revisions[o.Namespace] == nil {
				revisions[o.Namespace] = map[string]bool{}
			}
			for _, name := range lost[o] {
				revisions[o.Namespace][name] = true
			}
		}
	}
	out := map[string]int{}
	for namespace, names := range revisions {
		out[namespace] = len(names)
	}
	return out, nil
}

// findGone notes the sources of a kind that do not exist, as far as that matters: where nothing uses them or their snapshots.
func (c Round) findGone(ctx context.Context, kind workload.ObjectKind, stock snapshot.Stock) error {
	used := map[workload.Object]bool{}
	open := map[workload.Object]bool{}
	for _, s := range stock.Snapshots {
		if _, ok := stock.Uses[s.Object]; ok {
			used[s.Source] = true
		}
	}
	for _, s := range stock.Snapshots {
		if _, ok := stock.Uses[s.Source]; !ok && !used[s.Source] && s.Source.Kind == kind {
			open[s.Source] = true
		}
	}
	if err := c.findPresent(ctx, kind, open); err != nil {
		return err
	}
	for o := range open {
		stock.Gone[o] = true
	}
	return nil
}

// findPresent takes the objects away that exist.
func (c Round) findPresent(ctx context.Context, kind workload.ObjectKind, open map[workload.Object]bool) error {
	gvk := cluster.GVKOf(kind)
	if len(open) > cluster.Few {
		err := cluster.EachItem(ctx, c.Client, cluster.MetadataList(gvk), cluster.PageSize, func(m *metav1.PartialObjectMetadata) {
			delete(open, workload.Object{Kind: kind, Namespace: m.Namespace, Name: m.Name})
		}, client.InNamespace(c.Namespace))
		return blind(err, right("list", cluster.Plural(gvk), c.Namespace, notCleaned))
	}
	for o := range open {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, cluster.MetadataOf(gvk))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err := blind(err, right("get", cluster.Plural(gvk), o.Namespace, notCleaned)); err != nil {
			return err
		}
		delete(open, o)
	}
	return nil
}
