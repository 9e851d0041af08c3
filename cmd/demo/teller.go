package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// weight ranks the workers' reports. If there are several reports in one second, the last one with
// the highest weight is printed.
type weight int

const (
	rejected weight = iota
	accepted
)

// teller prints the demo's messages immediately, and at most one line a second about the workers.
type teller struct {
	mu     sync.Mutex
	out    io.Writer
	line   string // the workers' report that is printed at the next tick
	weight weight
	more   int // number of further reports that line omits
}

// say prints a line immediately.
func (t *teller) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, line)
}

// worker records what a worker did. The text is made safe for a terminal, because anybody can
// choose the addresses in messages.
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

// run prints what the workers did, until ctx ends.
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
