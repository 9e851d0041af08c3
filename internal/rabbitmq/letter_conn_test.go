package rabbitmq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// streamConn is a connection that can only be read from.
type streamConn struct {
	net.Conn
	io.Reader
}

func (c streamConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// contentHeader returns a content header frame of the given AMQP class.
func contentHeader(class byte, properties string) string {
	return wireFrame(2, "\x00"+string([]byte{class})+"\x00\x00"+"\x00\x00\x00\x00\x00\x00\x00\x04"+properties)
}

// TestALetterConnPassesWhatIsNotForIt checks letterConn, which hides the properties of messages
// from the AMQP client library. It replaces the properties by a number. Everything else that the
// broker sends must reach the library unchanged. The result must not depend on how the stream is
// divided into reads.
func TestALetterConnPassesWhatIsNotForIt(t *testing.T) {
	t.Parallel()
	const number = "\x00\x80\x01"
	method, body, beat := wireFrame(1, "\x00\x0a\x00\x1emethod"), wireFrame(
		3, strings.Repeat("b", 10_000),
	), wireFrame(8, "")
	strange := []string{
		wireFrame(2, "short"), contentHeader(61, "\x20\x00"),
		strings.TrimSuffix(contentHeader(60, "\x00\x00"), "\xce") + "x",
	}
	in := method + body + contentHeader(
		60, "\x20\x00"+longString(""),
	) + body + beat + strings.Join(strange, "") + contentHeader(60, "\x00\x00") + beat
	want := method + body + contentHeader(
		60, number+"1",
	) + body + beat + strings.Join(strange, "") + contentHeader(60, number+"2") + beat
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader,
		"byte by byte": iotest.OneByteReader,
	} {
		c := newLetterConn(streamConn{Reader: cut(strings.NewReader(in))})
		c.forget()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %.300q\nwant %.300q", name, err, got, want)
		}
		for number, properties := range map[string]string{"1": "\x20\x00" + longString(""), "2": "\x00\x00"} {
			if p, err := c.take(number); err != nil || string(p) != properties {
				t.Errorf("%s: %q is kept under %s, %v", name, p, number, err)
			}
			if _, err := c.take(number); err == nil {
				t.Errorf("%s: what is kept under %s is taken twice", name, number)
			}
		}
	}
}

// TestALetterConnEndsWithItsConnection reads from connections that end in the middle of a frame,
// and from a connection with headers that are too large. Reading must fail in both cases.
func TestALetterConnEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	whole := contentHeader(60, "\x20\x00"+longString(""))
	for n := 1; n < len(whole); n++ {
		if got, err := io.ReadAll(newLetterConn(streamConn{
			Reader: strings.NewReader(whole[:n]),
		})); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) > 0 {
			t.Errorf("after %d bytes: %q, %v", n, got, err)
		}
	}
	head := binary.BigEndian.AppendUint32([]byte{2, 0, 1}, maxProperties+1)
	_, err := newLetterConn(streamConn{Reader: bytes.NewReader(append(head, whole...))}).Read(make([]byte, 10))
	if err == nil || !strings.Contains(err.Error(), "16777217 bytes") ||
		!strings.Contains(err.Error(), "Get messages") {
		t.Errorf("headers of 16777217 bytes: %v", err)
	}
}
