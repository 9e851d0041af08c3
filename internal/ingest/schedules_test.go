package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// Accidents happen to dlo, its store, its connection and its broker, in any order. Whatever
// happens, each letter is stored once, and the witness (witness_test.go) sees no violation of the
// window protocol.
func TestNoLetterIsLostOrStoredTwice(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Seeds(t, 1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { schedule(t, seed, nil) })
		})
	}
}

// schedule publishes bursts of letters to an inbox on any broker while accidents happen.
func schedule(t *testing.T, seed uint64, change func(*office)) string {
	random := rand.New(rand.NewPCG(seed, 0))
	b := brokers[random.IntN(len(brokers))]
	o := newOffice(t, b, luck(random, random.IntN(12)))
	o.q.forgets = func(acks int) int { return random.IntN(acks + 1) }
	if change != nil {
		change(o)
	}
	coming := rand.New(rand.NewPCG(seed, 1)) // Letters arrive whatever dlo does.
	for range 1 + coming.IntN(5) {
		bodies := bodiesOf(coming)
		time.AfterFunc(time.Duration(coming.Int64N(int64(20*time.Second))), func() { o.q.publish(bodies...) })
	}
	o.during(func() {
		time.Sleep(time.Minute)
		synctest.Wait()
		o.destine(accidents())
		o.q.publish("m the last one") // This letter decides a window that is still open.
		time.Sleep(time.Minute)
	})
	o.check()
	course := o.course()
	if t.Failed() {
		t.Logf("on %s: %s", b.name, course)
	}
	return course
}

// bodiesOf generates the bodies of a burst at random. A third of them are twins.
func bodiesOf(random *rand.Rand) []string {
	bodies := make([]string, 1+random.IntN(12))
	for i := range bodies {
		n := random.IntN(1 << 30)
		bodies[i] = []string{"m", "m", "r", "x", "twin", "twin"}[random.IntN(6)]
		if bodies[i] == "twin" {
			n %= 3
		}
		bodies[i] += fmt.Sprint(" ", n)
	}
	return bodies
}
