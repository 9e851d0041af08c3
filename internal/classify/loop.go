package classify

import (
	"context"
	"time"
)

const (
	batch     = 200
	idle      = time.Second // time after which the loop looks for work without a wake
	yieldStep = 10 * time.Millisecond
)

// loop repeats a step in the background and sleeps while there is nothing to do.
type loop struct {
	wake  chan struct{}
	busy  func() bool   // reports whether more urgent work is waiting
	yield time.Duration // maximum wait for urgent work: a lasting flood slows the loop but does not stop it
	fail  func(err error)
}

// Wake signals that there is work to do.
func (l *loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run repeats step until ctx ends. step reports whether it did anything.
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

// rest waits for a wake, or until idle has passed.
func (l *loop) rest(ctx context.Context) {
	select {
	case <-l.wake:
	case <-time.After(idle):
	case <-ctx.Done():
	}
}
