package testenv

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is a direction of traffic through a Link.
type Direction int

const (
	ToServer Direction = iota // traffic from the client
	ToClient                  // traffic from the server
)

// Link is a TCP relay on loopback. A test can cut its connections, slow them down or silence them.
// Changes apply to open and new connections. Any goroutine may call its methods.
type Link struct {
	listener net.Listener
	pumps    sync.WaitGroup

	mu      sync.Mutex
	target  string
	open    map[*linkPair]bool
	refuse  bool
	swallow [2]bool
	mute    [2]bool
	delay   time.Duration
	slice   int
	sever   [2]int // for each direction, 1 + the number of pieces that pass before a connection is cut; 0 = all pass
}

// linkPair is one connection through the relay. It has one end at the client and one at the server.
type linkPair struct {
	ends [2]*net.TCPConn // indexed by the Direction of the traffic that is written to the end
	cut  chan struct{}   // closed when the pair is cut
	once sync.Once
}

// Relay starts a relay to the target, which is host:port. The relay is closed at the end of the
// test.
func Relay(t testing.TB, target string) *Link {
	t.Helper()
	return RelayAt(t, "127.0.0.1:0", target)
}

// RelayAt starts a relay at an address of this machine, for example at a fixed port.
func RelayAt(t testing.TB, address, target string) *Link {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("start a relay: %v", err)
	}
	link := &Link{target: target, listener: l, open: map[*linkPair]bool{}}
	link.pumps.Add(1)
	go link.accept()
	t.Cleanup(func() {
		_ = l.Close()
		link.Refuse(true) // also resets connections that were accepted just now
		link.Cut()
		link.pumps.Wait()
	})
	return link
}

// Addr returns the relay's address as host:port. Dial it instead of the target.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// port returns the port of the relay's address.
func (l *Link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// Lead directs new connections to another target. A load balancer does this when a node is gone.
func (l *Link) Lead(target string) { l.set(func() { l.target = target }) }

// Cut resets all open connections on both sides without an orderly close. New connections are still
// accepted, unless Refuse forbids them.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.open {
		p.reset()
	}
}

// Refuse makes the relay reset new connections immediately. Refuse and Cut together simulate an
// outage.
func (l *Link) Refuse(on bool) { l.set(func() { l.refuse = on }) }

// Swallow makes the relay discard all traffic in one direction. The receiver gets nothing, and
// neither side is notified.
func (l *Link) Swallow(d Direction, on bool) { l.set(func() { l.swallow[d] = on }) }

// Mute makes the relay discard all traffic in one direction, except AMQP heartbeats. For the
// receiver, the sender seems alive and silent.
func (l *Link) Mute(d Direction, on bool) { l.set(func() { l.mute[d] = on }) }

// heartbeat is the AMQP 0-9-1 frame of a heartbeat: type 8, channel 0, no payload.
var heartbeat = []byte{8, 0, 0, 0, 0, 0, 0, 0xCE}

// Delay delays each piece of traffic in both directions. A piece is the data of one read. If Slice
// is used, a piece is a part of that data.
func (l *Link) Delay(d time.Duration) { l.set(func() { l.delay = d }) }

// Slice limits the pieces that the relay forwards to n bytes. With 0, it forwards data as received.
// Slice and Delay together simulate a slow line: 100 bytes per 10 ms are 10 kB/s.
func (l *Link) Slice(n int) { l.set(func() { l.slice = n }) }

// Sever limits how many pieces of each new connection pass in one direction. When the next piece
// arrives, the relay drops it and resets the connection.
func (l *Link) Sever(d Direction, after int) { l.set(func() { l.sever[d] = after + 1 }) }

// Open returns how many connections through the relay are open.
func (l *Link) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

func (l *Link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *Link) accept() {
	defer l.pumps.Done()
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // the listener is closed, because the test has ended
		}
		l.pumps.Add(1)
		go l.serve(client.(*net.TCPConn))
	}
}

// serve connects one client with the target. It returns when both sides have ended.
func (l *Link) serve(client *net.TCPConn) {
	defer l.pumps.Done()
	p := &linkPair{cut: make(chan struct{})}
	p.ends[ToClient] = client
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		p.reset()
		return
	}
	p.ends[ToServer] = server.(*net.TCPConn)
	l.mu.Lock()
	if l.refuse {
		l.mu.Unlock()
		p.reset()
		return
	}
	l.open[p] = true
	l.mu.Unlock()

	var both sync.WaitGroup
	for _, d := range []Direction{ToServer, ToClient} {
		both.Go(func() { l.pump(p, d) })
	}
	both.Wait()
	for _, end := range p.ends {
		_ = end.Close()
	}
	l.set(func() { delete(l.open, p) })
}

// pump forwards traffic in one direction until its source ends or the connection is cut.
func (l *Link) pump(p *linkPair, d Direction) {
	from, to := p.ends[1-d], p.ends[d]
	buffer := make([]byte, 64<<10)
	passed := 0
	for {
		n, err := from.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			l.mu.Lock()
			swallow, mute, delay, slice, sever := l.swallow[d], l.mute[d], l.delay, l.slice, l.sever[d]
			l.mu.Unlock()
			if passed++; passed == sever {
				p.reset()
				return
			}
			piece := rest
			if slice > 0 {
				piece = rest[:min(slice, len(rest))]
			}
			rest = rest[len(piece):]
			if delay > 0 {
				select {
				case <-time.After(delay):
				case <-p.cut:
					return
				}
			}
			if swallow || mute && !bytes.Equal(piece, heartbeat) {
				continue
			}
			if _, err := to.Write(piece); err != nil {
				p.reset()
				return
			}
		}
		if err == io.EOF {
			_ = to.CloseWrite() // the other direction may still have traffic
			return
		}
		if err != nil {
			p.reset()
			return
		}
	}
}

// reset closes both ends with a TCP reset.
func (p *linkPair) reset() {
	p.once.Do(func() { close(p.cut) })
	for _, end := range p.ends {
		if end != nil {
			_ = end.SetLinger(0)
			_ = end.Close()
		}
	}
}
