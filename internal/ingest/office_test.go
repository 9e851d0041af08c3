package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
)

// office is one inbox with its queue and its store. The dlo processes that drain it run one after
// the other. office records what the processes do, and checks that they keep the window protocol
// (witness_test.go).
type office struct {
	t       *testing.T
	q       *queue
	store   ingest.Store
	name    string // name of the inbox
	began   time.Time
	options ingest.Options
	stop    func() // stops the running process cleanly
	refused error  // the error with which the queue refuses to be drained once
	surplus int    // number of letters that a window of a drain has beyond the wanted number

	mu   sync.Mutex
	fate fate
	log  []string

	open     map[int64][]int // number of a window that is not settled -> the numbers of its letters
	times    map[int]int     // number of a letter -> how often it was stored
	rows     int
	suspects int // number of rows that are suspects
}

// newOffice returns an office with a store in memory, for the given kind of broker and the given
// accidents.
func newOffice(t *testing.T, b broker, f fate) *office {
	o := &office{
		t:     t,
		store: &ledger{},
		name:  "dlo.letters",
		fate:  f,
		began: time.Now(),
		open:  map[int64][]int{},
		times: map[int]int{},
	}
	o.q = &queue{
		broker: b, t: t, fate: o.happens, note: o.note, safe: o.isStored, forgets: func(acks int) int { return acks },
		tags: map[uint64]int{}, changed: make(chan struct{}), markers: map[string]bool{},
	}
	o.options = ingest.Options{
		Broker: "main", VHost: "/", Uncertain: deadletter.UncertainHold, Horizon: time.Hour, HorizonRows: 100_000,
		Crash: o.crash, Room: o.checkRoom, Log: slog.New(slog.DiscardHandler),
	}
	return o
}

// setFate sets another fate. It may be called while dlo runs.
func (o *office) setFate(f fate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fate = f
}

func (o *office) happens(point string) bool {
	o.mu.Lock()
	f := o.fate
	o.mu.Unlock()
	return f(point)
}

func (o *office) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

// takeLog returns what the log has recorded since the last call.
func (o *office) takeLog() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := strings.Join(o.log, ", ")
	o.log = nil
	return text
}

// ranges returns numbers as text, for example "1-3 5".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		from := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
		}
		part := fmt.Sprint(numbers[from])
		if i > from+1 {
			part += fmt.Sprint("-", numbers[i-1])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

var (
	errCrash = errors.New("the process ends")
	errFull  = errors.New("the disk is nearly full")
)

func (o *office) crash(point string) {
	if o.happens(point) {
		o.note("dlo dies")
		panic(errCrash)
	}
}

func (o *office) checkRoom() error {
	if time.Since(o.began) > 24*time.Hour {
		panic("dlo does not stop")
	}
	if o.happens("no room") {
		o.note("no room")
		return errFull
	}
	return nil
}

// process returns the options and the inbox for a new process.
func (o *office) process() (ingest.Options, *inbox) {
	options := o.options
	options.Inbox = o.name
	return options, &inbox{queue: o.q, first: 4, limit: 16}
}

// survives runs a process. It returns false if an accident killed the process, and true otherwise.
func survives(run func()) (survived bool) {
	defer func() {
		if r := recover(); r != nil && r != errCrash {
			panic(r)
		}
	}()
	run()
	return true
}

// drain drains the inbox until ctx is done. If a process is killed, drain starts the next one.
func (o *office) drain(ctx context.Context) {
	for !survives(func() {
		options, inbox := o.process()
		ingest.New(o, inbox, options).Run(ctx)
	}) {
	}
}

// drainOnce starts a process that drains the queue once. The function "run" is Run or Resolve of
// ingest.Once.
func (o *office) drainOnce(
	ctx context.Context, count int, run func(*ingest.Once, context.Context) error,
) (taken int, err error) {
	options, inbox := o.process()
	inbox.once, inbox.refused, inbox.surplus = true, o.refused, o.surplus
	once := ingest.NewOnce(o, inbox, options, count, func(text string) { o.note("says %q", text) })
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	survives(func() { err = run(once, ctx) })
	return once.Taken(), err
}

// drainDuring drains the inbox while the function "fn" runs, and then stops dlo.
func (o *office) drainDuring(fn func()) {
	var ctx context.Context
	ctx, o.stop = context.WithCancel(o.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		o.drain(ctx)
	}()
	fn()
	synctest.Wait()
	o.stop()
	<-over
}
