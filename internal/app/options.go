// Package app assembles the controller program.
//
// Main starts it, as tests do: both get the same thing.
package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/pace"
	"tidemark.dev/tidemark/internal/release"
	"tidemark.dev/tidemark/internal/reported"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
)

// Options are all the settings of the controller program. [Defaults] gives the defaults.
type Options struct {
	// Config says how to reach the cluster.
	Config *rest.Config
	// Log is where the program logs.
	Log logr.Logger
	// UserAgent names the program to the API server.
	UserAgent string

	// Namespace is Tidemark's own, where its Lease, its history and its key are. Default tidemark-system.
	Namespace string
	// DefaultMode is the mode where nothing else says one: observe, roll or pin. Default observe.
	DefaultMode string
	// Kinds are further kinds of workload, each GROUP/VERSION/KIND=PATH.TO.TEMPLATE.
	Kinds []string
	// Secrets says whether Secrets are read. Default true.
	Secrets bool
	// Pace says when a wanted rollout may happen.
	Pace pace.Settings
	// MaxRolling bounds how many workloads roll at the same time, 0 for no bound. Default 50.
	MaxRolling int
	// RollTimeout is after how long a rollout no longer counts against MaxRolling. Default 10m.
	RollTimeout time.Duration
	// Workers is how many workloads are looked at concurrently. Default 8.
	Workers int
	// WatchLag is how long a change may take to be seen. Default 2s.
	WatchLag time.Duration
	// WatchNodes says whether the leader watches the Leases of nodes, to know which were cut off for a while. Default true.
	WatchNodes bool
	// KeepValues says whether the history has values of ConfigMaps beside their digests. Default true.
	KeepValues bool
	// CleanupInterval is how often snapshots that nothing needs are removed, 0 for never. Default 10m.
	CleanupInterval time.Duration
	// Retention says which of them stay. Defaults 5 of each source, and 1h.
	Retention snapshot.Retention
	// RolloutInterval is how often rollouts are looked at that may be left unfinished, and canaries that ask to be promoted.
	// Default 1m.
	RolloutInterval time.Duration
	// FleetInterval is how often the leader looks at all fleets for its metrics, 0 for never. Default 1m.
	FleetInterval time.Duration
	// NotifyConfig is the file with the configuration of notifications; "" for none. Default "".
	NotifyConfig string
	// NotifyCredentials is the directory at which the Secret with their credentials is mounted. Default "".
	NotifyCredentials string
	// NotifyDormantAfter is after how long a change that no pod has read is told of. Default 1h.
	NotifyDormantAfter time.Duration
	// ReadReports says whether pods that declare a port are asked what their programs loaded. Default false.
	ReadReports bool
	// DialPods opens connections to pods; the ordinary dialer where nil.
	DialPods reported.Dial
	// Margins are those of inference. Defaults as in [fleet.Settings].
	Margins fleet.Settings
	// WaitForReleases says whether pending Helm releases are waited for, which needs Secrets. Default true.
	WaitForReleases bool
	// WatchReleases says whether Helm releases are watched whose deploys may not come back, which needs Secrets. Default true.
	WatchReleases bool
	// ReleasePolicy is what is done about such a deploy: report or forward. Default report.
	ReleasePolicy string
	// ReportAfter is for how long an operation may be under way on a release before it is reported, 0 for ever. Default 30m.
	ReportAfter time.Duration
	// ReleaseInterval is how often the releases are looked at on which something is under way. Default 15s.
	ReleaseInterval time.Duration

	// LeaderElect says whether several replicas elect one that writes; the history needs it. Default true.
	LeaderElect bool
	// LeaseDuration, RenewDeadline and RetryPeriod are those of the leader election. Defaults 15s, 10s, 2s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Webhook says whether the webhooks are served, which deploy/pin tells the API server of. Default false.
	Webhook bool
	// WebhookAddress is where they are served, as HOST:PORT. Default :9443.
	WebhookAddress string
	// WebhookNames are names or addresses of them, besides those of their Service.
	WebhookNames []string
	// WebhookCertificateValidity is how long a certificate of theirs is valid. Default 90 days.
	WebhookCertificateValidity time.Duration
	// MetricsAddress serves Prometheus metrics, "0" for nowhere. Default :8080.
	MetricsAddress string
	// ProbeAddress serves /healthz and /readyz, "0" for nowhere. Default :8081.
	ProbeAddress string
}

// Defaults gives the default options; Config and Log are the caller's.
func Defaults() Options {
	return Options{
		UserAgent: "tidemark-controller", Namespace: v1.DefaultNamespace, DefaultMode: v1.ModeObserve, Secrets: true,
		Pace: pace.Defaults(), MaxRolling: 50, RollTimeout: 10 * time.Minute, Workers: 8, WatchLag: 2 * time.Second, WatchNodes: true, KeepValues: true,
		CleanupInterval: 10 * time.Minute, Retention: snapshot.Defaults(),
		RolloutInterval: time.Minute, FleetInterval: time.Minute, NotifyDormantAfter: time.Hour, Margins: fleet.Settings{}.WithDefaults(),
		WaitForReleases: true, WatchReleases: true, ReleasePolicy: string(release.PolicyReport), ReportAfter: 30 * time.Minute, ReleaseInterval: 15 * time.Second,
		LeaderElect:   true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		WebhookAddress: ":9443", WebhookCertificateValidity: 90 * 24 * time.Hour,
		MetricsAddress: ":8080", ProbeAddress: ":8081",
	}
}

// validate checks the options and reads the kinds: the built-in ones with those added.
func (o Options) validate() ([]cluster.Kind, error) {
	var errs []error
	kinds := cluster.BuiltinKinds()
	for _, s := range o.Kinds {
		k, err := cluster.ParseKind(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("--kind: %w", err))
			continue
		}
		known := len(kinds)
		if kinds = cluster.WithKind(kinds, k); len(kinds) == known {
			continue
		}
		for _, known := range kinds[:known] {
			if known.GroupVersionKind.GroupKind() == k.GroupVersionKind.GroupKind() {
				errs = append(errs, fmt.Errorf("--kind %s: %s is already among the kinds", s, k.GroupVersionKind.GroupKind()))
			}
		}
	}
	switch stamp.Mode(o.DefaultMode) {
	case stamp.Observe, stamp.Roll, stamp.Pin:
	default:
		errs = append(errs, fmt.Errorf("--default-mode %q: want %s, %s or %s", o.DefaultMode, v1.ModeObserve, v1.ModeRoll, v1.ModePin))
	}
	if err := o.Pace.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.MaxRolling > 0 && o.RollTimeout <= 0 {
		errs = append(errs, errors.New("--roll-timeout: want more than 0, or --max-rolling=0"))
	}
	if o.Workers < 1 {
		errs = append(errs, errors.New("--workers: want at least 1"))
	}
	if o.MaxRolling < 0 {
		errs = append(errs, errors.New("--max-rolling: want 0 (no bound) or more"))
	}
	if o.RolloutInterval <= 0 {
		errs = append(errs, errors.New("--rollout-interval: want more than 0"))
	}
	errs = append(errs, o.validateCleanup(), o.validateFleets(), o.validateNotify(), o.validateReleases(), o.validateWebhook())
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace: want the namespace that Tidemark runs in"))
	}
	return kinds, errors.Join(errs...)
}
