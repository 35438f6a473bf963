package cluster

import (
	"errors"
	"fmt"

	"tidemark.dev/tidemark/lab/cluster/control"
	"tidemark.dev/tidemark/lab/cluster/delay"
	"tidemark.dev/tidemark/lab/cluster/traffic"
	"tidemark.dev/tidemark/lab/wire"
)

var _ control.Lab = (*Cluster)(nil)

// Starts implements control.Lab.
func (c *Cluster) Starts(filter wire.Filter) []wire.Start { return c.starts.List(filter) }

// Containers implements control.Lab.
func (c *Cluster) Containers(selector wire.Selector) ([]wire.Container, error) {
	list := []wire.Container{}
	for _, n := range c.nodes {
		running, err := n.Runtime().Running(selector)
		if err != nil {
			return nil, err
		}
		list = append(list, running...)
	}
	return list, nil
}

// Exit implements control.Lab.
func (c *Cluster) Exit(selector wire.Selector, code int32) int {
	count := 0
	for _, n := range c.nodes {
		count += n.Runtime().Exit(selector, code)
	}
	return count
}

// Partition implements control.Lab.
func (c *Cluster) Partition(name string, cut bool) error {
	for _, n := range c.nodes {
		if n.Name() == name {
			n.Partition(cut)
			return nil
		}
	}
	return fmt.Errorf("no node is named %q", name)
}

// Delays implements control.Lab.
func (c *Cluster) Delays() *delay.Table { return c.delays }

// Requests implements control.Lab.
func (c *Cluster) Requests() *traffic.Counter { return c.requests }

// errNoListener is returned for an address at which no pod serves.
var errNoListener = errors.New("connection refused: no pod listens there")

// Socket implements control.Lab.
func (c *Cluster) Socket(address wire.Address) (string, error) {
	for _, n := range c.nodes {
		if path, ok := n.Runtime().Socket(address); ok {
			return path, nil
		}
	}
	return "", fmt.Errorf("dial %s:%d: %w", address.PodIP, address.Port, errNoListener)
}

// RequestStop implements control.Lab.
func (c *Cluster) RequestStop() {
	c.stopOnce.Do(func() { close(c.stopAsked) })
}
