package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"tidemark.dev/tidemark/lab/wire"
)

// control speaks to the lab's control socket.
type control struct{ http *http.Client }

func newControl(socket string) control {
	return control{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// call sends body, unless it is nil, and reads the answer into answer, unless it is nil.
func (c control) call(ctx context.Context, method, path string, body, answer any) error {
	if err := c.exchange(ctx, method, path, body, answer); err != nil {
		return fmt.Errorf("lab: %s %s: %w", method, path, err)
	}
	return nil
}

func (c control) exchange(ctx context.Context, method, path string, body, answer any) error {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, &content)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode != http.StatusOK {
		var refusal wire.Error
		if err := decoder.Decode(&refusal); err != nil {
			return errors.New(response.Status)
		}
		return errors.New(refusal.Message)
	}
	if answer == nil {
		return nil
	}
	return decoder.Decode(answer)
}

// Record returns the container starts that the filter picks, oldest first. The zero filter picks all.
func (l *Lab) Record(ctx context.Context, filter wire.Filter) ([]wire.Start, error) {
	var starts []wire.Start
	err := l.control.call(ctx, http.MethodPost, wire.PathStarts, filter, &starts)
	return starts, err
}

// Containers returns the running containers that the selector picks, with their files as they are now.
func (l *Lab) Containers(ctx context.Context, selector wire.Selector) ([]wire.Container, error) {
	var containers []wire.Container
	err := l.control.call(ctx, http.MethodPost, wire.PathContainers, selector, &containers)
	return containers, err
}

// Exit ends the running containers that the selector picks, as if their program had ended by itself, and returns
// how many there were.
func (l *Lab) Exit(ctx context.Context, selector wire.Selector, code int32) (int, error) {
	var exited wire.Exited
	err := l.control.call(ctx, http.MethodPost, wire.PathExit, wire.Exit{Selector: selector, Code: code}, &exited)
	return exited.Count, err
}

// Partition cuts the node's kubelet off the API server. Its containers run on, and it restarts them with what it
// knew before.
func (l *Lab) Partition(ctx context.Context, node string) error {
	return l.control.call(ctx, http.MethodPost, wire.PathPartition, wire.Partition{Node: node, Cut: true}, nil)
}

// Heal ends a partition.
func (l *Lab) Heal(ctx context.Context, node string) error {
	return l.control.call(ctx, http.MethodPost, wire.PathPartition, wire.Partition{Node: node}, nil)
}

// Delay holds the container starts that the delay picks, until ClearDelays is called.
func (l *Lab) Delay(ctx context.Context, delay wire.Delay) error {
	return l.control.call(ctx, http.MethodPost, wire.PathDelays, delay, nil)
}

// ClearDelays ends all delays. Starts that are held go on at once.
func (l *Lab) ClearDelays(ctx context.Context) error {
	return l.control.call(ctx, http.MethodDelete, wire.PathDelays, nil, nil)
}

// Requests returns what each client did to the API since the start or the last ResetRequests.
func (l *Lab) Requests(ctx context.Context) ([]wire.Request, error) {
	var requests []wire.Request
	err := l.control.call(ctx, http.MethodGet, wire.PathRequests, nil, &requests)
	return requests, err
}

// ResetRequests begins the counts anew.
func (l *Lab) ResetRequests(ctx context.Context) error {
	return l.control.call(ctx, http.MethodDelete, wire.PathRequests, nil, nil)
}

// DialPod connects to the server of a pod's program by the pod's address, which nothing else can dial. It has the
// form of net.Dialer.DialContext.
func (l *Lab) DialPod(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("dial %s: port is not a number", address)
	}
	var socket wire.Socket
	if err := l.control.call(ctx, http.MethodPost, wire.PathAddress, wire.Address{PodIP: host, Port: port}, &socket); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return new(net.Dialer).DialContext(ctx, "unix", socket.Path)
}
