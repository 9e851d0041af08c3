package requeue_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// desk contains a simulated store and a simulated broker. dlo processes use them one after the
// other. desk records what the processes do, and checks it against docs/reliability.md
// (clerk_test.go).
type desk struct {
	t       *testing.T
	books   books
	wire    *wire
	options requeue.Options
	rules   rules.Set
	began   time.Time
	fate    func(point string) bool // reports whether an accident happens at this point now

	mu      sync.Mutex
	now     *clerk // the process that runs now
	numbers map[deadletter.ID]int
	letters []*item        // letters in the order of their numbers, which begin with 1
	hands   map[int]*clerk // number of a letter -> the process that holds it
	tokens  map[int][]deadletter.Token
	claims  map[int]int64   // number of a letter -> the claim that took it last
	used    map[int]int     // number of a letter -> its confirmed attempts
	paused  map[string]bool // queue -> true if its retries are paused
	stopped map[int]bool    // group -> true if its retries are paused
	log     []string
}

// books is the store of a desk.
type books interface {
	requeue.Store
	open() // called when a process starts
	pause(queue string, group int, on bool)
	look(i *item) (state deadletter.State, attempts int)
}

// newDesk returns a desk with a store in memory. By default, the letters become due one after the
// other.
func newDesk(t *testing.T, letters ...*item) *desk {
	s := &shelf{letters: letters, paused: map[string]bool{}, stopped: map[int]bool{}}
	d := &desk{
		t:       t,
		books:   s,
		wire:    newWire(),
		began:   time.Now(),
		fate:    accidents(),
		numbers: map[deadletter.ID]int{},
		hands:   map[int]*clerk{},
		claims:  map[int]int64{},
		tokens:  map[int][]deadletter.Token{},
		used:    map[int]int{},
		letters: letters,
		paused:  map[string]bool{},
		stopped: map[int]bool{},
		rules:   rules.Set{Default: rules.Rule{Name: rules.DefaultName, Retry: &rules.Retry{}}},
	}
	for n, i := range letters {
		i.number, i.state = n+1, deadletter.StateScheduled
		if i.queue == "" {
			i.queue = "sms"
		}
		if i.due.IsZero() {
			i.due = d.began.Add(time.Duration(n-len(letters)) * time.Millisecond)
		}
		if i.body == nil {
			i.body = fmt.Append(nil, "letter ", i.number)
		}
		d.numbers[i.id()] = i.number
	}
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"sms", "email"}, []string{"dlo.letters"})
	d.options = requeue.Options{
		Broker:   "main",
		VHost:    "/",
		InFlight: 8,
		Watch:    time.Hour,
		InDoubt:  requeue.Republish,
		MaxBody:  1000,
		Nack:     requeue.Nack{First: time.Second, Max: 10 * time.Second, NoticeAfter: 3},
		Targets:  targets,
		Log:      slog.New(slog.DiscardHandler),
	}
	return d
}

func (d *desk) shelf() *shelf { return d.books.(*shelf) }

// letters returns n letters with default values.
func letters(n int) []*item {
	list := make([]*item, n)
	for i := range list {
		list[i] = &item{}
	}
	return list
}

func (d *desk) note(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

// takeLog returns what the log has recorded since the last call.
func (d *desk) takeLog() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := strings.Join(d.log, ", ")
	d.log = nil
	return text
}

// open starts a process and returns it.
func (d *desk) open() *clerk {
	d.books.open()
	c := &clerk{Store: d.books, desk: d, stop: func() {}}
	o := d.options
	o.Rules, o.Crash = rules.NewBook(&d.rules), c.crash
	c.dispatcher = requeue.New(c, c, o)
	return c
}

// leaveInDoubt starts a process and kills it while it publishes a batch. The letters of this batch
// are then in doubt: nobody knows whether they have arrived.
func (d *desk) leaveInDoubt() {
	c := d.open()
	ctx, stop := context.WithCancel(d.t.Context())
	c.stop = stop
	d.fate = func(point string) bool { return point == "requeue: publishing" }
	c.dispatcher.Step(ctx)
	d.fate = accidents()
	d.takeLog()
}

// run runs a process until ctx is done or the process is killed.
func (d *desk) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := d.open()
	d.mu.Lock()
	c.stop, d.now = stop, c
	d.mu.Unlock()
	c.dispatcher.Run(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, who := range d.hands {
		if who == c && !c.failed {
			d.t.Errorf("letter %d is in hand after a clean stop", n)
		}
	}
	c.drop()
}

// kill kills the process that runs now.
func (d *desk) kill() {
	d.mu.Lock()
	c := d.now
	d.mu.Unlock()
	if c != nil {
		c.die()
	}
}

// pause pauses the retries of a queue if the parameter "on" is true, and otherwise resumes them. If
// "group" is not 0, it does so for this group only.
func (d *desk) pause(queue string, group int, on bool) {
	d.books.pause(queue, group, on)
	d.mu.Lock()
	defer d.mu.Unlock()
	if group == 0 {
		d.paused[queue] = on
	} else {
		d.stopped[group] = on
	}
}

// done reports whether all letters are requeued or held.
func (d *desk) done() bool {
	return !slices.ContainsFunc(d.letters, func(i *item) bool {
		state, _ := d.books.look(i)
		return state != deadletter.StateRequeued && state != deadletter.StateHeld
	})
}

// check fails the test unless each letter is requeued or held. Each requeued letter must have
// arrived, under one token only. For each letter, the store must have recorded as many attempts as
// the broker confirmed.
func (d *desk) check() {
	for _, i := range d.letters {
		state, attempts := d.books.look(i)
		arrived := 0
		for _, token := range d.tokens[i.number] {
			if d.wire.sentWith(token).arrived > 0 {
				arrived++
			}
		}
		switch {
		case attempts != d.used[i.number]:
			d.t.Errorf("letter %d has %d attempts, and %d are confirmed", i.number, attempts, d.used[i.number])
		case state == deadletter.StateRequeued && arrived == 1 && attempts == 1:
		case state == deadletter.StateHeld && arrived <= 1 && attempts == 0:
		default:
			d.t.Errorf(
				"letter %d is %s, arrived under %d tokens, and has %d attempts", i.number, state, arrived, attempts,
			)
		}
	}
}
