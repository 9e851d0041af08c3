package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// weight says how important a worker's report is. Of the reports of one second, the demo prints
// only the most important one. If several reports are equally important, it prints the last of
// them.
type weight int

const (
	rejected weight = iota
	accepted
)

// teller prints the output of the demo. Messages of the demo itself appear immediately. For the
// reports of all workers together, teller prints at most one line a second.
type teller struct {
	mu     sync.Mutex
	out    io.Writer
	line   string // worker's report that is printed at the next tick
	weight weight
	more   int // number of further reports that the field "line" leaves out
}

// say prints a line immediately.
func (t *teller) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, line)
}

// worker records a worker's report. It makes the text safe for a terminal, because the text
// contains addresses from messages, and anybody can choose these.
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

// run prints the workers' reports until ctx is done.
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
