package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/release"
)

const (
	// recoverEvery is how often the controller recovers one release at most.
	recoverEvery = time.Hour
	// syncPatience is how long a cache may take to have what it is asked for.
	syncPatience = time.Minute
	// staleTogether is how many guards that fall silent within the duration of a lease are still single failures. More are one
	// failure of the cluster or of what runs the jobs, after which nobody can be taken for dead.
	staleTogether = 3
)

// DeployOptions configure the watch of Helm releases.
type DeployOptions struct {
	// Client reads and writes without a cache; Now is the API server's clock.
	Client client.Client
	Now    func() time.Time
	// Records caches the metadata of the records that [helmrecord.Unsettled] selects, Leases those of guards.
	Records, Leases client.Reader
	// Namespace is Tidemark's own.
	Namespace string
	// Interval is the time between two looks.
	Interval time.Duration
	// Policy is what is done about an operation that cannot come back: report or forward.
	Policy release.Policy
	// ReportAfter is for how long an operation may be under way before it is reported; 0 for ever.
	ReportAfter time.Duration
	// Notifier tells people; nil where nobody is to be told.
	Notifier *notify.Notifier
	// Clock is the real one where nil.
	Clock clock.Clock
}

// RegisterDeploys adds the watch of Helm releases to the manager. It runs where this process leads.
func RegisterDeploys(mgr manager.Manager, o DeployOptions, metrics *DeployMetrics) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := mgr.Add(newDeploys(o, mgr.GetLogger().WithName("releases"), metrics)); err != nil {
		return fmt.Errorf("add watch of helm releases: %w", err)
	}
	return nil
}

// deploys looks, again and again, at the Helm releases on which something is under way.
type deploys struct {
	DeployOptions
	log     logr.Logger
	metrics *DeployMetrics
	// heard are the leases as they were seen last, with since when by this process's own clock.
	heard map[types.NamespacedName]heard
	// said is what was told last of each release, as long as it holds.
	said map[types.NamespacedName]string
	// recovered is when each release was recovered by this process, by the API server's clock: a record that tells it may be gone.
	recovered map[types.NamespacedName]time.Time
	// known are the releases as of the last look; those of a namespace that could not be read, as they were before.
	known   []deploy
	failure string
}

type heard struct {
	version string
	since   time.Time
	// written is when the lease was last written, by the API server's clock.
	written time.Time
}

// deploy is a release with what was decided about it.
type deploy struct {
	helm.Release
	verdict release.Verdict
	plan    release.Plan
	// together is how many guards fell silent with that of the release, itself included; 0 when it did not.
	together int
	// watched says that the guard has been silent by the API server's clock, and by this process's own not for long enough: so it
	// is after a restart, when what was told before neither ends nor begins anew.
	watched bool
}

func newDeploys(o DeployOptions, log logr.Logger, metrics *DeployMetrics) *deploys {
	return &deploys{
		DeployOptions: o, log: log, metrics: metrics, heard: map[types.NamespacedName]heard{}, said: map[types.NamespacedName]string{},
		recovered: map[types.NamespacedName]time.Time{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*deploys) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (d *deploys) Start(ctx context.Context) error {
	for {
		d.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-d.Clock.After(d.Interval):
		}
	}
}

// look looks once at all releases on which something is under way, and returns what it found. A namespace that cannot be read stops
// no other, and what was known of its releases stays.
func (d *deploys) look(ctx context.Context) []deploy {
	wanted, err := d.underWay(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.failed(err)
		}
		return nil
	}
	all, unread, errs := d.read(ctx, wanted)
	if ctx.Err() != nil {
		return nil
	}
	stopped, err := d.stopped(ctx, slices.Collect(maps.Keys(wanted)))
	if err != nil { // whether recovery is stopped is not known
		errs = append(errs, err)
	}
	d.decide(all, stopped, err)
	d.known = slices.Concat(all, unread)
	d.metrics.show(d.known)
	d.tellPeople(all, len(errs) > 0)
	for _, one := range all {
		errs = append(errs, d.act(ctx, one))
	}
	d.forget(d.known)
	d.failed(errors.Join(errs...))
	return all
}

// read reads the releases that are wanted, namespace by namespace. Of a namespace that cannot be read, unread are those of its releases
// that are wanted still, as they were known before.
func (d *deploys) read(ctx context.Context, wanted map[string]map[string]bool) (all, unread []deploy, errs []error) {
	for _, namespace := range slices.Sorted(maps.Keys(wanted)) {
		sight, err := helm.Survey{Client: d.Client, Now: d.Now, Namespace: namespace}.Find(ctx)
		if err != nil {
			errs = append(errs, err)
			for _, one := range d.known {
				if one.Namespace == namespace && wanted[namespace][one.Name] {
					unread = append(unread, one)
				}
			}
			continue
		}
		for _, r := range slices.Concat(sight.Releases, sight.Unrecorded) {
			if wanted[namespace][r.Name] {
				all = append(all, deploy{Release: r})
			}
		}
	}
	return all, unread, errs
}

// underWay are the releases that have a record which is not settled, or a guard that has not said its end or whose command was
// cancelled lately, by namespace.
func (d *deploys) underWay(ctx context.Context) (map[string]map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience) // a cache whose list is refused would be waited for without end
	defer cancel()
	out := map[string]map[string]bool{}
	add := func(namespace, name string) {
		if out[namespace] == nil {
			out[namespace] = map[string]bool{}
		}
		out[namespace][name] = true
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		list := cluster.MetadataList(corev1.SchemeGroupVersion.WithKind(kind))()
		if err := d.Records.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list helm's records: %w", err)
		}
		records, ok := list.(*metav1.PartialObjectMetadataList)
		if !ok {
			return nil, fmt.Errorf("unexpected list %T", list)
		}
		for i := range records.Items {
			m := &records.Items[i]
			if name, _, _ := helmrecord.Decode(kind, m); name != "" {
				add(m.Namespace, name)
			}
		}
	}
	leases := &coordinationv1.LeaseList{}
	if err := d.Leases.List(ctx, leases); err != nil {
		return nil, fmt.Errorf("list leases of deploys: %w", err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if name, is := strings.CutPrefix(l.Name, v1.DeployLeasePrefix); is && telling(l, d.Now()) {
			add(l.Namespace, name)
		}
	}
	return out, nil
}

// telling reports whether the lease may have something to tell: its guard has not said its end, or its deploy was cancelled lately, or
// it has one before whose starter may not know of its end.
func telling(l *coordinationv1.Lease, now time.Time) bool {
	if _, ended := l.Annotations[v1.AnnotationDeployEnded]; !ended {
		return true
	}
	lease, err := helm.DecodeLease(l, now)
	return err == nil && cancelledLately(lease, now) || len(helm.Formers(l, now)) > 0
}

// decide judges the releases by what this process has itself observed of their leases.
func (d *deploys) decide(all []deploy, stopped map[string]string, unread error) {
	now := d.Clock.Now()
	for i := range all {
		one := &all[i]
		if one.Lease != nil {
			d.hear(one, now)
		}
		one.verdict = release.Judge(one.Input)
	}
	for i := range all {
		one := &all[i]
		one.together = d.silentWith(*one, all)
		if one.watched {
			one.verdict.State, one.verdict.Reason = release.Unknown, "its guard gives no sign of life: its lease is watched for "+one.Lease.Duration.String()+" to be certain"
			one.plan = release.Plan{Action: release.DoNothing, Why: one.verdict.Reason}
			continue
		}
		one.plan = d.plan(*one)
		if !one.plan.Action.Writes() {
			continue
		}
		if why := d.hindered(*one, stopped, unread); why != "" {
			one.plan = release.Plan{Action: release.DoReport, Why: one.plan.Why + "; " + why}
		}
	}
}

// hear notes what is seen of the release's lease, and has its silence count from when this process first saw it so.
func (d *deploys) hear(one *deploy, now time.Time) {
	l := one.Lease
	before := d.heard[one.NamespacedName]
	if before.version != l.ResourceVersion {
		before = heard{l.ResourceVersion, now, l.Written}
		if l.Written.IsZero() {
			before.written = one.Now
		}
		d.heard[one.NamespacedName] = before
	}
	quiet := l.Unchanged >= l.Duration
	l.Unchanged = now.Sub(before.since)
	one.watched = l.Finished == nil && l.Unchanged < l.Duration && quiet && !one.HookActive
}

// silent reports whether the guard has been silent for the whole duration of its lease, and left an operation under way.
func (d deploy) silent() bool {
	l, v := d.Lease, d.verdict
	if l == nil || l.Finished != nil || l.Unchanged < l.Duration || v.Operation == release.NoOperation {
		return false
	}
	return v.State == release.Abandoned || v.State == release.Unknown || v.Left
}

// silentWith counts the guards that fell silent within the duration of the release's own lease before or after its own. It goes by
// their last writes as the API server dated them: to a process that has just begun to watch, all that are dead fell silent at once.
func (d *deploys) silentWith(one deploy, all []deploy) (count int) {
	if !one.silent() {
		return 0
	}
	own := d.heard[one.NamespacedName].written
	for _, other := range all {
		if other.silent() && d.heard[other.NamespacedName].written.Sub(own).Abs() < one.Lease.Duration {
			count++
		}
	}
	return count
}

// hindered says why the controller does not recover what its policy lets it recover; "" when nothing stands in the way.
func (d *deploys) hindered(one deploy, stopped map[string]string, unread error) string {
	last := d.recovered[one.NamespacedName]
	for _, r := range one.Revisions { // what a controller before this one did
		if r.Recovered.After(last) {
			last = r.Recovered
		}
	}
	switch {
	case unread != nil:
		return "whether recovery is paused cannot be told"
	case stopped[one.Namespace] != "":
		return "recovery is paused " + stopped[one.Namespace]
	case one.together > staleTogether:
		return fmt.Sprintf("%d guards fell silent together, which is a failure of the cluster or of what runs the jobs", one.together)
	case one.Now.Sub(last) < recoverEvery:
		return "it was recovered less than an hour ago"
	}
	return ""
}

// stopped says of each namespace by whom writes are stopped in it.
func (d *deploys) stopped(ctx context.Context, namespaces []string) (map[string]string, error) {
	if d.Policy == release.PolicyReport || len(namespaces) == 0 {
		return nil, nil
	}
	read := func(name string) (map[string]string, error) {
		ns := &corev1.Namespace{}
		if err := d.Client.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
			return nil, fmt.Errorf("read namespace %s: %w", name, err)
		}
		return ns.Annotations, nil
	}
	own, err := read(d.Namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range namespaces {
		annotations, err := read(name)
		if err != nil {
			return nil, err
		}
		out[name] = cluster.PausedBy(nil, nil, annotations, own)
	}
	return out, nil
}

// act carries out what was decided.
func (d *deploys) act(ctx context.Context, one deploy) error {
	switch one.plan.Action {
	case release.DoReport:
		return d.report(ctx, one, string(one.verdict.State), "ReleaseNotSettled", one.plan.Why)
	case release.DoForward:
		return d.forward(ctx, one)
	case release.DoNothing, release.DoRollback, release.DoUninstall: // the last two are never the controller's
	}
	return nil
}

// forward marks the pending revision failed, when it still is the one that was judged.
func (d *deploys) forward(ctx context.Context, one deploy) error {
	err := d.confirm(ctx, one)
	if err == nil {
		err = helm.MarkFailed(ctx, d.Client, one.Namespace, one.verdict.Newest, helm.Mark{Description: helm.LeftByItsProcess, Unasked: d.Now()})
	}
	switch {
	case errors.Is(err, helm.ErrChanged): // judged again at the next look
		d.metrics.recoveries.WithLabelValues("changed").Inc()
		return nil
	case err != nil:
		d.metrics.recoveries.WithLabelValues("error").Inc()
		return errors.Join(err, d.report(ctx, one, "refused", "RecoveryRefused", fmt.Sprintf("%s; the revision could not be marked failed, trying again: %v", one.plan.Why, err)))
	}
	d.metrics.recoveries.WithLabelValues("done").Inc()
	d.recovered[one.NamespacedName] = d.Now()
	d.log.Info("Marked a pending revision failed", "release", one.String(), "revision", one.verdict.Newest.Number, "why", one.plan.Why)
	return d.report(ctx, one, "recovered", "ReleaseRecovered", fmt.Sprintf("revision %d was marked failed, so that the next upgrade is accepted: %s", one.verdict.Newest.Number, one.plan.Why))
}

// confirm decides once more by what is there now: between the look and its end, a guard may have renewed its lease, a hook begun, or
// somebody paused Tidemark. The error is or wraps [helm.ErrChanged] when the decision does not stand; the pause is read last.
func (d *deploys) confirm(ctx context.Context, one deploy) error {
	sight, err := helm.Survey{Client: d.Client, Now: d.Now, Namespace: one.Namespace, Name: one.Name}.Find(ctx)
	if err != nil {
		return err
	}
	if len(sight.Releases) != 1 {
		return helm.ErrChanged
	}
	again := deploy{Release: sight.Releases[0], together: one.together}
	known := d.heard[one.NamespacedName]
	if again.Lease == nil || again.Lease.ResourceVersion != known.version {
		return fmt.Errorf("the lease of its guard: %w", helm.ErrChanged)
	}
	again.Lease.Unchanged = d.Clock.Since(known.since)
	again.verdict = release.Judge(again.Input)
	again.plan = d.plan(again)
	if again.plan.Action != release.DoForward || again.verdict.Newest.ResourceVersion != one.verdict.Newest.ResourceVersion {
		return fmt.Errorf("revision %d: %w", one.verdict.Newest.Number, helm.ErrChanged)
	}
	stopped, err := d.stopped(ctx, []string{one.Namespace})
	if err != nil {
		return err
	}
	if why := d.hindered(again, stopped, nil); why != "" {
		return fmt.Errorf("%s: %w", why, helm.ErrChanged)
	}
	return nil
}

// plan is what the controller does about a release by its state.
func (d *deploys) plan(one deploy) release.Plan {
	return release.Decide(one.verdict, release.Request{
		Now: one.Now, Actor: release.ByController, Policy: d.Policy, ReportAfter: d.ReportAfter, Foreign: one.Foreign,
	})
}

// report tells of a release once, as long as the same holds of the same revision.
func (d *deploys) report(ctx context.Context, one deploy, what, reason, why string) error {
	newest := one.verdict.Newest
	key := fmt.Sprintf("%d/%s/%s", newest.Number, newest.Created.UTC().Format(time.RFC3339), what)
	if d.said[one.NamespacedName] == key {
		return nil
	}
	note := why
	if one.verdict.Operation != release.NoOperation && what != "recovered" {
		note = fmt.Sprintf("revision %d is %s since %s: %s", newest.Number, newest.Status, one.verdict.Since.UTC().Format(time.RFC3339), why)
	}
	on := corev1.ObjectReference{APIVersion: "v1", Kind: newest.Kind, Namespace: one.Namespace, Name: newest.Record}
	if newest.Record == "" {
		on.Kind, on.Name = "Namespace", one.Namespace
	}
	note = "release " + one.Name + ": " + note
	if err := eventOnce(ctx, d.Client, d.Clock.Now(), on, "Deploy", reason, key+"/"+one.Name, note); err != nil {
		return fmt.Errorf("tell of release %s: %w", one.NamespacedName, err)
	}
	d.said[one.NamespacedName] = key
	d.log.Info("Helm release needs attention", "release", one.String(), "revision", newest.Number, "state", string(one.verdict.State), "why", why)
	return nil
}

// forget drops what is kept of releases on which nothing is under way any more.
func (d *deploys) forget(all []deploy) {
	there := map[types.NamespacedName]bool{}
	for _, one := range all {
		there[one.NamespacedName] = true
	}
	gone := func(name types.NamespacedName) bool { return !there[name] }
	maps.DeleteFunc(d.heard, func(name types.NamespacedName, _ heard) bool { return gone(name) })
	maps.DeleteFunc(d.said, func(name types.NamespacedName, _ string) bool { return gone(name) })
	maps.DeleteFunc(d.recovered, func(_ types.NamespacedName, at time.Time) bool { return d.Now().Sub(at) >= recoverEvery })
}

// failed logs an error once, until it is another one or none.
func (d *deploys) failed(err error) {
	if err == nil {
		d.failure = ""
		return
	}
	d.metrics.errors.Inc()
	if text := err.Error(); text != d.failure {
		d.failure = text
		d.log.Error(err, "Cannot look at all Helm releases; trying again", "retryIn", d.Interval)
	}
}
