package agreement

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/reported"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/loaded"
)

// program is one that uses the library: it reads a directory and a variable, and serves what it loaded.
type program struct {
	*httptest.Server
	dir    string
	source *loaded.Source
}

func start(t *testing.T, files map[string]string) *program {
	t.Helper()
	reporter, err := loaded.New("shop")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(loaded.Path, reporter)
	p := &program{httptest.NewServer(mux), t.TempDir(), reporter.ConfigMap("settings")}
	t.Cleanup(p.Close)
	p.mounts(t, files)
	p.loads(t)
	return p
}

// mounts replaces the files.
func (p *program) mounts(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *program) loads(t *testing.T) {
	t.Helper()
	load := p.source.Begin()
	if _, err := load.ReadDir(p.dir); err != nil {
		t.Fatal(err)
	}
	if _, set := load.Getenv("level", "AGREEMENT_LEVEL"); !set {
		t.Fatal("the variable is not set")
	}
	load.Done()
}

// fleetOf is one pod with the program, whose start tells that it read what was applied first.
func (p *program) fleetOf(t *testing.T, began time.Time, contents ...map[string]string) fleet.Fleet {
	t.Helper()
	asker := reported.Direct(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.Listener.Addr().String())
	}, time.Now)
	answer := asker.Ask(t.Context(), []reported.Pod{{Namespace: "shop", Name: "app-1", IP: "10.0.0.1", Port: 8080}})[0]
	if answer.Problem != "" {
		t.Fatal(answer.Problem)
	}
	o := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "settings"}
	use := workload.Consumption{Object: o, Env: workload.Keys{Names: []string{"level"}}, Files: workload.Keys{All: true}, Refreshed: true, Required: true}
	object := fleet.Object{Use: use, Log: history.Log{Object: o}, LogTo: time.Now()}
	for i, data := range contents {
		content := digest.OfConfigMap("shop", "settings", data, nil)
		object.Applied = &content
		object.Log.Observe(history.Observation{
			At: began.Add(time.Duration(i-len(contents)) * time.Hour), Content: content, UID: "u", ResourceVersion: data["level"], Lag: time.Second, EveryEvent: true,
		})
	}
	return fleet.Fleet{
		Now: time.Now(), Namespace: "shop", Installed: true, Objects: []fleet.Object{object},
		Pods: []fleet.Pod{{
			Name: "app-1", Created: began.Add(-10 * time.Second), Phase: "Running", Ready: true, NodeReadySince: began.Add(-24 * time.Hour),
			Containers: []fleet.Container{{Name: "app", Role: workload.RoleMain, Started: began, Uses: []workload.Consumption{use}, Report: answer.Report}},
		}},
	}
}

func TestWhatAProgramReportsIsEvidence(t *testing.T) {
	t.Setenv("AGREEMENT_LEVEL", "debug")
	first := map[string]string{"level": "debug", "limits": "10"}
	second := map[string]string{"level": "debug", "limits": "2"}
	began := time.Now()
	p := start(t, first)
	f := p.fleetOf(t, began, first)
	got := fleet.Judge(f)
	if l := got.Pods[0].Containers[0].Loaded[0]; l.Evidence != fleet.Reported || !l.Current() || got.Verdict != fleet.InStep || len(got.Said) > 0 {
		t.Errorf("right after its start: %s, %+v", got.Verdict, l)
	}

	// The file was replaced while it ran, and it loaded again: nothing but its own word can tell.
	p.mounts(t, second)
	p.loads(t)
	f = p.fleetOf(t, began, second)
	got = fleet.Judge(f)
	if l := got.Pods[0].Containers[0].Loaded[0]; l.Evidence != fleet.Reported || !l.Current() {
		t.Errorf("after it loaded again: %s, %+v", got.Verdict, l)
	}

	// It says that it runs with what is applied, and its start tells of what was before.
	f = p.fleetOf(t, time.Now(), first, second)
	f.Pods[0].Created = f.Now.Add(-90 * time.Minute)
	f.Pods[0].Containers[0].Started = f.Pods[0].Created.Add(time.Second)
	got = fleet.Judge(f)
	if l := got.Pods[0].Containers[0].Loaded[0]; l.Evidence != fleet.Reported || !l.Current() || l.Contradiction == "" || len(got.Said) != 1 {
		t.Errorf("against its start: %s, %+v, said %q", got.Verdict, l, got.Said)
	}
}
