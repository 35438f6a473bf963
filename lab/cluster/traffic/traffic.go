// Package traffic counts what each client does to the API server.
package traffic

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"tidemark.dev/tidemark/lab/wire"
)

// Counter counts requests. It sees every one, also those refused before they reach the API: without a valid
// identity, without the right, or for want of capacity.
type Counter struct {
	mu     sync.Mutex
	counts map[key]*count
}

type key struct {
	agent, user, verb, group, resource, subresource, path string
	code                                                  int
}

type count struct{ requests, bytes int64 }

// NewCounter returns a counter that has seen nothing.
func NewCounter() *Counter { return &Counter{counts: map[key]*count{}} }

// List returns the counts since the last Reset, in a stable order.
func (c *Counter) List() []wire.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]wire.Request, 0, len(c.counts))
	for k, n := range c.counts {
		list = append(list, wire.Request{
			UserAgent: k.agent, User: k.user, Verb: k.verb, Group: k.group, Resource: k.resource,
			Subresource: k.subresource, Path: k.path, Code: k.code, Count: n.requests, Bytes: n.bytes,
		})
	}
	slices.SortFunc(list, func(a, b wire.Request) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.User, b.User), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// Reset begins the counts anew. Watches that are open add only their bytes from then on.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = map[key]*count{}
}

func (c *Counter) add(k key, requests, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts[k]
	if n == nil {
		n = &count{}
		c.counts[k] = n
	}
	n.requests += requests
	n.bytes += bytes
}

// HandlerChain builds the API server's own handler chain with the counter around it.
func (c *Counter) HandlerChain(inner func(http.Handler, *genericapiserver.Config) http.Handler) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, config *genericapiserver.Config) http.Handler {
		config.Authentication.Authenticator = noteUser(config.Authentication.Authenticator)
		return c.handler(inner(api, config), config)
	}
}

func (c *Counter) handler(next http.Handler, config *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := &atomic.Value{}
		k := key{agent: r.UserAgent(), path: r.URL.Path}
		if info, err := config.RequestInfoResolver.NewRequestInfo(r); err == nil {
			k.verb = info.Verb
			if info.IsResourceRequest {
				k.group, k.resource, k.subresource, k.path = info.APIGroup, info.Resource, info.Subresource, ""
			}
		}
		answer := &answer{ResponseWriter: w, counter: c, key: k, user: user}
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		answer.note(http.StatusOK) // a handler that wrote nothing
	})
}

// userKey is where the authenticator leaves the user's name for the handler outside of it.
type userKey struct{}

// noteUser keeps the authenticated name, which an impersonation further inside does not change.
func noteUser(inner authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := inner.AuthenticateRequest(r)
		if holder, found := r.Context().Value(userKey{}).(*atomic.Value); found && ok {
			holder.Store(response.User.GetName())
		}
		return response, ok, err
	})
}

// answer counts a response: the request when its header is written, which is before the client sees it, and
// bytes as they are written.
type answer struct {
	http.ResponseWriter
	counter *Counter
	user    *atomic.Value
	once    sync.Once
	key     key
}

// Unwrap lets WrapForHTTP1Or2 find what else the connection can do.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		a.note(code)
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(body []byte) (int, error) {
	a.note(http.StatusOK)
	n, err := a.ResponseWriter.Write(body)
	a.counter.add(a.key, 0, int64(n))
	return n, err
}

func (a *answer) note(code int) {
	a.once.Do(func() {
		a.key.code = code
		a.key.user, _ = a.user.Load().(string)
		a.counter.add(a.key, 1, 0)
	})
}
