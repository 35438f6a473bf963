// Package control serves the lab's control API as HTTP over a unix socket.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/traffic"
	"tidemark.dev/tidemark/lab/wire"
)

// Lab is what can be controlled.
type Lab interface {
	Status() wire.Status
	RequestStop()
	Starts(wire.Filter) []wire.Start
	Containers(wire.Selector) ([]wire.Container, error)
	Exit(selector wire.Selector, code int32) int
	Partition(node string, cut bool) error
	Socket(wire.Address) (string, error)
	Delays() *delay.Table
	Requests() *traffic.Counter
}

// Server is an open control socket.
type Server struct{ http *http.Server }

// Serve opens the socket.
func Serve(socket string, lab Lab) (*Server, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	s := &Server{http: &http.Server{Handler: handler(lab), ReadHeaderTimeout: 10 * time.Second}}
	go s.http.Serve(listener) //nolint:errcheck // ends when the server is closed
	return s, nil
}

// Close ends the server and removes the socket.
func (s *Server) Close() { _ = s.http.Close() }

func handler(lab Lab) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.PathStatus, answer(func(nothing) (any, error) { return lab.Status(), nil }))
	mux.HandleFunc("POST "+wire.PathStop, answer(func(nothing) (any, error) {
		lab.RequestStop()
		return nothing{}, nil
	}))
	mux.HandleFunc("POST "+wire.PathStarts, answer(func(f wire.Filter) (any, error) { return lab.Starts(f), nil }))
	mux.HandleFunc("POST "+wire.PathContainers, answer(func(s wire.Selector) (any, error) { return lab.Containers(s) }))
	mux.HandleFunc("POST "+wire.PathExit, answer(func(e wire.Exit) (any, error) {
		return wire.Exited{Count: lab.Exit(e.Selector, e.Code)}, nil
	}))
	mux.HandleFunc("POST "+wire.PathPartition, answer(func(p wire.Partition) (any, error) {
		return nothing{}, lab.Partition(p.Node, p.Cut)
	}))
	mux.HandleFunc("GET "+wire.PathDelays, answer(func(nothing) (any, error) { return lab.Delays().List(), nil }))
	mux.HandleFunc("POST "+wire.PathDelays, answer(func(d wire.Delay) (any, error) { return nothing{}, addDelay(lab, d) }))
	mux.HandleFunc("DELETE "+wire.PathDelays, answer(func(nothing) (any, error) {
		lab.Delays().Clear()
		return nothing{}, nil
	}))
	mux.HandleFunc("GET "+wire.PathRequests, answer(func(nothing) (any, error) { return lab.Requests().List(), nil }))
	mux.HandleFunc("DELETE "+wire.PathRequests, answer(func(nothing) (any, error) {
		lab.Requests().Reset()
		return nothing{}, nil
	}))
	mux.HandleFunc("POST "+wire.PathAddress, answer(func(a wire.Address) (any, error) {
		path, err := lab.Socket(a)
		return wire.Socket{Path: path}, err
	}))
	return mux
}

func addDelay(lab Lab, d wire.Delay) error {
	switch {
	case d.Stage != wire.BeforeEnvironment && d.Stage != wire.BeforeStart:
		return fmt.Errorf("no stage is named %q", d.Stage)
	case d.Stage == wire.BeforeEnvironment && d.Container != "":
		return errors.New("a delay before the environment is read cannot select a container")
	}
	lab.Delays().Add(d)
	return nil
}

// nothing is the body of a request or answer that says all by its path.
type nothing struct{}

// answer turns a function into a handler: its argument is the request's body, its result the answer's.
func answer[Body any](do func(Body) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body Body
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if r.ContentLength != 0 {
			if err := decoder.Decode(&body); err != nil {
				reply(w, http.StatusBadRequest, wire.Error{Message: fmt.Sprintf("read request: %v", err)})
				return
			}
		}
		result, err := do(body)
		if err != nil {
			reply(w, http.StatusUnprocessableEntity, wire.Error{Message: err.Error()})
			return
		}
		reply(w, http.StatusOK, result)
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client is gone if this fails
}
