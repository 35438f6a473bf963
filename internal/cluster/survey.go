package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/reported"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Survey is one look at the fleets of a cluster, with nothing but the right to read. It asks for one list per kind, page by
// page, and keeps facts, not objects; named workloads are read one by one. What may not be read becomes a remark, and
// whatever depends on it unknown.
type Survey struct {
	Client client.Reader
	// Now is the API server's time.
	Now func() time.Time
	// Kinds are the kinds of workload to look for.
	Kinds []Kind
	// Namespace to look at; "" for all.
	Namespace string
	// Selector of workloads; nil for all.
	Selector labels.Selector
	// Targets, when there are any, are the only workloads looked at.
	Targets []Target
	// System is Tidemark's own namespace.
	System string
	// DefaultMode is the mode where neither a workload nor its namespace chooses one.
	DefaultMode stamp.Mode
	// Settings are the margins of inference. One that is zero is as the controller states it on its Lease, else the default.
	Settings fleet.Settings
	// Values keeps the values of ConfigMaps of named workloads.
	Values bool
	// Reports asks pods that declare a port what their programs loaded; nil asks none.
	Reports *reported.Asker
}

// Target names one workload.
type Target struct {
	Kind            Kind
	Namespace, Name string
}

// String gives "deployment/web".
func (t Target) String() string { return t.Kind.Lower() + "/" + t.Name }

// Sight is what a survey saw.
type Sight struct {
	// Now is when the survey began, by the API server's clock.
	Now time.Time
	// Workloads by namespace, kind and name.
	Workloads []Workload
	// NotFound are the targets that do not exist.
	NotFound []Target
	// LeftOut are the kinds whose workloads could not be listed for want of a right: of their fleets nothing is known.
	LeftOut []Kind
	// Remarks say what could not be read, each with what is unknown because of it, and what is not installed that mode pin
	// needs, when a workload is in it.
	Remarks []string
	// Installed says that a controller keeps, or kept, history in the cluster.
	Installed bool
}

// Workload is one workload with all that was read of its fleet.
type Workload struct {
	Target
	UID string
	// Fleet is what its verdict is judged from.
	Fleet fleet.Fleet
	// References are all uses of config objects by the present template, those that do not roll included.
	References []workload.Reference
	// Ignored are the objects that are marked to be ignored.
	Ignored []workload.Object
	// Keys lists the keys of each object, as far as known.
	Keys map[workload.Object][]string
	// Values are the present values of ConfigMaps; only with [Survey.Values].
	Values map[workload.Object]map[string]string
	// Shown are the ConfigMaps that say that notifications may show their values.
	Shown []workload.Object
	// Owner is who owns the workload; "" when nobody says.
	Owner string
	// Problems are annotations that could not be heeded.
	Problems []string
	// Blind is why nothing can be said of the workload, "" when something can.
	Blind string
}

// KeysEver are the keys that an object has, or had as far as that is remembered, sorted.
func (w Workload) KeysEver(o workload.Object) []string {
	keys := slices.Clone(w.Keys[o])
	for i := range w.Fleet.Objects {
		if w.Fleet.Objects[i].Use.Object != o {
			continue
		}
		for _, v := range w.Fleet.Objects[i].Log.Versions {
			keys = append(keys, v.Content.Keys()...)
		}
	}
	for name, s := range w.Fleet.Snapshots {
		if s.Source == o && s.Content != nil && name.Kind == o.Kind {
			keys = append(keys, s.Content.Keys()...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Judge is the verdict on the workload's fleet.
func (w Workload) Judge() fleet.Result {
	if w.Blind != "" {
		return fleet.Result{Verdict: fleet.Unknown, Reason: w.Blind}
	}
	return fleet.Judge(w.Fleet)
}

// Read looks at the cluster.
func (s Survey) Read(ctx context.Context) (*Sight, error) {
	r := &reading{Survey: s, sight: &Sight{}}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		// First, for its answer tells the server's time even where the right is missing.
		{"leader", r.readLease},
		{"workloads", r.readWorkloads},
		{"templates", r.followElsewhere},
		{"revisions", r.readUnfinished},
		{"namespaces", r.readNamespaces},
		{"pods", r.readPods},
		{"pods of Rollouts", r.hideHolders},
		{"reports", r.readReports},
		{"history", r.readMemory},
		// So late that whatever a pod of the list has read is in the history or a change seen here.
		{"configuration", r.readObjects},
		{"nodes", r.readNodes},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("read %s: %w", step.what, err)
		}
	}
	r.assemble()
	if err := r.readPinning(ctx); err != nil {
		return nil, fmt.Errorf("read what puts pins into force: %w", err)
	}
	slices.SortFunc(r.sight.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind.Lower(), b.Kind.Lower()), cmp.Compare(a.Name, b.Name))
	})
	return r.sight, nil
}

// reading is a survey under way.
type reading struct {
	Survey
	sight      *Sight
	seen       []*seen
	namespaces map[string]namespace
	memory     memory
	used       map[workload.Object]bool
	// copies are the snapshots that pins of templates and of pods name, each with the object that it stands for.
	copies map[workload.Object]workload.Object
	nodes  map[string]time.Time
	// declared is where pods tell what they loaded, by UID; only with [Survey.Reports].
	declared map[string]*declared
	objects  map[workload.Object]*object
	// objectsFrom is the moment before the first config object was read.
	objectsFrom time.Time
}

// Right is a right that a request needs.
type Right struct {
	Verb, Resource string
	// Namespace is "" for all, [ClusterScope] for a resource that has none.
	Namespace string
	// Unknown is what is not known without it.
	Unknown string
}

// Missing says that the caller does not have it.
func (r Right) Missing() string {
	where := "in all namespaces"
	switch r.Namespace {
	case "":
	case ClusterScope:
		where = "of the cluster"
	default:
		where = "in namespace " + r.Namespace
	}
	return fmt.Sprintf("missing the right to %s %s %s", r.Verb, r.Resource, where)
}

// ClusterScope stands for the namespace of a resource that has none.
const ClusterScope = "-"

// permitted tells a missing right, which becomes a remark, from a read that failed.
func (r *reading) permitted(err error, needs Right) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsForbidden(err):
		remark := needs.Missing() + ": " + needs.Unknown
		if !slices.Contains(r.sight.Remarks, remark) {
			r.sight.Remarks = append(r.sight.Remarks, remark)
		}
		return false, nil
	default:
		return false, fmt.Errorf("%s %s: %w", needs.Verb, needs.Resource, err)
	}
}
