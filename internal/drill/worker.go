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
	round    sync.Mutex // held while it works, so that no round that rejects ends after the repair
	repaired bool
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
			w.takes(ctx, g.site)
			if pause(ctx, workEvery) != nil {
				return
			}
		}
	})
	return w
}

// takes works one round.
func (w *worker) takes(ctx context.Context, s *site) {
	w.round.Lock()
	defer w.round.Unlock()
	n, _ := s.take(ctx, w.queue, workBatch, w.repaired) // the queue may be gone, as that is what is tried
	if w.repaired {
		w.handled.Add(int64(n))
	}
}

// repair lets the worker of a queue handle what it gets.
func (g *ground) repair(queue string) {
	g.mu.Lock()
	w := g.workers[queue]
	g.mu.Unlock()
	w.repair()
}

func (w *worker) repair() {
	w.round.Lock()
	defer w.round.Unlock()
	w.repaired = true
}

func (w *worker) stop() {
	w.cancel()
	w.done.Wait()
}
