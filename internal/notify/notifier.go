package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// saveDelay is how long changes are gathered before they are written.
	saveDelay = time.Second
	// saveRetry is how long to wait after a write that failed.
	saveRetry = 5 * time.Second
	// saveLast is how long the last write may take when the program ends.
	saveLast = 3 * time.Second
	// repeatEvery is how often it is looked at what is to be repeated or forgotten.
	repeatEvery = time.Minute
)

// Options configure a [Notifier].
type Options struct {
	// Config says whom to tell.
	Config *Config
	// Credentials is the directory at which the Secret with the credentials is mounted; "" for none.
	Credentials string
	// Client reads and writes what was told, without a cache.
	Client client.Client
	// Namespace is Tidemark's own.
	Namespace string
	// Scope tells this cluster from others where the configuration does not name it: the UID of the namespace kube-system.
	Scope string
	// Log says what cannot be delivered, each time with another reason.
	Log logr.Logger
	// Clock is the real one where nil.
	Clock clock.WithTicker
	// Transport sends. Default: [http.DefaultTransport], with the proxy of the environment.
	Transport http.RoundTripper
	// RetryFirst and RetryMost are the pause after a first failure, and the longest one; it doubles. Defaults 1s, 5m.
	RetryFirst, RetryMost time.Duration
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.RetryFirst <= 0 {
		o.RetryFirst = time.Second
	}
	if o.RetryMost <= 0 {
		o.RetryMost = 5 * time.Minute
	}
	return o
}

// Notifier tells people. It works while [Notifier.Start] runs, which is where this process leads; before and afterwards it takes
// nothing on, and need not, for its callers say again what still holds. A nil Notifier takes nothing on either.
type Notifier struct {
	o       Options
	metrics *Metrics
	sender  *sender
	store   *store
	boxes   map[string]*outbox
	kick    chan struct{} // something is to be written

	mu      sync.Mutex
	working bool
	entries map[string]*entry
	sources map[string]bool   // those that have told once what holds
	failing map[string]string // what was logged last of each destination
}

// New makes a notifier of a configuration that [ParseConfig] gave.
func New(o Options, metrics *Metrics) (*Notifier, error) {
	if o.Config == nil || o.Client == nil || o.Namespace == "" {
		return nil, errors.New("notifications: want a configuration, a client and Tidemark's namespace")
	}
	o = o.withDefaults()
	return &Notifier{
		o: o, metrics: metrics, sender: newSender(o.Credentials, o.Transport, o.Clock.Now), store: &store{client: o.Client, namespace: o.Namespace},
		kick: make(chan struct{}, 1), failing: map[string]string{},
	}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader sends.
func (*Notifier) NeedLeaderElection() bool { return true }

// Start reads what was told before, and delivers until the context ends. Then it delivers for some seconds more what waits, and
// writes down the rest for the next leader.
func (n *Notifier) Start(ctx context.Context) error {
	if !n.load(ctx) {
		return nil
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var boxes sync.WaitGroup
	for _, b := range n.boxes {
		boxes.Go(func() { b.run(sending, n) })
	}
	n.tick()
	n.write(ctx)

	n.mu.Lock()
	n.working = false
	n.mu.Unlock()
	late := n.o.Clock.NewTimer(flushTimeout)
	defer late.Stop()
	go func() {
		select {
		case <-late.C():
		case <-sending.Done():
		}
		stop()
	}()
	for _, b := range n.boxes {
		b.queue.ShutDown()
	}
	boxes.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLast)
	defer cancel()
	if err := n.save(last); err != nil {
		n.o.Log.Error(err, "Cannot write down what was told; the next leader may tell it again")
	}
	return nil
}

// load reads what the leader before has told; false when the context ended.
func (n *Notifier) load(ctx context.Context) bool {
	for {
		text, err := n.store.load(ctx)
		if err == nil {
			n.begin(text)
			return true
		}
		n.o.Log.Error(err, "Cannot read what was told; trying again", "retryIn", saveRetry)
		select {
		case <-ctx.Done():
			return false
		case <-n.o.Clock.After(saveRetry):
		}
	}
}

func (n *Notifier) begin(text []byte) {
	entries, sources := map[string]*entry{}, map[string]bool{}
	if text != nil {
		var err error
		if entries, sources, err = decode(text); err != nil {
			n.o.Log.Error(err, "What was told cannot be read: what holds is summed up once more")
			entries, sources = map[string]*entry{}, map[string]bool{}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boxes = map[string]*outbox{}
	for i := range n.o.Config.Destinations {
		d := &n.o.Config.Destinations[i]
		n.boxes[d.Name] = newOutbox(d, n.o)
	}
	for _, e := range entries {
		n.adopt(e)
	}
	n.entries, n.sources, n.working = entries, sources, true
	for key, e := range entries {
		n.queue(key, e)
	}
	n.metrics.show(n)
}

// adopt fits an entry of an earlier leader to the present configuration.
func (n *Notifier) adopt(e *entry) {
	maps.DeleteFunc(e.Told, func(to string, _ time.Time) bool { return n.boxes[to] == nil })
	e.Perhaps = n.o.Config.known(e.Perhaps)
	if e.To = n.o.Config.known(e.To); len(e.To) == 0 {
		e.To = n.o.Config.destinations(e.Message)
	}
}

// write writes down what changes until the context ends, and looks again and again at what is to be repeated or forgotten.
func (n *Notifier) write(ctx context.Context) {
	wait := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-n.o.Clock.After(d):
			return true
		}
	}
	repeat := n.o.Clock.NewTicker(repeatEvery)
	defer repeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-repeat.C():
			n.tick()
			continue
		case <-n.kick:
		}
		if !wait(saveDelay) {
			return
		}
		for err := n.save(ctx); err != nil; err = n.save(ctx) {
			n.o.Log.Error(err, "Cannot write down what was told; trying again", "retryIn", saveRetry)
			if !wait(saveRetry) {
				return
			}
		}
	}
}

func (n *Notifier) save(ctx context.Context) error {
	n.mu.Lock()
	n.metrics.show(n)
	text, err := encode(n.entries, n.sources)
	n.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode what was told: %w", err)
	}
	return n.store.save(ctx, text)
}

// tick queues what is to be repeated, and forgets what is over.
func (n *Notifier) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, e := range n.entries {
		if e.done(n.o.Clock.Now()) {
			n.forget(key)
			continue
		}
		n.queue(key, e)
	}
}

// Notify says that something holds, or, with Once, that it happened. It may be said again and again: each destination hears of it
// once. What holds is ended by [Notifier.Resolve].
func (n *Notifier) Notify(m Message) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.working {
		n.take(m, "", false)
	}
}

// Holds reports whether it is known already that something holds under the key: whoever finds facts at some cost need not find
// them again.
func (n *Notifier) Holds(key string) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entries[key]
	return e != nil && !e.Ended
}

// Knows reports whether a source has said once what holds, in this or an earlier process.
func (n *Notifier) Knows(source string) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.working && n.sources[source]
}

// Resolve says that what holds under the key has ended. Those who were told are told so, and nobody else.
func (n *Notifier) Resolve(key string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.working {
		n.end(key)
	}
}

// Sync says all that holds of one source, which is the name of a set: what it said before and does not say now has ended. Of keys
// for which undecided reports true it is not known whether they hold, and they stay as they are; nil for none. What a source says
// the first time ever already held before anybody looked: that becomes one summary, with what is [Message.Early] in it, so that none
// of it is told again when its time comes.
func (n *Notifier) Sync(source string, holds []Message, undecided func(key string) bool) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.working {
		return
	}
	first := !n.sources[source]
	n.sources[source] = true
	now := map[string]bool{}
	for _, m := range holds {
		now[m.Key] = true
		if first || !m.Early {
			n.take(m, source, first)
		}
	}
	if first {
		n.changed()
		if len(holds) > 0 {
			n.take(summary(source, holds), "", false)
		}
	}
	for key, e := range n.entries {
		if e.Source == source && !now[key] && (undecided == nil || !undecided(key)) {
			n.end(key)
		}
	}
}

// take takes a message on; silently, where it is part of a summary.
func (n *Notifier) take(m Message, source string, silent bool) {
	if err := m.validate(); err != nil {
		n.o.Log.Error(err, "A notification is not one; it is dropped")
		n.metrics.dropped.WithLabelValues("invalid").Inc()
		return
	}
	e := n.entries[m.Key]
	switch {
	case e != nil && !e.Ended:
		return
	case e != nil: // it holds again before all were told that it had ended
		e.Ended = false
	case len(n.entries) >= maxEntries && m.Severity != Page:
		n.metrics.dropped.WithLabelValues("full").Inc()
		return
	default:
		e = &entry{Told: map[string]time.Time{}}
	}
	e.Message, e.Source, e.Silent, e.Taken = m.bounded(), source, silent, n.o.Clock.Now()
	e.To = n.o.Config.destinations(m)
	n.entries[m.Key] = e
	n.queue(m.Key, e)
	n.changed()
}

func (n *Notifier) end(key string) {
	e := n.entries[key]
	if e == nil || e.Ended || e.Once {
		return
	}
	e.Ended = true
	n.changed()
	if e.done(n.o.Clock.Now()) {
		n.forget(key)
		return
	}
	n.queue(key, e)
}

func (n *Notifier) forget(key string) {
	delete(n.entries, key)
	n.changed()
}

// queue queues an entry for every destination that is to be told something.
func (n *Notifier) queue(key string, e *entry) {
	for to, b := range n.boxes {
		if _, ok := e.wants(to, b.destination.repeats(), n.o.Clock.Now()); ok && b.limiter.NumRequeues(key) == 0 {
			b.queue.Add(key)
		}
	}
}

// changed has the memory written soon.
func (n *Notifier) changed() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// next gives what is to be said to a destination under a key.
func (n *Notifier) next(key string, d *Destination) (notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.entries[key]
	if e == nil {
		return notice{}, false
	}
	out, ok := e.wants(d.Name, d.repeats(), n.o.Clock.Now())
	out.cluster = n.o.Config.Cluster
	scope := out.cluster
	if scope == "" {
		scope = n.o.Scope
	}
	out.id = "tidemark/" + scope + "/" + key
	return out, ok
}

// settle notes what came of a delivery.
func (n *Notifier) settle(key string, d *Destination, what notice, failure *DeliveryError) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if failure != nil {
		n.metrics.failures.WithLabelValues(d.Name, string(failure.Cause)).Inc()
		if text := failure.Error(); text != n.failing[d.Name] && failure.Cause != CauseStopped {
			n.failing[d.Name] = text
			n.o.Log.Error(failure, "Cannot deliver notifications; trying again", "destination", d.Name)
		}
		if !failure.Perhaps || what.resolved || what.Once { // what is once has no end to be told
			return
		}
	} else {
		delete(n.failing, d.Name)
		n.metrics.sent.WithLabelValues(d.Name, what.status()).Inc()
	}
	e := n.entries[key]
	switch {
	case e != nil:
	case what.resolved || what.Once:
		return
	default: // it ended, and was forgotten, while its first delivery was under way: who took that is to hear of the end
		e = &entry{Message: what.Message, Taken: what.taken, To: []string{d.Name}, Told: map[string]time.Time{}, Ended: true}
		n.entries[key] = e
	}
	if failure != nil {
		e.unsure(d.Name)
	} else {
		e.settled(d.Name, what.resolved, n.o.Clock.Now())
	}
	n.changed()
	if e.done(n.o.Clock.Now()) {
		n.forget(key)
	}
}

// show sets how many messages wait for each destination.
func (m *Metrics) show(n *Notifier) {
	for to, b := range n.boxes {
		waiting := 0
		for _, e := range n.entries {
			if _, ok := e.wants(to, b.destination.repeats(), n.o.Clock.Now()); ok {
				waiting++
			}
		}
		m.waiting.WithLabelValues(to).Set(float64(waiting))
	}
}

// summary is one message in place of many.
func summary(source string, holds []Message) Message {
	counts := map[string]int{}
	for _, m := range holds {
		counts[m.Alert]++
	}
	out := Message{
		Key: "summary/" + source, Alert: "TidemarkSummary", Severity: Note, Once: true,
		Title: fmt.Sprintf("%d things called for attention when Tidemark began to look at %s; from now on only what changes is told", len(holds), source),
	}
	for _, alert := range slices.Sorted(maps.Keys(counts)) {
		out.Facts = append(out.Facts, Fact{alert, fmt.Sprint(counts[alert])})
	}
	const shown = 10
	for _, m := range holds[:min(len(holds), shown)] {
		out.Facts = append(out.Facts, Fact{m.Alert, m.Title})
	}
	if len(holds) > shown {
		out.Facts = append(out.Facts, Fact{"and", fmt.Sprintf("%d more", len(holds)-shown)})
	}
	return out
}
