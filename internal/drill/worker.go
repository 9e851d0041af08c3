package drill

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// worker takes messages from a queue. It rejects them until it is repaired, and then handles them.
type worker struct {
	queue    string
	round    sync.Mutex // held during a round, so that no round rejects messages after the repair
	repaired bool
	handled  atomic.Int64 // number of messages that it handled after the repair
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

const (
	workEvery = 300 * time.Millisecond
	workBatch = 500 // maximum number of messages in one request
)

// startWorker starts a worker for a queue. It may be called once for each queue.
func (g *ground) startWorker(queue string) *worker {
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{queue: queue, cancel: cancel}
	g.mu.Lock()
	g.workers[queue] = w
	g.mu.Unlock()
	w.done.Go(func() {
		for {
			w.takeBatch(ctx, g.site)
			if pause(ctx, workEvery) != nil {
				return
			}
		}
	})
	return w
}

// takeBatch takes one batch of messages from the queue.
func (w *worker) takeBatch(ctx context.Context, s *site) {
	w.round.Lock()
	defer w.round.Unlock()
	// the error is ignored, because a failure may have deleted the queue
	n, _ := s.take(ctx, w.queue, workBatch, w.repaired)
	if w.repaired {
		w.handled.Add(int64(n))
	}
}

// repair repairs the worker of a queue, so that it handles its messages.
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
