package rabbitmq

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTryNow tries a broker that is away before its time, at most once a second, and leaves one alone
// that is connected.
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
	early, limited := false, false
	for range 50 { // a slow machine may be at the next try anyway
		link.mu.Lock()
		link.tries.at = time.Time{} // long ago
		link.mu.Unlock()
		next, before := link.Status().NextTry, calls.Load()
		link.TryNow(t.Context())
		tried := calls.Load()
		if tried == before {
			t.Fatal("nothing was tried")
		}
		early = early || time.Now().Before(next)
		for range 5 {
			link.TryNow(t.Context())
		}
		limited = limited || calls.Load() == tried
	}
	if !early {
		t.Error("it was never tried before its time")
	}
	if !limited {
		t.Error("it is tried as often as somebody asks")
	}
	cancel()
	<-over
	link.status.Connected = true
	link.TryNow(t.Context()) // returns
}

// TestAskingEndsTheWait and begins the back-off again; without that it lasts as long as it has to.
func TestAskingEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, began := backoff{failures: 7}, time.Now()
		asked := make(chan struct{})
		if err := b.until(t.Context(), time.Minute, asked); err != nil || time.Since(began) != time.Minute || b.failures != 7 {
			t.Errorf("nobody asked: %v after %s, %d failures", err, time.Since(began), b.failures)
		}
		close(asked)
		began = time.Now()
		if err := b.until(t.Context(), time.Minute, asked); err != nil || time.Since(began) != 0 || b.failures != 0 {
			t.Errorf("asked: %v after %s, %d failures", err, time.Since(began), b.failures)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.until(ctx, time.Minute, make(chan struct{})); err == nil {
			t.Error("it goes on after the end")
		}
	})
}
