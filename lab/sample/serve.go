package sample

import (
	"encoding/json"
	"fmt"
	"net/http"
)

func (p *Process) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", p.serveHealth)
	mux.HandleFunc("GET /metrics", p.serveMetrics)
	mux.HandleFunc("GET /work", p.serveWork)
	return mux
}

func (p *Process) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if !p.State().Ready {
		http.Error(w, "booting", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (p *Process) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	state := p.State()
	ready := 0
	if state.Ready {
		ready = 1
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# HELP sample_ready Whether the process has booted.\n# TYPE sample_ready gauge\nsample_ready %d\n", ready)
	fmt.Fprintf(w, "# HELP sample_loaded_timestamp_seconds When the settings in force were read.\n"+
		"# TYPE sample_loaded_timestamp_seconds gauge\nsample_loaded_timestamp_seconds %.3f\n", float64(state.Loaded.UnixMilli())/1000)
	fmt.Fprintf(w, "# HELP sample_reloads_total Changes of settings taken over while running.\n"+
		"# TYPE sample_reloads_total counter\nsample_reloads_total %d\n", state.Reloads)
}

// serveWork does the program's work, which is to say with which settings it works.
func (p *Process) serveWork(w http.ResponseWriter, _ *http.Request) {
	state := p.State()
	if !state.Ready {
		http.Error(w, "booting", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(state) // the client is gone if this fails
}
