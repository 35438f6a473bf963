package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// inContexts are options that look at two clusters, and at a third one that does not answer.
func inContexts(output string) (*statusOptions, *bytes.Buffer, *bytes.Buffer) {
	var out, errOut bytes.Buffer
	o := statusTo(&out, &errOut)
	o.output = output
	sees := func(name string, workloads ...cluster.Workload) view {
		return view{name, func(context.Context) (*cluster.Sight, error) {
			return &cluster.Sight{Now: now, Workloads: workloads, Remarks: []string{"of " + name}}, nil
		}}
	}
	o.views = []view{
		sees("east", mailer()),
		{"lost", func(context.Context) (*cluster.Sight, error) { return nil, errors.New("connection refused") }},
		sees("west", calm()),
	}
	return o, &out, &errOut
}

func TestStatusOfSeveralClusters(t *testing.T) {
	for _, format := range []string{"", "wide", "json"} {
		t.Run("as "+format, func(t *testing.T) {
			o, out, errOut := inContexts(format)
			err := o.run(t.Context())
			if err == nil || err.Error() != "context lost: connection refused" {
				t.Errorf("error %v, want that of the one that does not answer", err)
			}
			golden(t, "contexts."+map[string]string{"": "txt"}[format]+format, out.String())
			if want := "remark: context east: of east\nremark: context west: of west\n"; errOut.String() != want {
				t.Errorf("remarked %q, want %q", errOut, want)
			}
		})
	}
}

func TestOneContextThatFailsDoesNotStopTheOthers(t *testing.T) {
	// One cluster without workloads, one address at which nobody answers, one context that the kubeconfig does not have.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: up, cluster: {server: "%s"}}, {name: down, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: up, context: {cluster: up}}, {name: down, context: {cluster: down}}], current-context: up}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := Run(t.Context(), Config{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, Clock: clocktesting.NewFakeClock(now),
	}, []string{"status", "--contexts", "down,nowhere,up", "-o", "json", "--kubeconfig", kubeconfig})
	var list v1.FleetList
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("printed %q, said %q: %v", &out, &errOut, err)
	}
	if code != exitError || len(list.Contexts) != 3 {
		t.Fatalf("exit status %d, %d contexts", code, len(list.Contexts))
	}
	for i, want := range []string{"refused", "context was not found", ""} {
		c := list.Contexts[i]
		if want == "" && c.Error != "" || !strings.Contains(c.Error, want) {
			t.Errorf("context %s: error %q, want %q in it", c.Context, c.Error, want)
		}
	}
	for _, want := range []string{"context down: ", "context nowhere: "} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("said %q, want %q in it", &errOut, want)
		}
	}
}

func TestContextsAreCompleted(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, contexts: [{name: west}, {name: east}, {name: test}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"": "east\ntest\nwest\n", "west,": "west,east\nwest,test\n"} {
		var out, errOut bytes.Buffer
		Run(t.Context(), Config{
			IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, Clock: clocktesting.NewFakeClock(now),
		}, []string{"__complete", "status", "--kubeconfig", kubeconfig, "--contexts", typed})
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("after %q offered %q, want %q", typed, &out, want)
		}
	}
}

// A variable that is not set must not make the current cluster out of those that were meant.
func TestNoContextIsAnError(t *testing.T) {
	var out, errOut bytes.Buffer
	code := Run(t.Context(), Config{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: clocktesting.NewFakeClock(now)}, []string{"status", "--contexts", "", "--exit-code"})
	if code != 2 || !strings.Contains(errOut.String(), "--contexts names no context") {
		t.Errorf("exit status %d: %q", code, &errOut)
	}
}

func TestNobodyWaitsAtThePromptForAClusterThatDoesNotAnswer(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(gone) })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: " + server.URL + "}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := Run(t.Context(), Config{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: clocktesting.NewFakeClock(now)},
		[]string{"__complete", "status", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), ""})
	if code != 0 || !strings.HasPrefix(out.String(), ":4") {
		t.Errorf("exit status %d, offered %q, %q", code, &out, &errOut)
	}
}
