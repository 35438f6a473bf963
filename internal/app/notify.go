package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"tidemark.dev/tidemark/internal/notify"
)

// addNotifier adds what tells people to the manager; nil where nobody is to be told.
func addNotifier(ctx context.Context, mgr manager.Manager, o Options, direct client.Client) (*notify.Notifier, error) {
	if o.NotifyConfig == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.NotifyConfig)
	if err != nil {
		return nil, fmt.Errorf("--notify-config: %w", err)
	}
	config, err := notify.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("--notify-config: %s: %w", o.NotifyConfig, err)
	}
	own, err := notify.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of notifications: %w", err)
	}
	scope, err := clusterID(ctx, direct)
	if err != nil {
		return nil, err
	}
	n, err := notify.New(notify.Options{
		Config: config, Credentials: o.NotifyCredentials, Client: direct, Namespace: o.Namespace, Scope: scope, Log: o.Log.WithName("notify"),
	}, own)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(n); err != nil {
		return nil, fmt.Errorf("add notifications: %w", err)
	}
	return n, nil
}

// clusterID is what tells this cluster from any other.
func clusterID(ctx context.Context, c client.Client) (string, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, m); err != nil {
		return "", fmt.Errorf("tell this cluster from others by namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(m.UID), nil
}

// validateNotify checks the options of notifications.
func (o Options) validateNotify() error {
	switch {
	case o.NotifyConfig == "":
		return nil
	case o.NotifyDormantAfter <= 0:
		return errors.New("--notify-dormant-after: want more than 0")
	case o.FleetInterval == 0:
		return errors.New("--notify-config: people are told of what the look at all fleets finds: set --fleet-interval to more than 0")
	case !o.LeaderElect:
		return errors.New("--notify-config: needs --leader-elect, so that one replica tells people and not each")
	}
	return nil
}
