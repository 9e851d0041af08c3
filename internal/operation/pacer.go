package operation

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	rampTime  = 10 * time.Second // time until the rate is full after a canary
	rampFrom  = 0.1              // fraction of the rate with which a ramp starts
	lookEvery = time.Second      // interval between checks of the target queues' depth
	burst     = time.Second      // maximum backlog that a rate may catch up on
)

// pacer keeps an operation to its rate. The state of the pacer is only in memory, so a new process
// begins with no unused allowance.
type pacer struct {
	tokens    float64
	at        time.Time // time of the last allowance
	rampAt    time.Time // start of a ramp; zero = none
	lookAgain time.Time // when to check the target queues again
}

func (d *Desk) pacer(op *deadletter.Operation) *pacer {
	p := d.pacers[op.ID]
	if p == nil {
		p = &pacer{}
		d.pacers[op.ID] = p
	}
	return p
}

// ramp starts a gradual increase of the rate.
func (p *pacer) ramp(now time.Time) { p.rampAt = now }

// allow returns the number of letters that may be sent now.
func (p *pacer) allow(rate float64, now time.Time) int {
	if share := float64(now.Sub(p.rampAt)) / float64(rampTime); !p.rampAt.IsZero() && share < 1 {
		rate *= max(rampFrom, share)
	}
	if p.at.IsZero() || now.Before(p.at) {
		p.at, p.tokens = now, 1 // the first letter goes immediately
	}
	p.tokens = min(p.tokens+rate*now.Sub(p.at).Seconds(), max(1, rate*burst.Seconds()))
	p.at = now
	return int(min(p.tokens, chunk))
}

func (p *pacer) spend(n int) { p.tokens -= float64(n) }

// rest lets time pass without accumulating allowance.
func (p *pacer) rest(now time.Time) { p.at = now }
