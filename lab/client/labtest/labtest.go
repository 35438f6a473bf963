// Package labtest gives a test a lab.
package labtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

const (
	// Patience bounds Eventually. It is generous, because a machine under load is slow: a test that passes does
	// not wait for it.
	Patience = 2 * time.Minute
	pause    = 100 * time.Millisecond
	logTail  = 8 << 10
)

// Start starts a lab that stops when the test ends. When the test failed it then shows the lab's events and the end
// of its log. A test that needs a lab fails without one; only `go test -short` skips it.
func Start(t testing.TB, options client.Options) *client.Lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a lab")
	}
	lab, err := client.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			report(t, lab)
		}
		if err := lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

func report(t testing.TB, lab *client.Lab) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // the test's own has ended
	defer cancel()
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
	} {
		out, _, err := lab.Kubectl(ctx, args...)
		if err != nil {
			t.Logf("report: %v", err)
			continue
		}
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
	reportLog(t, "the lab's log", lab.LogFile())
}

func reportLog(t testing.TB, what, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Logf("report: %v", err)
		return
	}
	t.Logf("end of %s\n%s", what, content[max(0, len(content)-logTail):])
}

// StartArgoRollouts starts Argo Rollouts' controller on a lab, until the test ends. When the test failed it then shows
// the Rollouts and the end of the controller's log.
func StartArgoRollouts(t testing.TB, lab *client.Lab) *client.ArgoRollouts {
	t.Helper()
	argo, err := lab.StartArgoRollouts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // the test's own has ended
			defer cancel()
			out, _, err := lab.Kubectl(ctx, "get", "rollouts,replicasets", "-A", "-o", "wide")
			t.Logf("kubectl get rollouts,replicasets (%v)\n%s", err, out)
			reportLog(t, "Argo Rollouts' log", argo.LogFile())
		}
		if err := argo.Stop(); err != nil {
			t.Error(err)
		}
	})
	return argo
}

// Eventually calls check until it returns nil, and fails the test with its last error when it does not in time.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s: %v", Patience, what, err)
		}
		if t.Context().Err() != nil {
			t.Fatalf("waiting for %s: %v, last: %v", what, t.Context().Err(), err)
		}
		time.Sleep(pause)
	}
}

// Kubectl runs kubectl and returns what it wrote. The test fails when kubectl does.
func Kubectl(t testing.TB, lab *client.Lab, args ...string) string {
	t.Helper()
	out, _, err := lab.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Apply applies a manifest. The test fails when that does.
func Apply(t testing.TB, lab *client.Lab, manifest string) {
	t.Helper()
	if err := lab.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// Equal returns an error that says the difference, for use in Eventually.
func Equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}
