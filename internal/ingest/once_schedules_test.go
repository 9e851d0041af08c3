package ingest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestDrainsKeepTheirCount runs drains during which random accidents happen. No drain may take more
// letters than requested, and every counted letter must be stored. In the end, each letter must be
// in the store or still in the queue.
func TestDrainsKeepTheirCount(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Seeds(t, 300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { drainSchedule(t, seed) })
		})
	}
}

// drainSchedule runs one drain after another. Instead of a drain, it sometimes only closes the
// window that the previous drain left open. On a quorum queue, the drains take all letters, because
// a limit on their number could make the first window too small for all letters that came back.
func drainSchedule(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	b := brokers[random.IntN(len(brokers))]
	o := newOffice(t, b, luck(random, random.IntN(12)))
	o.q.forgets = func(acks int) int { return random.IntN(acks + 1) }
	for range 1 + random.IntN(6) {
		o.q.publish(bodiesOf(random)...)
		count := 0
		if !b.quorum {
			count = random.IntN(10)
		}
		run := (*ingest.Once).Run
		if random.IntN(4) == 0 {
			run = (*ingest.Once).Resolve
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(time.Minute))))
		rows := o.rows
		taken, err := o.drainOnce(ctx, count, run)
		stop()
		if err != nil || taken != o.rows-rows || count > 0 && taken > count && o.suspects == 0 {
			t.Errorf("%d of %d letters taken (%v), %d rows", taken, count, err, o.rows-rows)
		}
	}
	o.setFate(accidents())
	if _, err := o.drainOnce(t.Context(), 0, (*ingest.Once).Run); err != nil {
		t.Error(err)
	}
	o.check()
	if t.Failed() {
		t.Logf("on %s: %s", b.name, o.takeLog())
	}
}
