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

// TestEachLetterArrivesOrIsHeld causes random accidents to dlo, its store and its broker. Each
// letter must arrive, or must be held for a person. The clerk (clerk_test.go) checks the rules for
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

// calm is the time from the start of a schedule until the last accident.
const calm = 5 * time.Second

// schedule runs letters that become due one after the other, with random responses and accidents.
// It returns what happened.
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
	pauses := newDice(seed) // a separate source, because the order in which the workers draw from it is random but has no effect
	d.wire.ready = func() time.Duration { return pauses.within(time.Millisecond) }
	d.wire.latency = func() time.Duration { return dice.within(time.Second) }
	d.wire.answer = func(*deadletter.Publishing) answer { return anyAnswer(dice) }
	if change != nil {
		change(d)
	}
	for range dice.below(3) { // Each time, a connection is lost, the retries of a queue or group are paused, or dlo is killed.
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

// anyAnswer returns a random response to a message. Two of three responses are confirms.
func anyAnswer(dice *dice) answer {
	kinds := []deadletter.OutcomeKind{
		deadletter.OutcomeReturned, deadletter.OutcomeNacked, deadletter.OutcomeNacked, deadletter.OutcomeRefused, deadletter.OutcomeInDoubt, deadletter.OutcomeInDoubt, deadletter.OutcomeUnsent,
	}
	if n := dice.below(3 * len(kinds)); n < len(kinds) {
		return answer{kinds[n], dice.below(2) == 0}
	}
	return answer{kind: deadletter.OutcomeConfirmed}
}
