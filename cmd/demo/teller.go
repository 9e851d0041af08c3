package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// weight orders what workers do: in a second with several, the weightiest last one is printed.
type weight int

const (
	rejected weight = iota
	accepted
)

// teller prints: what the demo says at once, what its workers do a line a second at most.
type teller struct {
	mu     sync.Mutex
	out    io.Writer
	line   string // of the workers, waiting for its second
	weight weight
	more   int // what happened besides line
}

// say prints a line now.
func (t *teller) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, line)
}

// worker says what a worker did. The text is made safe for a terminal: addresses in messages are
// anybody's.
func (t *teller) worker(w weight, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != "" {
		t.more++
	}
	if t.line == "" || w >= t.weight {
		t.line, t.weight = deadletter.Visible(line), w
	}
}

// run prints what the workers do until ctx ends.
func (t *teller) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.flush()
		}
	}
}

func (t *teller) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == "" {
		return
	}
	more := ""
	if t.more > 0 {
		more = fmt.Sprintf(", and %d more this second", t.more)
	}
	fmt.Fprintf(t.out, "  %s%s\n", t.line, more)
	t.line, t.more = "", 0
}
