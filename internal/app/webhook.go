package app

import (
	"fmt"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/controller"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/webhook"
)

// webhookOptions are those of the webhooks, as far as a person sets them.
func (o Options) webhookOptions() webhook.Options {
	return webhook.Options{
		Namespace: o.Namespace, Address: o.WebhookAddress, Names: o.WebhookNames, Validity: o.WebhookCertificateValidity,
	}
}

// validateWebhook checks the options of the webhooks, where they are asked for.
func (o Options) validateWebhook() error {
	if !o.Webhook {
		return nil
	}
	return o.webhookOptions().Validate()
}

// addWebhook adds the webhooks where they are asked for.
func addWebhook(
	mgr manager.Manager, o Options, kinds []cluster.Kind, direct client.Client, key *digest.Key, recorder events.EventRecorder, pinning *controller.Pinning,
) error {
	if !o.Webhook {
		return nil
	}
	own, err := webhook.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	w := o.webhookOptions()
	w.Kinds, w.Log, w.Recorder, w.PinsLack = kinds, o.Log.WithName("webhook"), recorder, pinning.Lacks
	w.Asked = pinning.Asked
	pinning.Serves()
	w.Live = &cluster.Live{
		Copier: &cluster.Copier{Client: direct, Key: key}, Namespace: o.Namespace, DefaultMode: stamp.Mode(o.DefaultMode), Secrets: o.Secrets,
	}
	return webhook.Register(mgr, w, own)
}
