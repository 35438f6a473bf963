package sample

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// reloadEvery is how often a process with --reload looks at its files.
const reloadEvery = 500 * time.Millisecond

// Host is what a machine gives to a process.
type Host struct {
	Env    map[string]string
	Files  Files
	Out    io.Writer                            // the container's log
	Listen func(port int) (net.Listener, error) // only used with --http
	// Terminate stores the termination message. It may be nil.
	Terminate func(message string)
	// Publish is told every change of the state. It may be nil.
	Publish func(State)
}

// State is what a running process shows of itself.
type State struct {
	Options  Options           `json:"options"`
	Ready    bool              `json:"ready"`
	Settings map[string]string `json:"settings"`
	Loaded   time.Time         `json:"loaded"`
	Reloads  int               `json:"reloads"`
}

// Process is one run of the sample program.
type Process struct {
	options Options
	host    Host
	refused error      // why the configuration was refused at the start
	exit    chan int   // receives the code of an exit that was asked for
	mu      sync.Mutex // guards state
	state   State
}

// Start begins a process: it reads the settings, from files and not from host.Files, so that a caller can record
// exactly what was read. The process does nothing more until Run is called.
func Start(options Options, host Host, files Files) *Process {
	p := &Process{options: options, host: host, exit: make(chan int, 1)}
	settings, err := load(options, host.Env, files)
	p.refused = err
	p.state = State{Options: options, Settings: settings, Loaded: time.Now()}
	return p
}

// State returns a copy of the present state.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	s.Settings = maps.Clone(s.Settings)
	return s
}

// Exit makes Run return the code.
func (p *Process) Exit(code int) {
	select {
	case p.exit <- code:
	default: // an earlier request is under way
	}
}

// Run is the life of the process. It returns the exit code, 0 when ctx ended it.
func (p *Process) Run(ctx context.Context) int {
	if p.refused != nil {
		return p.fatal(p.refused)
	}
	p.log("loaded %s", describe(p.State().Settings))
	p.update(func(*State) {}) // publishes that the process runs
	if p.options.HTTP != 0 {
		stop, err := p.serve()
		if err != nil {
			p.log("FATAL %v", err)
			return 1
		}
		defer stop()
	}
	if p.options.BootDelay == 0 {
		p.ready()
	}
	return p.live(ctx)
}

// live does what the process does once it has loaded, until something ends it.
func (p *Process) live(ctx context.Context) int {
	var booted, ended, look <-chan time.Time
	if p.options.BootDelay > 0 {
		booted = time.After(p.options.BootDelay)
	}
	if p.options.Exits {
		ended = time.After(p.options.ExitAfter)
	}
	if p.options.Reload {
		ticker := time.NewTicker(reloadEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	var complaint string
	for {
		select {
		case <-ctx.Done():
			return 0
		case code := <-p.exit:
			p.log("told to exit with code %d", code)
			return code
		case <-ended:
			p.log("done, exit code %d", p.options.ExitCode)
			return p.options.ExitCode
		case <-booted:
			p.ready()
		case <-look:
			complaint = p.reload(complaint)
		}
	}
}

func (p *Process) ready() {
	p.update(func(s *State) { s.Ready = true })
	p.log("ready")
}

// reload takes over changed settings. A configuration that is refused leaves the old one in force: it is logged
// once, and returned so that the next look stays silent.
func (p *Process) reload(complaint string) string {
	settings, err := load(p.options, p.host.Env, p.host.Files)
	if err != nil {
		if err.Error() != complaint {
			p.log("reload refused: %v", err)
		}
		return err.Error()
	}
	if !maps.Equal(settings, p.State().Settings) {
		p.update(func(s *State) {
			s.Settings, s.Loaded = settings, time.Now()
			s.Reloads++
		})
		p.log("reloaded %s", describe(settings))
	}
	return ""
}

func (p *Process) update(change func(*State)) {
	p.mu.Lock()
	change(&p.state)
	p.mu.Unlock()
	if p.host.Publish != nil {
		p.host.Publish(p.State())
	}
}

func (p *Process) fatal(err error) int {
	message := fmt.Sprintf("FATAL %v", err)
	p.log("%s", message)
	if p.host.Terminate != nil {
		p.host.Terminate(message)
	}
	return ExitConfig
}

func (p *Process) log(format string, args ...any) {
	fmt.Fprintf(p.host.Out, format+"\n", args...)
}

func (p *Process) serve() (stop func(), err error) {
	listener, err := p.host.Listen(p.options.HTTP)
	if err != nil {
		return nil, fmt.Errorf("listen on port %d: %w", p.options.HTTP, err)
	}
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // ends when stop closes the server
	return func() { _ = server.Close() }, nil
}

func describe(settings map[string]string) string {
	words := make([]string, 0, len(settings))
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		words = append(words, fmt.Sprintf("%s=%q", key, settings[key]))
	}
	if len(words) == 0 {
		return "no settings"
	}
	return strings.Join(words, " ")
}
