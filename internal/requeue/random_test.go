package requeue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// Accidents happen to dlo, its store and its broker, in any order. Whatever happens, each letter
// arrives or is held for a person, and the clerk (clerk_test.go) sees no violation of the rules for
// sending.
func TestEachLetterArrivesOrIsHeld(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Seeds(t, 1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { schedule(t, seed, nil) })
		})
	}
}

// calm is the time from the start of a schedule after which no more faults are injected.
const calm = 5 * time.Second

// schedule sends letters that become due one after the other, with random responses and accidents.
func schedule(t *testing.T, seed uint64, change func(*desk)) string {
	dice := newDice(seed)
	waits := dice.below(3) == 0
	list := letters(1 + dice.below(12))
	for n, i := range list {
		i.queue, i.rule = []string{"email", "sms"}[dice.below(2)], []string{"", "rule"}[dice.below(2)]
		i.group = len(i.queue)*10 + dice.below(2)
		i.due = ms(time.Now()).Add(dice.within(calm).Truncate(20*time.Millisecond) + time.Duration(n)*time.Millisecond)
		if waits && dice.below(2) == 0 {
			i.waiter, i.wait = string(rules.WaiterTTL), calm
		}
	}
	d := newDesk(t, list...)
	if rate := float64(dice.below(20)); rate < 10 {
		d.rules.Rules = []rules.Rule{{Name: "rule", Rate: &rate}}
	}
	if waits {
		d.rules.Default.Retry = &rules.Retry{Delays: []time.Duration{calm}, Waiter: rules.WaiterTTL}
	}
	d.options.InFlight, d.options.Rate = 1+dice.below(8), float64(dice.below(10))
	d.options.InDoubt = []requeue.InDoubt{requeue.Republish, requeue.Republish, requeue.Hold}[dice.below(3)]
	d.fate = dice.luck(dice.below(12))
	d.wire.takes = waits
	pauses := newDice(seed) // a separate source: workers are alike, so the order in which they draw does not matter
	d.wire.ready = func() time.Duration { return pauses.within(time.Millisecond) }
	d.wire.latency = func() time.Duration { return dice.within(time.Second) }
	d.wire.answer = func(*deadletter.Publishing) answer { return anyAnswer(dice) }
	if change != nil {
		change(d)
	}
	for range dice.below(3) { // A connection is lost, the retries of a queue or group are paused, or dlo is killed.
		from := dice.within(calm)
		to := from + dice.within(calm-from)
		i := list[dice.below(len(list))]
		begin, end := []func(){
			func() { d.wire.connect(false) }, func() { d.pause(i.queue, 0, true) }, func() { d.pause(i.queue, i.group, true) }, func() { d.kill() },
		}, []func(){
			func() { d.wire.connect(true) }, func() { d.pause(i.queue, 0, false) }, func() { d.pause(i.queue, i.group, false) }, func() {},
		}
		what := dice.below(len(begin))
		time.AfterFunc(from, begin[what])
		time.AfterFunc(to, end[what])
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond + dice.within(time.Second))
			life, end := context.WithTimeout(ctx, dice.within(2*calm))
			d.run(life)
			end()
		}
	}()
	time.Sleep(calm)
	d.mu.Lock()
	d.fate = accidents()
	d.mu.Unlock()
	for n := 0; n < 100 && !d.done(); n++ {
		time.Sleep(time.Second)
	}
	stop()
	<-over
	d.check()
	course := d.course()
	if t.Failed() {
		t.Log(course)
	}
	return course
}

// anyAnswer picks a random response to a message. Two in three responses are confirms.
func anyAnswer(dice *dice) answer {
	kinds := []deadletter.OutcomeKind{
		deadletter.OutcomeReturned, deadletter.OutcomeNacked, deadletter.OutcomeNacked, deadletter.OutcomeRefused, deadletter.OutcomeInDoubt, deadletter.OutcomeInDoubt, deadletter.OutcomeUnsent,
	}
	if n := dice.below(3 * len(kinds)); n < len(kinds) {
		return answer{kinds[n], dice.below(2) == 0}
	}
	return answer{kind: deadletter.OutcomeConfirmed}
}
