package loaded_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tidemark.dev/tidemark/loaded"
)

func reporter(t *testing.T) *loaded.Reporter {
	t.Helper()
	r, err := loaded.New("shop")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only is what the report says of its only object.
func only(t *testing.T, r *loaded.Reporter) loaded.Object {
	t.Helper()
	objects := r.Report().Objects
	if len(objects) != 1 {
		t.Fatalf("the report has %d objects, want one", len(objects))
	}
	return objects[0]
}

// digestOf is the digest after one load.
func digestOf(t *testing.T, load func(*loaded.Load), opts ...loaded.Option) string {
	t.Helper()
	r := reporter(t)
	l := r.ConfigMap("settings", opts...).Begin()
	load(l)
	l.Done()
	return only(t, r).Digest
}

func served(t *testing.T, handler http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, loaded.Path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d", w.Code)
	}
	return w.Body.String()
}

func metrics(t *testing.T, r *loaded.Reporter) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r)
	return served(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

func TestWhatIsReadIsWhatIsReported(t *testing.T) {
	t.Setenv("APP_LIMIT", "10")
	t.Setenv("LEVEL", "debug")
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := reporter(t)
	l := r.ConfigMap("settings").Begin()
	if v, ok := l.Getenv("log.level", "LEVEL"); !ok || v != "debug" {
		t.Errorf("Getenv gives %q, %t", v, ok)
	}
	if env, err := l.EnvFrom("APP_"); err != nil || env["LIMIT"] != "10" || len(env) != 1 {
		t.Errorf("EnvFrom gives %v, %v", env, err)
	}
	if content, err := l.ReadFile("rules", file); err != nil || string(content) != "a: 1\n" {
		t.Errorf("ReadFile gives %q, %v", content, err)
	}
	if len(r.Report().Objects) != 0 {
		t.Error("the object is reported before the load is done")
	}
	l.Done()
	o := only(t, r)
	if got := names(o.Env); !slices.Equal(got, []string{"LIMIT", "log.level"}) {
		t.Errorf("environment: got %v", got)
	}
	if got := names(o.Files); !slices.Equal(got, []string{"rules"}) {
		t.Errorf("files: got %v", got)
	}
	if o.Kind != "ConfigMap" || o.Namespace != "shop" || o.Name != "settings" || o.Digest == "" || o.LoadedAt.IsZero() {
		t.Errorf("got %+v", o)
	}
}

func names(keys []loaded.Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Name)
	}
	return out
}

func TestPodsCanBeComparedKeyByKey(t *testing.T) {
	read := func(limit string) loaded.Object {
		r := reporter(t)
		l := r.ConfigMap("settings").Begin()
		l.Bytes("limit", []byte(limit))
		l.Bytes("queue", []byte("outgoing"))
		l.Done()
		return only(t, r)
	}
	a, b := read("10"), read("20")
	if a.Files[0].Digest == b.Files[0].Digest || a.Files[1].Digest != b.Files[1].Digest || a.Digest == b.Digest {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestDigestTellsApartWhatAProgramCould(t *testing.T) {
	t.Setenv("V", "1")
	t.Setenv("EMPTY", "")
	digests := map[string]string{
		"a variable":       digestOf(t, func(l *loaded.Load) { l.Getenv("a", "V") }),
		"an empty one":     digestOf(t, func(l *loaded.Load) { l.Getenv("a", "EMPTY") }),
		"a file":           digestOf(t, func(l *loaded.Load) { l.Bytes("a", []byte("1")) }),
		"an empty file":    digestOf(t, func(l *loaded.Load) { l.Bytes("a", nil) }),
		"another key":      digestOf(t, func(l *loaded.Load) { l.Bytes("b", []byte("1")) }),
		"an absent key":    digestOf(t, func(l *loaded.Load) { l.Bytes("b", []byte("1")); l.Getenv("a", "NOT_SET") }),
		"no key found":     digestOf(t, func(l *loaded.Load) { l.Getenv("a", "NOT_SET") }),
		"file and var":     digestOf(t, func(l *loaded.Load) { l.Bytes("a", []byte("1")); l.Getenv("a", "V") }),
		"a separator in a": digestOf(t, func(l *loaded.Load) { l.Bytes("a", []byte("1\x00b1")) }),
	}
	seen := map[string]string{}
	for name, d := range digests {
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	if digests["no key found"] != "" {
		t.Error("a digest is given where an absent object looks like an empty one")
	}
}

func TestEnvFromNeedsAPrefixOrNames(t *testing.T) {
	t.Setenv("A", "1")
	l := reporter(t).ConfigMap("settings").Begin()
	if _, err := l.EnvFrom(""); err == nil || !strings.Contains(err.Error(), "configmap/shop/settings") {
		t.Errorf("got %v", err)
	}
	if env, err := l.EnvFrom("", "A", "NOT_SET"); err != nil || len(env) != 1 || env["A"] != "1" {
		t.Errorf("got %v, %v", env, err)
	}
}

func TestWhatIsLeftOutGoesIntoNoDigest(t *testing.T) {
	t.Setenv("APP_NODE", "node-1")
	t.Setenv("APP_LEVEL", "debug")
	r := reporter(t)
	source := r.ConfigMap("settings", loaded.Overridden("LEVEL"), loaded.LeaveOut("NODE"))
	if same := r.ConfigMap("settings", loaded.LeaveOutLines("file", regexp.MustCompile(`^node:`))); same != source {
		t.Error("the same object is declared twice")
	}
	read := func(node string) loaded.Object {
		t.Setenv("APP_NODE", node)
		t.Setenv("APP_LIMIT", "10")
		l := source.Begin()
		env, err := l.EnvFrom("APP_")
		if err != nil || env["NODE"] != node || env["LEVEL"] != "debug" {
			t.Errorf("the program gets %v, %v", env, err)
		}
		l.Bytes("file", []byte("node: "+node+"\r\nlimit: 1\n"))
		l.Done()
		return only(t, r)
	}
	a, b := read("node-1"), read("node-2")
	if a.Digest != b.Digest || a.Digest == "" {
		t.Errorf("got %q and %q", a.Digest, b.Digest)
	}
	if !slices.Equal(a.LeftOut, []string{"LEVEL", "NODE"}) {
		t.Errorf("left out: %v", a.LeftOut)
	}
	if len(a.Files) != 1 || !a.Files[0].Partly {
		t.Errorf("files: %+v", a.Files)
	}
	other := reporter(t)
	l := other.ConfigMap("settings").Begin()
	l.Bytes("file", []byte("limit: 1\n"))
	l.Done()
	if rest := only(t, other).Files[0]; rest.Digest != a.Files[0].Digest || rest.Partly {
		t.Errorf("the rest of the file has the digest %s, want %s", a.Files[0].Digest, rest.Digest)
	}
}

func TestFailureKeepsWhatWasLoaded(t *testing.T) {
	r := reporter(t)
	source := r.ConfigMap("settings")
	first := source.Begin()
	first.Bytes("a", []byte("1"))
	first.Done()
	before := only(t, r)
	second := source.Begin()
	second.Bytes("a", []byte("not a number"))
	second.Failed()
	after := only(t, r)
	if after.Digest != before.Digest || !after.LoadedAt.Equal(before.LoadedAt) || !after.LastFailed {
		t.Errorf("got %+v after %+v", after, before)
	}
	text := metrics(t, r)
	for _, want := range []string{
		`tidemark_loaded_info{digest="` + before.Digest + `",object="settings",object_kind="ConfigMap",object_namespace="shop"} 1`,
		`tidemark_loaded_loads_total{object="settings",object_kind="ConfigMap",object_namespace="shop",result="success"} 1`,
		`tidemark_loaded_loads_total{object="settings",object_kind="ConfigMap",object_namespace="shop",result="failure"} 1`,
		`tidemark_loaded_last_load_successful{object="settings",object_kind="ConfigMap",object_namespace="shop"} 0`,
		`tidemark_loaded_timestamp_seconds{object="settings",object_kind="ConfigMap",object_namespace="shop"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}
	third := source.Begin()
	third.Bytes("a", []byte("2"))
	third.Done()
	if text := metrics(t, r); strings.Count(text, "tidemark_loaded_info{") != 1 || strings.Contains(text, before.Digest) || !strings.Contains(text, `_successful{object="settings",object_kind="ConfigMap",object_namespace="shop"} 1`) {
		t.Errorf("after a success:\n%s", text)
	}
}

func TestNothingOfASecretButItsTimeLeaves(t *testing.T) {
	const marker = "hunter2"
	t.Setenv("DB_PASSWORD", marker)
	r := reporter(t)
	l := r.Secret("db").Begin()
	if v, _ := l.Getenv("password", "DB_PASSWORD"); v != marker {
		t.Errorf("the program gets %q", v)
	}
	l.Bytes("certificate", []byte(marker))
	l.Done()
	o := only(t, r)
	if o.LoadedAt.IsZero() || o.Digest != "" || o.Env != nil || o.Files != nil {
		t.Errorf("got %+v", o)
	}
	out := served(t, r) + metrics(t, r)
	if strings.Contains(out, marker) || strings.Contains(out, "v1-") || strings.Contains(out, "password") {
		t.Errorf("exported: %s", out)
	}
	if !strings.Contains(out, "tidemark_loaded_timestamp_seconds") {
		t.Errorf("no time is exported: %s", out)
	}
}

func TestHandlerServesNamesAndDigestsWithoutValues(t *testing.T) {
	r := reporter(t)
	l := r.ConfigMap("settings").Begin()
	l.Bytes("limit", []byte("a value to look for"))
	l.Done()
	body := served(t, r)
	if strings.Contains(body, "a value to look for") {
		t.Errorf("a value is served: %s", body)
	}
	var got loaded.Report
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1" || len(got.Objects) != 1 || got.Objects[0].Digest != only(t, r).Digest || got.Objects[0].Files[0].Name != "limit" {
		t.Errorf("got %+v", got)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, loaded.Path, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d", w.Code)
	}
}

// volume makes a directory as the kubelet does: files are links through ..data into a directory of one state.
func volume(t *testing.T, files map[string]string) (dir string, replace func(files map[string]string)) {
	t.Helper()
	dir = t.TempDir()
	states := 0
	replace = func(files map[string]string) {
		states++
		state := filepath.Join(dir, fmt.Sprintf("..state-%d", states))
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(state, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(filepath.Base(state), link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	replace(files)
	return dir, replace
}

func TestReadDirReadsOneStateOfAVolume(t *testing.T) {
	dir, replace := volume(t, map[string]string{"a": "0", "b": "0"})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				replace(map[string]string{"a": "1", "b": "1"})
				replace(map[string]string{"a": "0", "b": "0"})
			}
		}
	}()
	l := reporter(t).ConfigMap("settings").Begin()
	for range 200 {
		files, err := l.ReadDir(dir)
		if err != nil || len(files) != 2 || string(files["a"]) != string(files["b"]) {
			t.Errorf("got %q, %v", files, err)
			break
		}
	}
	close(stop)
	<-done
}

func TestReadsSayWhatTheyCannotRead(t *testing.T) {
	r := reporter(t)
	l := r.ConfigMap("settings").Begin()
	dir := t.TempDir()
	if _, err := l.ReadDir(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := l.ReadFile("a", filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "key a of configmap/shop/settings") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadDir(dir); err == nil || !strings.Contains(err.Error(), "ReadFile") {
		t.Errorf("a volume with items: %v", err)
	}
	l.Done()
	if o := only(t, r); o.Digest != "" || len(o.Files) != 1 || o.Files[0].Digest != "" {
		t.Errorf("got %+v", o)
	}
}

func TestNewFindsItsNamespace(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "mail")
	r, err := loaded.New("")
	if err != nil {
		t.Fatal(err)
	}
	l := r.ConfigMap("settings").Begin()
	l.Done()
	if got := only(t, r).Namespace; got != "mail" {
		t.Errorf("got %q", got)
	}
	t.Setenv("POD_NAMESPACE", "")
	if _, err := loaded.New(""); err == nil || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("without a namespace: %v", err)
	}
}

// docs/metrics.md has one row for each metric, with its meaning.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	r := reporter(t)
	load := r.ConfigMap("settings").Begin()
	load.Bytes("level", []byte("debug"))
	load.Done()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(text), "\n| `tidemark_loaded_"); rows != len(families) {
		t.Errorf("the table has %d rows, and there are %d metrics", rows, len(families))
	}
	for _, f := range families {
		if row := regexp.MustCompile("(?m)^\\| `" + f.GetName() + "` \\|.*\\| " + regexp.QuoteMeta(f.GetHelp()) + " \\|$"); !row.Match(text) {
			t.Errorf("the table has no row of %s: %s", f.GetName(), f.GetHelp())
		}
	}
}

// A Service named sender makes its variables look like keys of a ConfigMap that is read with the prefix SENDER_.
func TestServicesAreNoKeys(t *testing.T) {
	for name, value := range map[string]string{
		"SENDER_LEASE": "10m", "SENDER_SERVICE_HOST": "10.0.0.1", "SENDER_SERVICE_PORT": "80", "SENDER_SERVICE_PORT_HTTP": "80",
		"SENDER_PORT": "tcp://10.0.0.1:80", "SENDER_PORT_80_TCP": "tcp://10.0.0.1:80", "SENDER_PORT_80_TCP_PROTO": "tcp",
		"SENDER_PORT_80_TCP_PORT": "80", "SENDER_PORT_80_TCP_ADDR": "10.0.0.1",
		"SENDER_API_SERVICE_HOST": "10.0.0.2", "SENDER_API_SERVICE_PORT": "80", "SENDER_API_PORT": "tcp://10.0.0.2:80", "SENDER_API_KEY_ID": "7",
		// no Service: its own keys, which win over Kubernetes' variables
		"MAILER_SERVICE_HOST": "smtp", "MAILER_SERVICE_PORT": "25", "MAILER_PORT": "25",
	} {
		t.Setenv(name, value)
	}
	for prefix, want := range map[string][]string{
		"SENDER_": {"API_KEY_ID", "LEASE"}, "MAILER_": {"PORT", "SERVICE_HOST", "SERVICE_PORT"},
	} {
		env, err := reporter(t).ConfigMap("settings").Begin().EnvFrom(prefix)
		if got := slices.Sorted(maps.Keys(env)); err != nil || !slices.Equal(got, want) {
			t.Errorf("with the prefix %s there are the keys %q (%v), want %q", prefix, got, err, want)
		}
	}
}
