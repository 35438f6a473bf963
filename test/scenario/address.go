package scenario

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports that are given out are below those that the kernel gives to outgoing connections and to listeners on port 0 (32768 and up
// on Linux by default, ip_local_port_range), so that nothing takes one between here and the program that is told to listen on it.
const (
	firstPort = 20000
	lastPort  = 30000
)

// nextPort begins anywhere, so that other test programs begin elsewhere.
var nextPort = func() *atomic.Uint32 {
	n := &atomic.Uint32{}
	n.Store(rand.Uint32N(lastPort - firstPort))
	return n
}()

// FreeAddress returns an address on the loopback interface that nothing listens on, another one at each call.
func FreeAddress() (string, error) {
	for range lastPort - firstPort {
		port := firstPort + nextPort.Add(1)%(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.FormatUint(uint64(port), 10)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no port is free")
}
