package drill

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// worker takes what is in a queue, and rejects it until it is repaired.
type worker struct {
	queue    string
	repaired atomic.Bool
	handled  atomic.Int64 // messages, since it is repaired
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

const (
	workEvery = 300 * time.Millisecond
	workBatch = 500 // messages of a request
)

// work lets a worker work on a queue; there is one for each at most.
func (g *ground) work(queue string) *worker {
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{queue: queue, cancel: cancel}
	g.mu.Lock()
	g.workers[queue] = w
	g.mu.Unlock()
	w.done.Go(func() {
		for {
			repaired := w.repaired.Load()
			n, _ := g.site.take(ctx, queue, workBatch, repaired) // the queue may be gone, as that is what is tried
			if repaired {
				w.handled.Add(int64(n))
			}
			if pause(ctx, workEvery) != nil {
				return
			}
		}
	})
	return w
}

// repair lets the worker of a queue handle what it gets.
func (g *ground) repair(queue string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers[queue].repaired.Store(true)
}

func (w *worker) stop() {
	w.cancel()
	w.done.Wait()
}
