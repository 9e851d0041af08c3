package rabbitmq

import (
	"context"
	"time"
)

// tries tracks the attempts to connect and the callers that wait for the next one.
type tries struct {
	now   chan struct{} // closed and replaced when the next attempt is requested immediately
	ended chan struct{} // closed and replaced whenever an attempt of the publishing connection ends
}

// tryAgain is the minimum wait after an attempt, however often another attempt is requested. The
// wait is shorter only if the back-off is.
const tryAgain = time.Second

func newTries() tries { return tries{now: make(chan struct{}), ended: make(chan struct{})} }

// TryNow ends all waits for the next attempt to connect. It returns once the publishing connection
// was attempted or ctx ends. A connected broker is left alone.
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

// asked returns a channel that is closed when an immediate attempt is requested. It must be called
// before an attempt, so that no request is missed between the attempt and the wait after it.
func (l *Link) asked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries.now
}

// tried records that an attempt of the publishing connection has ended. The caller must hold mu.
func (l *Link) tried() {
	close(l.tries.ended)
	l.tries.ended = make(chan struct{})
}

// until waits for d before the next attempt, or until an attempt is requested. A requested attempt
// still waits for a second if d is longer. The request also resets the back-off, because the person
// who asks has fixed something, or is about to.
func (b *backoff) until(ctx context.Context, d time.Duration, asked <-chan struct{}) error {
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
