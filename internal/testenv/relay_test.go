package testenv

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echo returns the address of a server that sends back what it receives.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// say sends a text and reads a reply of the same length.
func say(c net.Conn, text string) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	got := make([]byte, len(text))
	_, err := io.ReadFull(c, got)
	return string(got), err
}

func TestRelayCutsOpenConnectionsOnly(t *testing.T) {
	t.Parallel()
	l := Relay(t, echo(t))
	c := dial(t, l.Addr())
	if got, err := say(c, "one"); got != "one" || err != nil {
		t.Fatalf("before the cut: %q, %v", got, err)
	}
	l.Cut()
	if got, err := say(c, "two"); err == nil {
		t.Errorf("after the cut: %q", got)
	}
	if got, err := say(dial(t, l.Addr()), "three"); got != "three" || err != nil {
		t.Errorf("a new connection: %q, %v", got, err)
	}
	l.Refuse(true)
	refused, err := net.Dial("tcp", l.Addr())
	if err != nil {
		return // the relay reset the connection before the dial was complete
	}
	defer refused.Close()
	if got, err := say(refused, "four"); err == nil {
		t.Errorf("while it refuses: %q", got)
	}
}

func TestRelaySwallowsEachDirection(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Direction{"to server": ToServer, "to client": ToClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Relay(t, echo(t))
			c := dial(t, l.Addr())
			l.Swallow(d, true)
			if err := c.SetDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			var timeout net.Error
			if got, err := say(c, "lost"); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("while it swallows: %q, %v", got, err)
			}
			l.Swallow(d, false)
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if got, err := say(c, "heard"); got != "heard" || err != nil {
				t.Errorf("afterwards: %q, %v", got, err)
			}
		})
	}
}

func TestRelaySlicesAndDelays(t *testing.T) {
	t.Parallel()
	l := Relay(t, echo(t))
	l.Slice(2)
	l.Delay(time.Millisecond)
	if got, err := say(dial(t, l.Addr()), "in small pieces"); got != "in small pieces" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	l.Delay(time.Hour)
	c := dial(t, l.Addr())
	if _, err := io.WriteString(c, "stuck"); err != nil {
		t.Fatal(err)
	}
	l.Cut() // must not wait for the delay of an hour, nor for the end of the test
}

func TestRelaySeversAfterSoManyPieces(t *testing.T) {
	t.Parallel()
	l := Relay(t, echo(t))
	l.Sever(ToClient, 2)
	c := dial(t, l.Addr())
	for _, text := range []string{"one", "two"} {
		if got, err := say(c, text); got != text || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if got, err := say(c, "three"); err == nil {
		t.Errorf("after the third answer: %q", got)
	}
}
