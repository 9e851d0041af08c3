package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are picked below the range from which Linux takes those of outgoing connections (32768 to 60999), so that a node finds its
// ports free again after a restart. RabbitMQ's tools use the node's distribution port + 10000 for themselves.
const (
	lowestPort = 20000
	portRange  = 11000
)

// ports are those of one node, all on loopback.
type ports struct {
	amqp, management, distribution, epmd int
}

// freePorts returns four different ports on which nobody listens now. Another process can still be faster than the caller.
func freePorts() (ports, error) {
	var p ports
	taken := map[int]bool{}
	for _, to := range []*int{&p.amqp, &p.management, &p.distribution, &p.epmd} {
		port, err := freePort(taken)
		if err != nil {
			return ports{}, err
		}
		taken[port] = true
		*to = port
	}
	return p, nil
}

func freePort(not map[int]bool) (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(portRange)
		if not[port] {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", loopback(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port on loopback from %d to %d: %w", lowestPort, lowestPort+portRange-1, err)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
