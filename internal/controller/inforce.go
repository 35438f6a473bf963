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
	// servingTakes is how long a replica that serves the webhook on pods waits to be asked by the API server for the first time: that
	// it is ready has to get from the kubelet to the nodes' routes.
	servingTakes = 10 * time.Second
)

// Why it is not known that new pods read what their pins say, with what to do.
const (
	noPins = "nothing makes new pods read what their pins say, neither the policy " + v1.PolicyPin + " with its binding nor the webhook " +
		v1.WebhookPods + ": apply deploy/pin"
	hiddenPins = "whether anything makes new pods read what their pins say may not be looked at: apply deploy/pin, which has the right to get " +
		"the policy " + v1.PolicyPin + " and the webhook " + v1.WebhookPods
	unseenPins  = "whether pins are in force is not known yet"
	leftOutPins = "the webhook " + v1.WebhookPods + ", which alone makes new pods read what their pins say, leaves this namespace out: set another mode here"
	unaskedPins = "the API server may not find this replica's webhook " + v1.WebhookPods + " yet, which it has only just begun to serve"
)

// Pinning follows whether pins are in force in the cluster, and says what of mode pin is missing. Every replica has one, as each
// may be asked by a webhook, and may lead next.
type Pinning struct {
	reader  client.Reader
	system  string // Tidemark's own namespace
	clock   clock.Clock
	log     logr.Logger
	metrics *Metrics
	// came is called when it is first known how pins stand, and when they come into force.
	came func()

	mu      sync.Mutex
	last    *cluster.Pinning // nil until somebody could look
	unasked time.Time        // until when the webhook that this replica serves is not relied on; zero when it is
	relied  bool             // that came was called since pins are in force
}

// NewPinning makes one that knows nothing yet. The reader must not be a cache; system is Tidemark's own namespace.
func NewPinning(reader client.Reader, system string, c clock.Clock, log logr.Logger, metrics *Metrics) *Pinning {
	return &Pinning{reader: reader, system: system, clock: c, log: log, metrics: metrics, came: func() {}}
}

// Serves says that this replica has only just begun to serve the webhooks. Where nothing else rewrites pods, it may be the only one
// that does: it is not relied on before the API server has asked it, or had the time to find it.
func (p *Pinning) Serves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unasked = p.clock.Now().Add(servingTakes)
}

// Asked says that the API server has asked a webhook of this replica, so that it finds it.
func (p *Pinning) Asked() {
	p.mu.Lock()
	p.unasked = time.Time{}
	came := p.last != nil && p.turned()
	p.mu.Unlock()
	if came {
		p.came()
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Pinning) NeedLeaderElection() bool { return false }

// Start looks again and again until the context ends.
func (p *Pinning) Start(ctx context.Context) error {
	appeared := false
	for {
		next := pinningEvery
		found, err := cluster.FindPinning(ctx, p.reader)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				p.log.V(1).Info("Cannot look whether pins are in force; trying again", "error", err.Error())
			}
		case found.InForce() && p.looked() && p.Lacks("") != "" && !appeared:
			appeared, next = true, pinningTakes
		default:
			p.saw(found)
			appeared = false
			switch {
			case !found.InForce():
				next = unpinnedEvery
			case p.Starting():
				next = servingTakes
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.clock.After(next):
		}
	}
}

func (p *Pinning) saw(found cluster.Pinning) {
	p.mu.Lock()
	before := p.last
	p.last = &found
	came := p.turned() || before == nil
	p.mu.Unlock()
	if came {
		defer p.came()
	}
	p.metrics.pinning(found)
	if before != nil && *before == found {
		return
	}
	p.log.Info(wordsOf(found), "policy", found.Policy, "podWebhook", found.Webhook, "workloadWebhook", found.Workloads)
}

// turned reports whether pins came into force since it was last asked.
func (p *Pinning) turned() bool {
	before := p.relied
	p.relied = p.lacks("") == ""
	return p.relied && !before
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
		return "Mode pin: " + hiddenPins
	default:
		return "Mode pin is not installed: " + noPins
	}
	if !p.Workloads && !p.Hidden {
		words += "; without the webhook " + v1.WebhookWorkloads + " a deploy of configuration, then image, makes a revision in between"
	}
	return words
}

// Lacks says why it is not known that new pods of a namespace read what their pins say, and what to do; "" when it is known that they
// do. Of no namespace it says why it is not known anywhere.
func (p *Pinning) Lacks(namespace string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lacks(namespace)
}

func (p *Pinning) lacks(namespace string) string {
	switch {
	case p.last == nil:
		return unseenPins
	case namespace != "" && p.last.LeavesOut(namespace, p.system):
		return leftOutPins
	case p.starting():
		return unaskedPins
	case p.last.InForce():
		return ""
	case p.last.Hidden:
		return hiddenPins
	}
	return noPins
}

// Starting reports whether pins are not in force only because this replica has just begun to serve what will see to them: in
// seconds they are.
func (p *Pinning) Starting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starting()
}

func (p *Pinning) starting() bool {
	return p.last != nil && p.last.Webhook && !p.last.Policy && p.clock.Now().Before(p.unasked)
}

// looked reports whether anything is known at all.
func (p *Pinning) looked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last != nil
}
