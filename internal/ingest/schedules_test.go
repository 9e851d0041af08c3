package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestNoLetterIsLostOrStoredTwice lets random accidents happen to dlo, its store, its connection
// and its broker. Each letter must be stored exactly once. The witness (witness_test.go) checks
// that dlo follows the window protocol.
func TestNoLetterIsLostOrStoredTwice(t *testing.T) {
	t.Parallel()
	// with 4521, one of two equal letters is taken for the other after a restart of the broker
	for _, seed := range append(testenv.Seeds(t, 1000), 4521) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { schedule(t, seed, nil) })
		})
	}
}

// schedule publishes bursts of letters to an inbox while accidents happen. The kind of broker is
// random. schedule returns a description of what happened.
func schedule(t *testing.T, seed uint64, change func(*office)) string {
	random := rand.New(rand.NewPCG(seed, 0))
	b := brokers[random.IntN(len(brokers))]
	o := newOffice(t, b, luck(random, random.IntN(12)))
	o.q.forgets = func(acks int) int { return random.IntN(acks + 1) }
	if change != nil {
		change(o)
	}
	coming := rand.New(rand.NewPCG(seed, 1)) // a separate source, so that the same letters arrive whatever dlo does
	for range 1 + coming.IntN(5) {
		bodies := bodiesOf(coming)
		time.AfterFunc(time.Duration(coming.Int64N(int64(20*time.Second))), func() { o.q.publish(bodies...) })
	}
	o.drainDuring(func() {
		time.Sleep(time.Minute)
		synctest.Wait()
		o.setFate(accidents())
		o.q.publish("m the last one") // This letter decides a window that is still open.
		time.Sleep(time.Minute)
	})
	o.check()
	course := o.takeLog()
	if t.Failed() {
		t.Logf("on %s: %s", b.name, course)
	}
	return course
}

// bodiesOf returns the bodies of a random burst of letters. About a third of the bodies are made
// from only three texts, so that some of them are equal.
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
