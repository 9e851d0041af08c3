package classify

import (
	"context"
	"time"
)

const (
	batch     = 200
	idle      = time.Second // without a wake: look all the same
	yieldStep = 10 * time.Millisecond
)

// loop repeats a step in the background, and sleeps while there is nothing to do.
type loop struct {
	wake  chan struct{}
	busy  func() bool   // more urgent work waits
	yield time.Duration // how long that goes first, at most: a lasting flood slows the loop, and does not stop it
	fail  func(err error)
}

// Wake says that there is something to do.
func (l *loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run repeats step, which says whether it did something, until ctx ends.
func (l *loop) run(ctx context.Context, step func(ctx context.Context) (bool, error)) {
	for ctx.Err() == nil {
		more, err := step(ctx)
		if err != nil && ctx.Err() == nil {
			l.fail(err)
		}
		if !more || err != nil {
			l.rest(ctx)
			continue
		}
		for waited := time.Duration(0); waited < l.yield && l.busy() && ctx.Err() == nil; waited += yieldStep {
			time.Sleep(yieldStep)
		}
	}
}

// rest waits for a wake, and not for long.
func (l *loop) rest(ctx context.Context) {
	select {
	case <-l.wake:
	case <-time.After(idle):
	case <-ctx.Done():
	}
}
