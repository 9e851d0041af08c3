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

// letterConn is the connection of a session that reads letters. It removes the properties of each
// delivery before the AMQP client library (amqp091-go v1.16.0) sees the delivery. The library
// receives only a message id, which is the number under which letterConn keeps the properties. All
// other frames pass unchanged.
//
// If the library saw the properties, it would drop the connection in two cases. In the first case,
// the frame with the properties is larger than negotiated (501), and RabbitMQ does send such
// frames. In the second case, the library cannot read one of the headers (502).
type letterConn struct {
	net.Conn
	in    *bufio.Reader
	ready []byte // bytes that the client reads next
	pass  int    // number of bytes of the current frame that still pass unchanged

	mu   sync.Mutex
	last uint64
	kept map[string][]byte // properties as received, by number; nil = not needed
}

// maxProperties is the maximum size of one letter's properties, in bytes. A publisher can send only
// properties that fit into a frame, which has 131,072 bytes by default. RabbitMQ adds to the
// properties with each death. It adds at most the routing keys of the header CC, once for each
// queue and reason. These keys alone may fill such a frame.
const maxProperties = 16 << 20

const (
	frameHead   = 7 // type, channel and size of a frame
	frameEnd    = 0xCE
	frameHeader = 2      // the type of a content header
	headSize    = 12     // bytes of a content header before its flags: class, weight, body size
	basicClass  = 60     // the AMQP class of messages
	onlyID      = 1 << 7 // property flags that contain only the message id
)

// newLetterConn returns a letterConn that reads from the connection c. If TLS is used, c is the TLS
// connection.
func newLetterConn(c net.Conn) *letterConn { return &letterConn{Conn: c, in: bufio.NewReader(c)} }

// Read must be called only by the goroutine in which the AMQP client library reads from the
// connection.
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

// frame reads the header of the next frame. If the frame is a content header, it reads the whole
// frame.
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
		return fmt.Errorf(
			"the headers of a letter take %d bytes, and dlo reads %d at most: take the letter out of the queue by hand, for example with Get messages of the management page",
			size, maxProperties,
		)
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(c.in, content); errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	if content[size] != frameEnd || binary.BigEndian.Uint16(content) != basicClass {
		c.ready = append(head, content...) // the client reports what is wrong with this header
		return nil
	}
	c.ready = numberOnly(head, content[:headSize], c.keep(content[headSize:size]))
	return nil
}

// numberOnly returns a content header whose only property is the message id. The parameter "number"
// is that id.
func numberOnly(head, content []byte, number string) []byte {
	b := append(head, content...)
	b = binary.BigEndian.AppendUint16(b, onlyID)
	b = append(append(b, byte(len(number))), number...)
	binary.BigEndian.PutUint32(b[3:], uint32(len(b)-frameHead))
	return append(b, frameEnd)
}

// forget drops the properties that letterConn keeps now. It does not affect properties that arrive
// later.
func (c *letterConn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = map[string][]byte{}
}

// keep stores properties until take or forget is called, and returns their number.
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

// take returns the properties that letterConn has kept for a delivery, and forgets them. The
// parameter "number" is the number under which they are kept.
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
