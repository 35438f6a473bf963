// Package reported asks pods what their programs say that they loaded.
//
// Nothing that a pod answers is trusted: an answer is bounded in time and size, redirects are not followed, and one that is not
// of the form that the library tidemark.dev/tidemark/loaded serves gives one message, in which none of it is repeated.
package reported

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"tidemark.dev/tidemark/internal/fleet"
)

const (
	// path is where the library's handler is served.
	path = "/tidemark/loaded"
	// patience is how long one pod may take to answer, and allPatience all of them together.
	patience    = 2 * time.Second
	allPatience = 20 * time.Second
	// atOnce bounds how many pods are asked at the same time.
	atOnce = 16
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 256 << 10
)

// Pod is a pod to ask.
type Pod struct {
	Namespace, Name, IP string
	Port                int
}

// Answer is what a pod answered, or why that cannot be used.
type Answer struct {
	Report  *fleet.Report
	Problem string
}

// Dial opens a connection to an address of a pod.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Asker asks pods.
type Asker struct {
	client *http.Client
	url    func(Pod) string
	now    func() time.Time
	// all is how long all pods together may take.
	all time.Duration
	// from is which pod is asked first: the one at which the last look ran out of time.
	from atomic.Int64
}

// Direct asks pods at their own addresses, as something in the cluster's network can. The dialer is the ordinary one where nil.
func Direct(dial Dial, now func() time.Time) *Asker {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	transport := &http.Transport{
		DialContext: dial, DisableKeepAlives: true, ResponseHeaderTimeout: patience, MaxResponseHeaderBytes: 16 << 10,
	}
	return newAsker(transport, now, func(p Pod) string {
		return "http://" + net.JoinHostPort(p.IP, strconv.Itoa(p.Port)) + path
	})
}

// Proxied asks pods through the API server, with the caller's right to get pods/proxy.
func Proxied(config *rest.Config, now func() time.Time) (*Asker, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach pods through the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach pods through the API server: %w", err)
	}
	return newAsker(transport, now, func(p Pod) string {
		return server.JoinPath("api/v1/namespaces", p.Namespace, "pods", fmt.Sprintf("%s:%d", p.Name, p.Port), "proxy", path).String()
	}), nil
}

func newAsker(transport http.RoundTripper, now func() time.Time, target func(Pod) string) *Asker {
	return &Asker{
		client: &http.Client{
			Transport: transport, Timeout: patience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url: target, now: now, all: allPatience,
	}
}

// Ask asks the pods, some at the same time. Answers are in the order of the pods; one that is not reached in time says so, and is asked
// first the next time, so that pods that take long keep no other from being heard for good.
func (a *Asker) Ask(ctx context.Context, pods []Pod) []Answer {
	ctx, cancel := context.WithTimeout(ctx, a.all)
	defer cancel()
	out := make([]Answer, len(pods))
	turn := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	first, late := int(a.from.Load()), false
	for n := range pods {
		i := (first + n) % len(pods)
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			if !late {
				a.from.Store(int64(i))
			}
			late = true
			out[i].Problem = "it was not asked in time: too many pods take long to answer"
			continue
		}
		wait.Go(func() {
			defer func() { <-turn }()
			out[i] = a.ask(ctx, pods[i])
		})
	}
	wait.Wait()
	return out
}

func (a *Asker) ask(ctx context.Context, p Pod) Answer {
	body, err := a.fetch(ctx, p)
	if err != nil {
		return Answer{Problem: err.Error()}
	}
	report, err := decode(body, p.Namespace)
	if err != nil {
		return Answer{Problem: err.Error()}
	}
	report.At = a.now()
	return Answer{Report: report}
}

func (a *Asker) fetch(ctx context.Context, p Pod) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url(p), nil)
	if err != nil {
		return nil, errors.New("its address is none")
	}
	request.Header.Set("Accept", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("port %d does not answer: %w", p.Port, withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("port %d answers with HTTP status %d", p.Port, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("port %d does not finish its answer: %w", p.Port, withoutURL(err))
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("port %d answers with more than %d KiB", p.Port, maxAnswer>>10)
	}
	return body, nil
}

// withoutURL is the error without the address, and in plain words where it only took too long.
func withoutURL(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it takes too long")
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return errors.New("the connection fails")
}
