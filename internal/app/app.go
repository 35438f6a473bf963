package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/controller"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/stamp"
)

// App is the controller program, ready to start.
type App struct {
	manager manager.Manager
	events  events.EventBroadcaster
}

// New checks the options, reads what the program must know before it starts, and wires it up. It makes calls to the API:
// the key of the digests is read, or made on the very first start.
func New(ctx context.Context, o Options) (*App, error) {
	kinds, err := o.validate()
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(o.Config)
	cfg.UserAgent, cfg.QPS = o.UserAgent, -1 // the API server's priority and fairness limits us, and the settings of pace
	scheme := newScheme()
	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	key, err := digestKey(ctx, direct, o)
	if err != nil {
		return nil, err
	}
	lease, err := leaderLease(ctx, direct, o.Namespace)
	if err != nil {
		return nil, err
	}
	own, err := controller.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	pinning := controller.NewPinning(direct, o.Namespace, clock.RealClock{}, o.Log.WithName("controller"), own)
	watches := controller.NewWatches(o.Log.WithName("controller"), own)
	mgr, err := manager.New(cfg, managerOptions(o, scheme, key, watches))
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	records, err := helmRecords(mgr, o)
	if err != nil {
		return nil, err
	}
	pods, leases, err := leaderCaches(mgr, o)
	if err != nil {
		return nil, err
	}
	broadcaster, err := newBroadcaster(cfg)
	if err != nil {
		return nil, err
	}
	recorder := broadcaster.NewRecorder(scheme, controller.Reporter)
	err = controller.Register(ctx, mgr, controller.Options{
		Namespace: o.Namespace, DefaultMode: stamp.Mode(o.DefaultMode), Kinds: kinds, Secrets: o.Secrets, Pace: o.Pace,
		MaxRolling: o.MaxRolling, RollTimeout: o.RollTimeout, Workers: o.Workers, WatchLag: o.WatchLag, Key: key, Direct: direct, Pods: pods,
		Recorder: recorder, HelmRecords: waitedFor(records, o), History: o.LeaderElect, RenewDeadline: o.RenewDeadline, Lease: lease, Watches: watches,
		RolloutInterval: o.RolloutInterval, KeepValues: o.KeepValues, Pinning: pinning, NodeLeases: leases,
	}, own)
	if err != nil {
		return nil, err
	}
	notifier, err := addNotifier(ctx, mgr, o, direct)
	if err != nil {
		return nil, err
	}
	err = errors.Join(addCleanup(mgr, o, kinds, recorder), addFleets(mgr, o, kinds, notifier), addDeploys(mgr, o, records, notifier),
		addWebhook(mgr, o, kinds, direct, key, recorder, pinning), mgr.AddHealthzCheck("ping", healthz.Ping))
	if err != nil {
		return nil, err
	}
	return &App{manager: mgr, events: broadcaster}, nil
}

// newScheme has the kinds of Kubernetes itself.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	return scheme
}

// Start runs the program until the context ends; an error means that it could not go on, such as a lost leader Lease.
func (a *App) Start(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx)) // until all that has something to tell has stopped
	defer stop()
	if err := a.events.StartRecordingToSinkWithContext(sending); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	return a.manager.Start(ctx)
}

// digestKey reads the key of digests, or makes it on the very first start. Without Secrets none is needed, nor the right to read it.
func digestKey(ctx context.Context, c client.Client, o Options) (*digest.Key, error) {
	if !o.Secrets {
		return nil, nil //nolint:nilnil // none is an answer, and no error
	}
	return cluster.DigestKey(ctx, c, o.Namespace)
}

// leaderLease reads the Lease as it is before this process takes part in the election; nil when there is none.
func leaderLease(ctx context.Context, c client.Client, namespace string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.LeaseLeader}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read leader lease: %w", err)
	}
	return lease, nil
}

func managerOptions(o Options, scheme *runtime.Scheme, key *digest.Key, watches *controller.Watches) manager.Options {
	share := true             // nobody changes what the cache hands out
	grace := 10 * time.Second // less than the pod's, so that the Lease is given up in time
	return manager.Options{
		Scheme: scheme,
		Logger: o.Log,
		Cache: cache.Options{
			NewInformer:                  cluster.Informers{Scheme: scheme, Fared: watches.Fared}.New,
			DefaultWatchErrorHandler:     cluster.QuietRefusals,
			DefaultTransform:             cluster.Slim(),
			DefaultUnsafeDisableDeepCopy: &share,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Transform: cluster.Digest(key)},
				&corev1.Secret{}:    {Transform: cluster.Digest(key), Field: configSecrets()},
				&coordinationv1.Lease{}: {
					Namespaces: map[string]cache.Config{o.Namespace: {}},
					Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, v1.LeaseLeader),
				},
			},
		},
		LeaderElection: o.LeaderElect, LeaderElectionID: v1.LeaseLeader, LeaderElectionNamespace: o.Namespace,
		LeaderElectionLabels:          cluster.MarginLabels(o.Margins),
		LeaderElectionReleaseOnCancel: true, GracefulShutdownTimeout: &grace,
		LeaseDuration: &o.LeaseDuration, RenewDeadline: &o.RenewDeadline, RetryPeriod: &o.RetryPeriod,
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.ProbeAddress,
		Controller:             config.Controller{SkipNameValidation: &share},
	}
}

// configSecrets leaves out the records of Helm's releases, which no pod reads and which can be many and large. Nothing that a pod
// may read can be left out here: it would be taken for absent, and whoever requires it would wait for ever.
func configSecrets() fields.Selector {
	return fields.OneTermNotEqualSelector("type", string(helmrecord.SecretType))
}

// podCache makes a cache of its own for pods, reduced to what tells whether their references match their pins.
func podCache(mgr manager.Manager) (cache.Cache, error) {
	pods, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: cluster.MatchPins,
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of pods: %w", err)
	}
	return pods, nil
}

// leaderCaches makes those that only a leader fills.
func leaderCaches(mgr manager.Manager, o Options) (pods, leases cache.Cache, err error) {
	if pods, err = podCache(mgr); err != nil {
		return nil, nil, err
	}
	leases, err = nodeLeases(mgr, o)
	return pods, leases, err
}

// nodeLeases makes a cache of its own for the Leases by which nodes give their signs of life: the manager's is for Tidemark's own. It is
// nil where they are not watched.
func nodeLeases(mgr manager.Manager, o Options) (cache.Cache, error) {
	if !o.WatchNodes {
		return nil, nil //nolint:nilnil // none is an answer, and no error
	}
	leases, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: cluster.Slim(),
		DefaultNamespaces: map[string]cache.Config{corev1.NamespaceNodeLease: {}}, DefaultWatchErrorHandler: cluster.QuietRefusals,
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of the Leases of nodes: %w", err)
	}
	return leases, nil
}
