package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

const (
	// pinningEvery is how often it is looked at whether pins are in force, unpinnedEvery while they are not.
	pinningEvery  = 15 * time.Second
	unpinnedEvery = 5 * time.Second
	// pinningTakes is how long the API server is given to hear of a policy or a webhook that appeared. Pods that it creates
	// before read the sources.
	pinningTakes = 3 * time.Second
)

// noPins is what to do when nothing makes pods read what their pins say.
const noPins = "nothing makes new pods read what their pins say, neither the policy " + v1.PolicyPin + " with its binding nor the webhook " +
	v1.WebhookPods + ": apply deploy/pin"

// pinning follows whether pins are in force in the cluster, and says what of mode pin is missing.
type pinning struct {
	reader  client.Reader // uncached
	clock   clock.Clock
	log     logr.Logger
	metrics *Metrics
	// came is called when pins come into force.
	came func()

	mu   sync.Mutex
	last *cluster.Pinning
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who may lead next should know.
func (p *pinning) NeedLeaderElection() bool { return false }

// Start looks again and again until the context ends.
func (p *pinning) Start(ctx context.Context) error {
	appeared := false
	for {
		next := pinningEvery
		found, err := cluster.FindPinning(ctx, p.reader)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				p.log.V(1).Info("Cannot look whether pins are in force; trying again", "error", err.Error())
			}
		case found.InForce() && !p.inForce() && !appeared:
			appeared, next = true, pinningTakes
		default:
			p.saw(found)
			appeared = false
			if !found.InForce() {
				next = unpinnedEvery
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.clock.After(next):
		}
	}
}

func (p *pinning) saw(found cluster.Pinning) {
	p.mu.Lock()
	before := p.last
	p.last = &found
	p.mu.Unlock()
	p.metrics.pinning(found)
	if before != nil && *before == found {
		return
	}
	p.log.Info(wordsOf(found), "policy", found.Policy, "podWebhook", found.Webhook, "workloadWebhook", found.Workloads)
	if found.InForce() && (before == nil || !before.InForce()) {
		p.came()
	}
}

// wordsOf says which means is in force, and what is missing.
func wordsOf(p cluster.Pinning) string {
	words := "Mode pin: the API server rewrites new pods by the policy " + v1.PolicyPin
	switch {
	case p.Policy && p.Webhook:
		words += "; the webhook " + v1.WebhookPods + " does so once more and is not needed"
	case p.Policy:
	case p.Webhook && p.Served:
		words = "Mode pin: the webhook " + v1.WebhookPods + " rewrites new pods, which do without when it is down: the policy " + v1.PolicyPin + " would not be"
	case p.Webhook:
		words = "Mode pin: the webhook " + v1.WebhookPods + " rewrites new pods, which do without when it is down: Kubernetes 1.36 can do it by a policy"
	case p.Hidden:
		return "Mode pin: whether anything makes new pods read what their pins say may not be looked at"
	default:
		return "Mode pin is not installed: " + noPins
	}
	if !p.Workloads {
		words += "; without the webhook " + v1.WebhookWorkloads + " a deploy of configuration, then image, makes a revision in between"
	}
	return words
}

// inForce reports whether pins are in force; true while that is not known.
func (p *pinning) inForce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last == nil || p.last.InForce()
}
