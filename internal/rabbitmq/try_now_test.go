package rabbitmq

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTryNow checks that a request makes dlo connect to an unavailable broker earlier, but no more
// than twice a second. If the broker is connected, the request must do nothing.
func TestTryNow(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var calls atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			c.Close()
		}
	}()
	link, _ := linked(t, Broker{URL: "amqp://" + l.Addr().String(), Inboxes: []string{"inbox"}}, Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		link.Run(ctx)
	}()
	for time.Until(link.Status().NextTry) < 3*tryAgain { // wait until the back-off has grown
		time.Sleep(time.Millisecond)
	}
	next, before, began := link.Status().NextTry, calls.Load(), time.Now()
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { link.TryNow(t.Context()) })
	}
	asking.Wait()
	if calls.Load() == before || !time.Now().Before(next) {
		t.Errorf("%d attempts, %s before it was time", calls.Load()-before, time.Until(next))
	}
	for range 3 {
		link.TryNow(t.Context())
	}
	// The limit below assumes that an attempt to connect takes no time, and that dlo waits at least
	// half a second after it.
	if n, most := calls.Load()-before, 2+int64(time.Since(began)/(tryAgain/2)); n > most {
		t.Errorf("%d attempts, want %d at most", n, most)
	}
	cancel()
	<-over
	link.status.Connected = true
	link.TryNow(t.Context()) // TryNow must return
}

// TestAskingEndsTheWait checks the wait between two attempts to connect. If somebody requests an
// attempt, the wait must end and the back-off must be reset. Without a request, the wait must take
// its full time.
func TestAskingEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, began := backoff{failures: 7}, time.Now()
		asked := make(chan struct{})
		if err := b.waitOrAsked(
			t.Context(), time.Minute, asked,
		); err != nil || time.Since(began) != time.Minute || b.failures != 7 {
			t.Errorf("nobody asked: %v after %s, %d failures", err, time.Since(began), b.failures)
		}
		close(asked)
		began = time.Now()
		if err := b.waitOrAsked(
			t.Context(), time.Minute, asked,
		); err != nil || time.Since(began) != tryAgain || b.failures != 0 {
			t.Errorf("asked: %v after %s, %d failures", err, time.Since(began), b.failures)
		}
		began = time.Now()
		if err := b.waitOrAsked(t.Context(), tryAgain/2, asked); err != nil || time.Since(began) != tryAgain/2 {
			t.Errorf("asked, and it is soon: %v after %s", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.waitOrAsked(ctx, time.Minute, make(chan struct{})); err == nil {
			t.Error("it goes on after the end")
		}
	})
}
