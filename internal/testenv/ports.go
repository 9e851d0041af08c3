package testenv

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
)

// The ports of a node are below Linux's range for outgoing connections (32768 to 60999), so that
// the node finds its ports free after a restart. RabbitMQ's tools use the node's distribution port
// + 10000.
const (
	lowestPort = 20000
	portRange  = 11000
)

// ports are the loopback ports of one node.
type ports struct {
	amqp, management, metrics, distribution, epmd int

	reserved []io.Closer
}

// freePorts returns different ports on which no program listens now. No other node gets these ports
// before they are released.
func freePorts() (ports, error) {
	var p ports
	for _, to := range []*int{&p.amqp, &p.management, &p.metrics, &p.distribution, &p.epmd} {
		var reserved io.Closer
		var err error
		if *to, reserved, err = freePort(); err != nil {
			p.release()
			return ports{}, err
		}
		p.reserved = append(p.reserved, reserved)
	}
	return p, nil
}

func freePort() (port int, reserved io.Closer, err error) {
	for range 100 {
		port := lowestPort + rand.IntN(portRange)
		if reserved, err = reserve(port); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", loopback(port)); err == nil {
			return port, reserved, l.Close()
		}
		_ = reserved.Close()
	}
	return 0, nil, fmt.Errorf("find a free port on loopback from %d to %d: %w", lowestPort, lowestPort+portRange-1, err)
}

// reserve keeps all other nodes of this machine, in any process, from using a port. This is
// necessary while no program listens on the port. A node that starts listens only after some
// seconds, and a killed node listens only after its restart. The reservation is a name in Linux's
// abstract namespace, which disappears with the process. On other systems, reserve does nothing.
func reserve(port int) (io.Closer, error) {
	if runtime.GOOS != "linux" {
		return io.NopCloser(nil), nil
	}
	return net.Listen("unix", fmt.Sprintf("@dlo-test-port-%d", port))
}

// release lets other nodes use the ports.
func (p *ports) release() {
	for _, r := range p.reserved {
		_ = r.Close()
	}
	p.reserved = nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
