package cluster

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// Connection is a person's connection to one cluster: no cache, each call is a request.
type Connection struct {
	// Client reads and writes; what it writes is under Tidemark's field manager.
	Client client.Client

	now func() time.Time

	mu sync.Mutex
	// offset is how far the API server's clock is ahead of this machine's, at least; nil before the first answer.
	offset *time.Duration
}

// Connect makes a connection. It sends nothing yet.
func Connect(config *rest.Config, mapper meta.RESTMapper, now func() time.Time) (*Connection, error) {
	c := &Connection{now: now}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		// The server's own priority and fairness protects it; a page more or less must not wait for a client's limiter.
		config.QPS, config.Burst = 50, 300
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return serverClock{next, c} })
	var err error
	c.Client, err = client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper, FieldOwner: v1.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return c, nil
}

// ConnectionOf makes a connection of a client that there is already.
func ConnectionOf(c client.Client, now func() time.Time) *Connection {
	return &Connection{Client: c, now: now}
}

// Now is the time by the API server's clock, as far as its answers tell, and never later than that: ages and leases are
// judged by it, for the clock of the person's machine may be off. Before the first answer it is this machine's time.
func (c *Connection) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offset == nil {
		return c.now()
	}
	return c.now().Add(*c.offset)
}

// heard notes the date of an answer, which took so long. It is cut to the second, and older than the answer: of several dates the one
// that puts the server's clock furthest ahead is the nearest to the truth, unless this machine's clock was set forward since, or runs
// fast, so that the server's cannot be so far ahead any more.
func (c *Connection) heard(date time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := date.Sub(c.now())
	if c.offset == nil || ahead > *c.offset || ahead+time.Second+took < *c.offset {
		c.offset = &ahead
	}
}

// serverClock takes the time from the answers that pass through it.
type serverClock struct {
	http.RoundTripper
	c *Connection
}

// RoundTrip implements http.RoundTripper.
func (s serverClock) RoundTrip(req *http.Request) (*http.Response, error) {
	began := s.c.now()
	resp, err := s.RoundTripper.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		s.c.heard(date, s.c.now().Sub(began))
	}
	return resp, nil
}
