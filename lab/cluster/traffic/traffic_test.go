package traffic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// serve returns the counts of a list of requests to a server whose inner chain authenticates and then answers.
func serve(t *testing.T, counter *Counter, answer http.HandlerFunc, requests ...*http.Request) []string {
	t.Helper()
	config := &genericapiserver.Config{RequestInfoResolver: &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	config.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		name := r.Header.Get("Name")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
	})
	inner := func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, ok, err := c.Authentication.Authenticator.AuthenticateRequest(r); err != nil || !ok {
				http.Error(w, "", http.StatusUnauthorized)
				return
			}
			api.ServeHTTP(w, r)
		})
	}
	server := httptest.NewServer(counter.HandlerChain(inner)(answer, config))
	defer server.Close()
	for _, r := range requests {
		r.RequestURI = ""
		r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	var lines []string
	for _, r := range counter.List() {
		lines = append(lines, fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%d|%d|%d",
			r.UserAgent, r.User, r.Verb, r.Group, r.Resource, r.Subresource, r.Path, r.Code, r.Count, r.Bytes))
	}
	return lines
}

func asked(method, path, name string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("User-Agent", "test")
	if name != "" {
		r.Header.Set("Name", name)
	}
	return r
}

func TestCounts(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "four") }
	forbidden := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	nothing := func(http.ResponseWriter, *http.Request) {}
	for name, test := range map[string]struct {
		answer  http.HandlerFunc
		request *http.Request
		want    string
	}{
		"a list":          {ok, asked("GET", "/api/v1/namespaces/x/pods", "ann"), "test|ann|list||pods|||200|1|4"},
		"a watch":         {ok, asked("GET", "/api/v1/namespaces/x/pods?watch=true", "ann"), "test|ann|watch||pods|||200|1|4"},
		"a subresource":   {ok, asked("PATCH", "/apis/apps/v1/namespaces/x/deployments/y/scale", "ann"), "test|ann|patch|apps|deployments|scale||200|1|4"},
		"no resource":     {ok, asked("GET", "/readyz", "ann"), "test|ann|get||||/readyz|200|1|4"},
		"a refusal":       {forbidden, asked("DELETE", "/api/v1/namespaces/x/pods/y", "ann"), "test|ann|delete||pods|||403|1|0"},
		"no identity":     {ok, asked("GET", "/api/v1/pods", ""), "test||list||pods|||401|1|1"},
		"an empty answer": {nothing, asked("GET", "/api/v1/pods", "ann"), "test|ann|list||pods|||200|1|0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := serve(t, NewCounter(), test.answer, test.request); len(got) != 1 || got[0] != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestResetBeginsAnew(t *testing.T) {
	counter := NewCounter()
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "four") }
	serve(t, counter, ok, asked("GET", "/api/v1/pods", "ann"), asked("GET", "/api/v1/pods", "ann"))
	if got := counter.List(); len(got) != 1 || got[0].Count != 2 {
		t.Errorf("counts are %+v", got)
	}
	counter.Reset()
	if got := counter.List(); len(got) != 0 {
		t.Errorf("counts are %+v", got)
	}
}
