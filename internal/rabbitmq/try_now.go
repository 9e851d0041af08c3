package rabbitmq

import (
	"context"
	"time"
)

// tries contains two channels. With one of them, somebody requests an immediate attempt to connect.
// With the other, callers learn that an attempt has ended.
type tries struct {
	now   chan struct{} // closed and replaced when somebody requests an immediate attempt
	ended chan struct{} // closed and replaced whenever an attempt of the publishing connection ends
}

// tryAgain is the minimum wait between two attempts, however often somebody requests another one.
// The wait is shorter only if the back-off is shorter.
const tryAgain = time.Second

func newTries() tries { return tries{now: make(chan struct{}), ended: make(chan struct{})} }

// TryNow ends all waits for the next attempt to connect. It returns when the publishing connection
// has been attempted, or when ctx ends. It does nothing if the broker is connected.
func (l *Link) TryNow(ctx context.Context) {
	l.mu.Lock()
	connected, ended := l.status.Connected, l.tries.ended
	if !connected {
		close(l.tries.now)
		l.tries.now = make(chan struct{})
	}
	l.mu.Unlock()
	if connected {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// tryRequests returns a channel that is closed when somebody requests an immediate attempt to
// connect. The caller must call it before its next attempt. Otherwise the caller would miss a
// request that comes between this attempt and the wait after it.
func (l *Link) tryRequests() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries.now
}

// recordTry records that an attempt to open the publishing connection has ended. The caller must
// hold mu.
func (l *Link) recordTry() {
	close(l.tries.ended)
	l.tries.ended = make(chan struct{})
}

// waitOrAsked waits for the duration d before the next attempt to connect. If somebody requests an
// attempt earlier, waitOrAsked returns earlier, but it always waits at least a second (tryAgain) if
// d is not shorter. A request also resets the back-off, because the person who asks has fixed
// something, or is about to.
func (b *backoff) waitOrAsked(ctx context.Context, d time.Duration, asked <-chan struct{}) error {
	soonest := time.Now().Add(min(d, tryAgain))
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-asked:
		b.failures = 0
		return sleep(ctx, time.Until(soonest))
	case <-waiting.Done():
	}
	return ctx.Err()
}
