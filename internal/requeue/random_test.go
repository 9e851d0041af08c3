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

// TestEachLetterArrivesOrIsHeld lets random accidents happen to dlo, its store and its broker. Each
// letter must arrive, or must be held for a person. The clerk (clerk_test.go) checks that dlo
// follows the rules for sending.
func TestEachLetterArrivesOrIsHeld(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Seeds(t, 1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { schedule(t, seed, nil) })
		})
	}
}

// accidentsEnd is the time from the start of a schedule until the last accident.
const accidentsEnd = 5 * time.Second

// schedule runs letters that become due one after the other, with random responses and accidents.
// It returns a description of what happened.
func schedule(t *testing.T, seed uint64, change func(*desk)) string {
	dice := newDice(seed)
	waits := dice.intBelow(3) == 0
	list := letters(1 + dice.intBelow(12))
	for n, i := range list {
		i.queue, i.rule = []string{"email", "sms"}[dice.intBelow(2)], []string{"", "rule"}[dice.intBelow(2)]
		i.group = len(i.queue)*10 + dice.intBelow(2)
		i.due = toMillis(time.Now()).Add(
			dice.durationUpTo(accidentsEnd).Truncate(20*time.Millisecond) + time.Duration(n)*time.Millisecond,
		)
		if waits && dice.intBelow(2) == 0 {
			i.waiter, i.wait = string(rules.WaiterTTL), accidentsEnd
		}
	}
	d := newDesk(t, list...)
	if rate := float64(dice.intBelow(20)); rate < 10 {
		d.rules.Rules = []rules.Rule{{Name: "rule", Rate: &rate}}
	}
	if waits {
		d.rules.Default.Retry = &rules.Retry{Delays: []time.Duration{accidentsEnd}, Waiter: rules.WaiterTTL}
	}
	d.options.InFlight, d.options.Rate = 1+dice.intBelow(8), float64(dice.intBelow(10))
	d.options.InDoubt = []requeue.InDoubt{requeue.Republish, requeue.Republish, requeue.Hold}[dice.intBelow(3)]
	d.fate = dice.luck(dice.intBelow(12))
	d.wire.takes = waits
	// a separate source, because the order in which the workers draw from it is random but has no
	// effect
	pauses := newDice(seed)
	d.wire.ready = func() time.Duration { return pauses.durationUpTo(time.Millisecond) }
	d.wire.latency = func() time.Duration { return dice.durationUpTo(time.Second) }
	d.wire.answer = func(*deadletter.Publishing) answer { return anyAnswer(dice) }
	if change != nil {
		change(d)
	}
	// Each time, a connection is lost, the retries of a queue or group are paused, or dlo is
	// killed.
	for range dice.intBelow(3) {
		from := dice.durationUpTo(accidentsEnd)
		to := from + dice.durationUpTo(accidentsEnd-from)
		i := list[dice.intBelow(len(list))]
		begin, end := []func(){
			func() { d.wire.connect(false) }, func() { d.pause(i.queue, 0, true) },
			func() { d.pause(i.queue, i.group, true) }, func() { d.kill() },
		}, []func(){
			func() { d.wire.connect(true) }, func() { d.pause(i.queue, 0, false) },
			func() { d.pause(i.queue, i.group, false) }, func() {},
		}
		what := dice.intBelow(len(begin))
		time.AfterFunc(from, begin[what])
		time.AfterFunc(to, end[what])
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond + dice.durationUpTo(time.Second))
			life, end := context.WithTimeout(ctx, dice.durationUpTo(2*accidentsEnd))
			d.run(life)
			end()
		}
	}()
	time.Sleep(accidentsEnd)
	d.mu.Lock()
	d.fate = accidents()
	d.mu.Unlock()
	for n := 0; n < 100 && !d.done(); n++ {
		time.Sleep(time.Second)
	}
	stop()
	<-over
	d.check()
	course := d.takeLog()
	if t.Failed() {
		t.Log(course)
	}
	return course
}

// anyAnswer returns a random response to a message. Two of three responses are confirms.
func anyAnswer(dice *dice) answer {
	kinds := []deadletter.OutcomeKind{
		deadletter.OutcomeReturned, deadletter.OutcomeNacked, deadletter.OutcomeNacked, deadletter.OutcomeRefused,
		deadletter.OutcomeInDoubt, deadletter.OutcomeInDoubt, deadletter.OutcomeUnsent,
	}
	if n := dice.intBelow(3 * len(kinds)); n < len(kinds) {
		return answer{kinds[n], dice.intBelow(2) == 0}
	}
	return answer{kind: deadletter.OutcomeConfirmed}
}
