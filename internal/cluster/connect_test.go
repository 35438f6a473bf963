package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAConnectionTellsTheServersTime(t *testing.T) {
	server := noon.Add(700 * time.Millisecond)
	serve := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", server.Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer serve.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	machine := noon.Add(-5 * time.Minute) // a clock that is behind
	c, err := Connect(&rest.Config{Host: serve.URL}, mapper, func() time.Time { return machine })
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Now(); !got.Equal(machine) {
		t.Errorf("before any answer: %s, want the machine's %s", got, machine)
	}
	ask := func() {
		pod := MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"))
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, pod); err == nil {
			t.Fatal("the answer was no error")
		}
	}
	ask()
	if got := c.Now(); !got.Equal(noon) {
		t.Errorf("after an answer: %s, want %s", got, noon)
	}
	// A second later by the machine's clock the server's has passed into the next: its date is then off by less.
	machine, server = machine.Add(400*time.Millisecond), server.Add(400*time.Millisecond)
	ask()
	if got, want := c.Now(), noon.Add(time.Second); !got.Equal(want) {
		t.Errorf("after a sharper answer: %s, want %s", got, want)
	}
	machine, server = machine.Add(300*time.Millisecond), server.Add(300*time.Millisecond)
	ask()
	near := func(when string) {
		t.Helper()
		if got := c.Now(); got.After(server) || got.Before(server.Add(-time.Second)) {
			t.Errorf("%s: %s is not within the second before the server's %s", when, got, server)
		}
	}
	near("after a third")
	machine = machine.Add(10 * time.Minute) // somebody set the machine's clock forward
	ask()
	near("once its clock was set")
}
