package rabbitmq

import (
	"context"
	"time"
)

// tries are the attempts to connect, and who waits for the next one.
type tries struct {
	now   chan struct{} // closed and replaced when somebody wants the next attempt at once
	ended chan struct{} // closed and replaced whenever an attempt of the publishing connection ends
}

// tryAgain is how long nothing is tried again after an attempt, however often somebody asks; less
// only where the back-off is less.
const tryAgain = time.Second

func newTries() tries { return tries{now: make(chan struct{}), ended: make(chan struct{})} }

// TryNow ends all waits for the next attempt to connect, and returns once the publishing connection
// was tried, or ctx ends. A broker that is connected is left alone.
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

// asked returns what is closed when somebody wants the next attempt at once. It is taken before an
// attempt, so that no wish is missed between that and the wait.
func (l *Link) asked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries.now
}

// tried says that an attempt of the publishing connection has ended. The caller holds mu.
func (l *Link) tried() {
	close(l.tries.ended)
	l.tries.ended = make(chan struct{})
}

// until waits for d before the next attempt, or until it is asked for, but a second if d is longer,
// and begins the back-off again then: who asks has mended something, or is about to.
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
