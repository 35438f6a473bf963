package app

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/controller"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/release"
)

// readsRecords reports whether anything needs Helm's records.
func (o Options) readsRecords() bool { return o.Secrets && (o.WaitForReleases || o.WatchReleases) }

// addDeploys adds the watch of Helm releases to the manager, unless it is switched off.
func addDeploys(mgr manager.Manager, o Options, records cache.Cache, notifier *notify.Notifier) error {
	if !o.Secrets || !o.WatchReleases {
		return nil
	}
	guarded, err := labels.NewRequirement(v1.LabelDeploy, selection.Exists, nil)
	if err != nil {
		return err
	}
	leases, err := sideCache(mgr, labels.NewSelector().Add(*guarded), nil)
	if err != nil {
		return err
	}
	machine := clock.RealClock{}
	c, err := cluster.Connect(mgr.GetConfig(), mgr.GetRESTMapper(), machine.Now) // it tells the API server's time
	if err != nil {
		return err
	}
	own, err := controller.NewDeployMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of helm releases: %w", err)
	}
	return controller.RegisterDeploys(mgr, controller.DeployOptions{
		Client: c.Client, Now: c.Now, Records: records, Leases: leases, Namespace: o.Namespace, Interval: o.ReleaseInterval,
		Policy: release.Policy(o.ReleasePolicy), ReportAfter: o.ReportAfter, Notifier: notifier, Clock: machine,
	}, own)
}

// helmRecords makes a cache of its own for the metadata of what is unsettled: the same kinds under another selector. It is nil
// where nothing needs them.
func helmRecords(mgr manager.Manager, o Options) (cache.Cache, error) {
	if !o.readsRecords() {
		return nil, nil //nolint:nilnil // none is an answer, and no error
	}
	return sideCache(mgr, helmrecord.Unsettled(), ofHelmsType())
}

// ofHelmsType selects Secrets by Helm's type as well, so that one which only bears its labels is never read. ConfigMaps have no type.
func ofHelmsType() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		cluster.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret")): {Field: fields.OneTermEqualSelector("type", string(helmrecord.SecretType))},
	}
}

// waitedFor are the records whose operations rollouts wait for; nil for none.
func waitedFor(records cache.Cache, o Options) cache.Cache {
	if !o.WaitForReleases {
		return nil
	}
	return records
}

// sideCache makes a cache beside the manager's for what a selector selects, and of some kinds more narrowly.
func sideCache(mgr manager.Manager, selector labels.Selector, kinds map[client.Object]cache.ByObject) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: cluster.Slim(), DefaultLabelSelector: selector, ByObject: kinds, DefaultWatchErrorHandler: cluster.QuietRefusals,
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of %s: %w", selector, err)
	}
	if err := mgr.Add(everywhere{c}); err != nil {
		return nil, fmt.Errorf("add cache of %s: %w", selector, err)
	}
	return c, nil
}

// everywhere is a cache that every replica fills, whether it leads or not, because its readiness waits for it. One that selects by
// kind does not say so by itself.
type everywhere struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// validateReleases checks the options of the watch of Helm releases.
func (o Options) validateReleases() error {
	var errs []error
	if p := release.Policy(o.ReleasePolicy); p != release.PolicyReport && p != release.PolicyForward {
		errs = append(errs, fmt.Errorf("--release-policy %q: want report or forward; rollback and uninstall are never the controller's", o.ReleasePolicy))
	}
	if o.ReportAfter < 0 {
		errs = append(errs, errors.New("--pending-report-after: want 0 (never) or more"))
	}
	if o.ReleaseInterval <= 0 {
		errs = append(errs, errors.New("--release-interval: want more than 0"))
	}
	return errors.Join(errs...)
}
