package operation

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	rampTime  = 10 * time.Second // after a canary the rate grows to its full height
	rampFrom  = 0.1              // of the rate
	lookEvery = time.Second      // how often the depth of target queues is asked
	burst     = time.Second      // what a rate may catch up at most
)

// pacer holds an operation to its rate. It lives in memory: a new process begins with none saved
// up.
type pacer struct {
	tokens    float64
	at        time.Time // of the last allowance
	rampAt    time.Time // begin of a ramp; zero = none
	lookAgain time.Time // at target queues
}

func (d *Desk) pacer(op *deadletter.Operation) *pacer {
	p := d.pacers[op.ID]
	if p == nil {
		p = &pacer{}
		d.pacers[op.ID] = p
	}
	return p
}

// ramp makes the rate grow from now on.
func (p *pacer) ramp(now time.Time) { p.rampAt = now }

// allow says how many letters may go now.
func (p *pacer) allow(rate float64, now time.Time) int {
	if share := float64(now.Sub(p.rampAt)) / float64(rampTime); !p.rampAt.IsZero() && share < 1 {
		rate *= max(rampFrom, share)
	}
	if p.at.IsZero() || now.Before(p.at) {
		p.at, p.tokens = now, 1 // the first goes at once
	}
	p.tokens = min(p.tokens+rate*now.Sub(p.at).Seconds(), max(1, rate*burst.Seconds()))
	p.at = now
	return int(min(p.tokens, chunk))
}

func (p *pacer) spend(n int) { p.tokens -= float64(n) }

// rest lets the time pass without saving anything up.
func (p *pacer) rest(now time.Time) { p.at = now }
