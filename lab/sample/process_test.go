package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// machine is a host in memory whose state changes can be waited for.
type machine struct {
	Host
	states chan State
	mu     sync.Mutex
	log    bytes.Buffer
	final  string
}

func newMachine(files Files) *machine {
	m := &machine{states: make(chan State, 100)}
	m.Host = Host{
		Env:       map[string]string{"MODE": "v1"},
		Files:     files,
		Out:       m,
		Terminate: func(message string) { m.final = message },
		Publish:   func(s State) { m.states <- s },
	}
	return m
}

func (m *machine) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(text)
}

func (m *machine) logged() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.String()
}

func (m *machine) start(t *testing.T, files Files, args ...string) *Process {
	t.Helper()
	options, err := Parse(args, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return Start(options, m.Host, files)
}

// await returns the first state that the condition accepts.
func (m *machine) await(accept func(State) bool) State {
	for state := range m.states {
		if accept(state) {
			return state
		}
	}
	return State{}
}

func ready(s State) bool { return s.Ready }

func TestRefusedConfigurationIsFatal(t *testing.T) {
	m := newMachine(nil)
	code := m.start(t, memory{"/dir/two": "2"}, "--know=one", "--file=/dir").Run(t.Context())
	const want = `FATAL unknown setting "two" in /dir`
	if code != ExitConfig || m.final != want || m.logged() != want+"\n" {
		t.Errorf("exit %d, message %q, log %q", code, m.final, m.logged())
	}
}

func TestProcessReadsItsFilesOnceAtTheStart(t *testing.T) {
	m := newMachine(memory{"/dir/one": "changed"})
	p := m.start(t, memory{"/dir/one": "first"}, "--file=/dir", "--env=MODE")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() { ended <- p.Run(ctx) }()
	if state := m.await(ready); fmt.Sprint(state.Settings) != "map[MODE:v1 one:first]" {
		t.Errorf("settings are %v", state.Settings)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestReloadTakesOverWhatIsAccepted(t *testing.T) {
	m := newMachine(memory{"/dir/one": "second"})
	p := m.start(t, memory{"/dir/one": "first"}, "--file=/dir", "--reload")
	go p.Run(t.Context())
	state := m.await(func(s State) bool { return s.Reloads > 0 })
	if state.Settings["one"] != "second" {
		t.Errorf("settings are %v", state.Settings)
	}
}

func TestReloadKeepsTheOldSettingsWhenTheNewAreRefused(t *testing.T) {
	m := newMachine(memory{"/dir/two": "x"})
	p := m.start(t, memory{"/dir/one": "first"}, "--file=/dir", "--know=one", "--reload")
	complaint := p.reload("")
	p.reload(complaint)
	if got := m.logged(); got != "reload refused: unknown setting \"two\" in /dir\n" {
		t.Errorf("log is %q", got)
	}
	if p.State().Settings["one"] != "first" {
		t.Errorf("settings are %v", p.State().Settings)
	}
}

func TestProcessEndsByItself(t *testing.T) {
	if code := newMachine(nil).start(t, nil, "--exit-after=1ms", "--exit-code=4").Run(t.Context()); code != 4 {
		t.Errorf("exit code %d", code)
	}
	if code := newMachine(nil).start(t, nil, "--exit-code=5").Run(t.Context()); code != 5 {
		t.Errorf("exit code %d", code)
	}
}

func TestBootDelayComesBeforeReady(t *testing.T) {
	m := newMachine(nil)
	go m.start(t, nil, "--boot-delay=1ms").Run(t.Context())
	if first := <-m.states; first.Ready {
		t.Error("ready before it booted")
	}
	m.await(ready)
}

func TestServer(t *testing.T) {
	m := newMachine(nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.Listen = func(int) (net.Listener, error) { return listener, nil }
	go m.start(t, memory{"/dir/one": "1"}, "--file=/dir", "--http=8080").Run(t.Context())
	m.await(ready)
	get := func(path string) string {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if body := get("/healthz"); body != "ok\n" {
		t.Errorf("/healthz: %s", body)
	}
	if body := get("/metrics"); !strings.Contains(body, "\nsample_ready 1\n") {
		t.Errorf("/metrics: %s", body)
	}
	var state State
	if err := json.Unmarshal([]byte(get("/work")), &state); err != nil || state.Settings["one"] != "1" {
		t.Errorf("/work: %+v %v", state, err)
	}
}

func TestCommandsBesideAProcess(t *testing.T) {
	running := State{Ready: true, Options: Options{Files: []string{"/dir"}}, Settings: map[string]string{"one": "1"}}
	booting, stale := running, running
	booting.Ready = false
	stale.Settings = map[string]string{"one": "0"}
	for name, test := range map[string]struct {
		args  string
		state *State
		code  int
		out   string
	}{
		"ready":                     {args: "ready", state: &running},
		"ready while booting":       {args: "ready", state: &booting, code: 1, out: "booting\n"},
		"ready without a process":   {args: "ready", code: 1, out: "no process\n"},
		"live":                      {args: "live", state: &booting},
		"fresh":                     {args: "fresh", state: &running},
		"fresh with other settings": {args: "fresh", state: &stale, code: 1, out: "a start now would load other settings\n"},
		"env":                       {args: "env", out: "A=1\nMODE=v1\n"},
		"cat":                       {args: "cat /dir/one", out: "1"},
		"cat of nothing":            {args: "cat /nothing", code: 1, out: "cat /nothing: file does not exist\n"},
		"exit":                      {args: "exit 3", state: &running, out: "exit 3\n"},
		"exit with a bad code":      {args: "exit x", code: ExitUsage, out: "usage: sample exit CODE, from 0 to 255\n"},
		"another word":              {args: "fly", code: ExitUsage, out: "usage: sample ready|live|fresh|env|cat PATH|exit CODE\n"},
		"nothing":                   {code: ExitUsage, out: "usage: sample COMMAND\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			beside := Beside{
				Env:   map[string]string{"MODE": "v1", "A": "1"},
				Files: memory{"/dir/one": "1"},
				State: func() (State, error) {
					if test.state == nil {
						return State{}, errors.New("no process")
					}
					return *test.state, nil
				},
				Exit: func(code int) error {
					fmt.Fprintf(&out, "exit %d\n", code)
					return nil
				},
			}
			if code := Exec(strings.Fields(test.args), beside, &out, &out); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if out.String() != test.out {
				t.Errorf("output %q, want %q", out.String(), test.out)
			}
		})
	}
}
