package app

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// AddFlags adds a flag for each setting; its default is the present value.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Namespace, "namespace", o.Namespace, "Tidemark's own namespace, for its Lease, history and key; default from POD_NAMESPACE")
	f.StringVar(&o.DefaultMode, "default-mode", o.DefaultMode, "mode of workloads for which nothing else says one: observe, roll or pin")
	f.StringArrayVar(&o.Kinds, "kind", o.Kinds, "another kind of workload, as GROUP/VERSION/KIND=PATH.TO.TEMPLATE; may be repeated")
	f.BoolVar(&o.Secrets, "secrets", o.Secrets, "read Secrets; with false, references to them count for nothing and no right to them is needed")
	f.DurationVar(&o.Pace.Settle, "settle", o.Pace.Settle, "how long content must be quiet before a rollout; 0 does not wait")
	f.DurationVar(&o.Pace.SettleMax, "settle-max", o.Pace.SettleMax, "how long settling may put a rollout off, from the first change")
	f.DurationVar(&o.Pace.ReleaseWait, "release-wait", o.Pace.ReleaseWait, "how long a pending Helm release may put a rollout off")
	f.IntVar(&o.Pace.StormRolls, "storm-rolls", o.Pace.StormRolls, "rollouts within --storm-window after which a workload is held until its configuration is quiet; 0 never holds")
	f.DurationVar(&o.Pace.StormWindow, "storm-window", o.Pace.StormWindow, "how far back rollouts count for --storm-rolls")
	f.DurationVar(&o.Pace.StormQuiet, "storm-quiet", o.Pace.StormQuiet, "how long a held workload's configuration must be quiet, doubled for each rollout beyond --storm-rolls")
	f.IntVar(&o.MaxRolling, "max-rolling", o.MaxRolling, "how many workloads roll at the same time; 0 for no bound")
	f.DurationVar(&o.RollTimeout, "roll-timeout", o.RollTimeout, "after how long an unfinished rollout no longer counts for --max-rolling")
	f.IntVar(&o.Workers, "workers", o.Workers, "how many workloads are looked at concurrently")
	f.DurationVar(&o.WatchLag, "watch-lag", o.WatchLag, "how long a change may take to be seen; the history leaves it open that long")
	f.BoolVar(&o.WatchNodes, "watch-nodes", o.WatchNodes,
		"watch the Leases of nodes, one event for each node every 10 seconds: without, what a pod read is stated wrongly where its node was cut off unnoticed just before")
	f.BoolVar(&o.KeepValues, "keep-values", o.KeepValues,
		"whether the history has values of ConfigMaps beside digests: up to 1 KiB each, and none that looks like a credential")
	f.DurationVar(&o.CleanupInterval, "gc-interval", o.CleanupInterval, "how often snapshots that nothing needs are removed; 0 for never")
	f.IntVar(&o.Retention.History, "gc-history", o.Retention.History, "how many snapshots of each source stay although nothing uses them")
	f.DurationVar(&o.Retention.MinAge, "gc-min-age", o.Retention.MinAge, "how old a snapshot is at least, and how long it has been condemned, when it is deleted; a minute or more outside of tests")
	f.DurationVar(&o.RolloutInterval, "rollout-interval", o.RolloutInterval, "how often rollouts are looked at that may be left unfinished, and canaries that ask to be promoted")
	f.DurationVar(&o.FleetInterval, "fleet-interval", o.FleetInterval, "how often the leader looks at all fleets for its metrics; 0 for never")
	f.StringVar(&o.NotifyConfig, "notify-config", o.NotifyConfig, "file with the configuration of notifications (docs/notifications.md); none without it")
	f.StringVar(&o.NotifyCredentials, "notify-credentials", o.NotifyCredentials, "directory at which the Secret is mounted whose entries --notify-config names")
	f.DurationVar(&o.NotifyDormantAfter, "notify-dormant-after", o.NotifyDormantAfter, "after how long people are told of a change that no pod has read")
	f.BoolVar(&o.ReadReports, "read-reports", o.ReadReports,
		"ask pods with the annotation tidemark.dev/loaded-port, at their addresses, what their programs loaded")
	f.DurationVar(&o.Margins.RefreshLag, "refresh-lag", o.Margins.RefreshLag, "how long a mounted file may lag behind what its kubelet could read: its sync period and its cache")
	f.DurationVar(&o.Margins.ReadLag, "read-lag", o.Margins.ReadLag, "how stale what a connected kubelet reads may be; no longer than --settle, or the first pods of a rollout are unknown where it matters")
	f.DurationVar(&o.Margins.Skew, "clock-skew", o.Margins.Skew, "how far any two clocks of nodes, API server and controller may be apart")
	f.BoolVar(&o.WaitForReleases, "wait-for-releases", o.WaitForReleases, "wait for pending Helm releases; needs --secrets")
	f.BoolVar(&o.WatchReleases, "watch-releases", o.WatchReleases, "watch Helm releases whose deploys may not come back; needs --secrets")
	f.StringVar(&o.ReleasePolicy, "release-policy", o.ReleasePolicy, "what is done about a Helm deploy that cannot come back: report, or forward (mark its revision failed; needs the right to patch Helm's records)")
	f.DurationVar(&o.ReportAfter, "pending-report-after", o.ReportAfter, "for how long an operation may be under way on a Helm release before it is reported; 0 for ever")
	f.DurationVar(&o.ReleaseInterval, "release-interval", o.ReleaseInterval, "how often Helm releases are looked at on which something is under way")
	f.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect one of several replicas that writes; without it no history is kept")
	f.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "how long stand-bys wait before they take over")
	f.DurationVar(&o.RenewDeadline, "renew-deadline", o.RenewDeadline, "how long the leader tries to renew before it gives up")
	f.DurationVar(&o.RetryPeriod, "retry-period", o.RetryPeriod, "how often the leader renews, and stand-bys try to take over")
	f.BoolVar(&o.Webhook, "webhook", o.Webhook, "serve the webhooks of mode pin")
	f.StringVar(&o.WebhookAddress, "webhook-address", o.WebhookAddress, "where the webhooks are served, as HOST:PORT or :PORT")
	f.StringArrayVar(&o.WebhookNames, "webhook-name", o.WebhookNames, "another name, or address, under which the API server reaches the webhooks; may be repeated")
	f.DurationVar(&o.WebhookCertificateValidity, "webhook-certificate-validity", o.WebhookCertificateValidity, "how long a certificate of the webhooks is valid; it is renewed after two thirds of that")
	f.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "where /metrics is served; 0 for nowhere")
	f.StringVar(&o.ProbeAddress, "probe-address", o.ProbeAddress, "where /healthz and /readyz are served; 0 for nowhere")
}

// LoadConfig reads how to reach the cluster: from the file, else from the pod's service account, else as kubectl does.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return cfg, nil
}
