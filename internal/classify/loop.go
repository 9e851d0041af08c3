package classify

import (
	"context"
	"time"
)

const (
	batch     = 200
	small     = batch / 2   // letters in a step of the classifier while more urgent work waits
	idle      = time.Second // how long the loop waits before it looks for work although nobody has called Wake
	yieldStep = 10 * time.Millisecond
)

// loop repeats a step in the background and sleeps while there is nothing to do.
type loop struct {
	wake chan struct{}
	busy func() bool // reports whether more urgent work is waiting
	// maximum time that the loop lets urgent work go first; a lasting flood slows the loop but does
	// not stop it
	yield time.Duration
	fail  func(err error)
}

// Wake tells the loop that there is work to do.
func (l *loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls the function "step" again and again until ctx ends. The function "step" reports whether
// it did anything.
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

// rest waits until Wake is called, but no longer than the constant "idle" says.
func (l *loop) rest(ctx context.Context) {
	select {
	case <-l.wake:
	case <-time.After(idle):
	case <-ctx.Done():
	}
}
