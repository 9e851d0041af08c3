package rabbitmq

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// letterConn is the connection of a session that reads letters. It keeps the properties of each
// delivery back from the client, which gets the number they are kept under as the only property, a
// message id: the client drops the connection over a frame of headers that is larger than was
// negotiated (501), though RabbitMQ sends it, and over headers that it cannot read (502; amqp091-go
// v1.16.0). All other frames pass as they are.
type letterConn struct {
	net.Conn
	in    *bufio.Reader
	ready []byte // for the client
	pass  int    // bytes of the frame under way that are not for us

	mu   sync.Mutex
	last uint64
	kept map[string][]byte // properties as they came, by their number; nil = nobody wants them
}

// maxProperties is how large the properties of one letter may be: RabbitMQ takes no more than a
// frame, 131,072 bytes by default, and adds to it with each death, at most the routing keys of CC,
// which may fill that frame, for each queue and reason.
const maxProperties = 16 << 20

const (
	frameHead   = 7 // type, channel, size
	frameEnd    = 0xCE
	frameHeader = 2      // the type of a content header
	headSize    = 12     // of a content header before its flags: class, weight, size of the body
	basicClass  = 60     // of messages
	onlyID      = 1 << 7 // flags of properties with nothing but a message id
)

// newLetterConn is over c, under TLS if there is any.
func newLetterConn(c net.Conn) *letterConn { return &letterConn{Conn: c, in: bufio.NewReader(c)} }

// Read is called by the client's reader alone.
func (c *letterConn) Read(p []byte) (int, error) {
	if len(c.ready) == 0 && c.pass == 0 {
		if err := c.frame(); err != nil {
			return 0, err
		}
	}
	if len(c.ready) > 0 {
		n := copy(p, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	n, err := c.in.Read(p[:min(len(p), c.pass)])
	c.pass -= n
	return n, err
}

// frame reads the head of the next frame, and all of a content header.
func (c *letterConn) frame() error {
	head := make([]byte, frameHead, 64)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[3:]))
	if head[0] != frameHeader || size < headSize {
		c.ready, c.pass = head, size+1
		return nil
	}
	if size > maxProperties {
		return fmt.Errorf("the headers of a letter take %d bytes, and dlo reads %d at most: take it out of the queue by hand, for example with Get messages of the management page", size, maxProperties)
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(c.in, content); errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	if content[size] != frameEnd || binary.BigEndian.Uint16(content) != basicClass {
		c.ready = append(head, content...) // the client says what is wrong with it
		return nil
	}
	c.ready = replaced(head, content[:headSize], c.keep(content[headSize:size]))
	return nil
}

// replaced is a content header with number as its message id and no other property.
func replaced(head, content []byte, number string) []byte {
	b := append(head, content...)
	b = binary.BigEndian.AppendUint16(b, onlyID)
	b = append(append(b, byte(len(number))), number...)
	binary.BigEndian.PutUint32(b[3:], uint32(len(b)-frameHead))
	return append(b, frameEnd)
}

// forget drops what is kept, and keeps what comes from now on.
func (c *letterConn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = map[string][]byte{}
}

// keep keeps properties until they are taken or forgotten.
func (c *letterConn) keep(properties []byte) (number string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	number = strconv.FormatUint(c.last, 10)
	if c.kept != nil {
		c.kept[number] = properties
	}
	return number
}

// take returns the properties that the client got a number for.
func (c *letterConn) take(number string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.kept[number]
	if !ok {
		return nil, fmt.Errorf("no properties are kept under %q", number)
	}
	delete(c.kept, number)
	return p, nil
}
