package testenv

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// names is the Erlang name server (epmd) of one cluster node. It returns the ports of the other
// nodes. Each node has a name server of its own. A name server can therefore return the port of a
// relay instead of the real port, and a test can cut that relay. names implements the protocol in
// Erlang's manual ("Distribution Protocol", OTP 25 to 28), but only the requests that nodes and
// their tools use.
type names struct {
	listener net.Listener
	peers    map[string]int

	mu      sync.Mutex
	here    map[string]int // name -> port of the programs registered here, which are the node and its tools
	started uint32
}

const (
	nameRegister   = 120 // ALIVE2_REQ
	nameRegistered = 118 // ALIVE2_X_RESP
	nameAsk        = 122 // PORT_PLEASE2_REQ
	nameAnswer     = 119 // PORT2_RESP
	nameList       = 110 // NAMES_REQ
)

// serveNames serves a port until its listener is closed. The map "peers" contains the port at which
// each of the other nodes can be reached, by the name of the node.
func serveNames(port int, peers map[string]int) (*names, error) {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, fmt.Errorf("start the names of a cluster: %w", err)
	}
	n := &names{listener: l, peers: peers, here: map[string]int{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.serve(c)
		}
	}()
	return n, nil
}

// serve serves one connection. A connection that registers a name stays open while the owner of
// the name lives.
func (n *names) serve(c net.Conn) {
	defer c.Close()
	request := make([]byte, 2)
	if _, err := io.ReadFull(c, request); err != nil {
		return
	}
	request = make([]byte, binary.BigEndian.Uint16(request))
	if _, err := io.ReadFull(c, request); err != nil || len(request) == 0 {
		return
	}
	switch request[0] {
	case nameRegister:
		if len(request) < 11 {
			return
		}
		length := int(binary.BigEndian.Uint16(request[9:]))
		if len(request) < 11+length {
			return
		}
		name := string(request[11 : 11+length])
		n.mu.Lock()
		n.here[name] = int(binary.BigEndian.Uint16(request[1:]))
		n.started++
		creation := n.started
		n.mu.Unlock()
		// older nodes use the values 1 to 3
		_, _ = c.Write(binary.BigEndian.AppendUint32([]byte{nameRegistered, 0}, creation+3))
		_, _ = io.Copy(io.Discard, c)
		n.mu.Lock()
		delete(n.here, name)
		n.mu.Unlock()
	case nameAsk:
		_, _ = c.Write(n.portResponse(string(request[1:])))
	case nameList:
		_, _ = c.Write(n.listResponse())
	}
}

// portResponse returns the response with the port on which the owner of a name listens.
func (n *names) portResponse(name string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	port, known := n.here[name]
	if !known {
		port, known = n.peers[name]
	}
	if !known {
		return []byte{nameAnswer, 1}
	}
	b := binary.BigEndian.AppendUint16([]byte{nameAnswer, 0}, uint16(port))
	b = append(b, 77, 0, 0, 6, 0, 5) // a visible node that uses TCP and the protocol versions 6 down to 5
	b = binary.BigEndian.AppendUint16(b, uint16(len(name)))
	b = append(b, name...)
	return append(b, 0, 0)
}

// listResponse returns the response with all registered names.
func (n *names) listResponse() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := binary.BigEndian.AppendUint32(nil, uint32(n.listener.Addr().(*net.TCPAddr).Port))
	for name, port := range n.here {
		b = fmt.Appendf(b, "name %s at port %d\n", name, port)
	}
	return b
}

func (n *names) close() { _ = n.listener.Close() }
