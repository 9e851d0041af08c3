package operation

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	rampTime  = 10 * time.Second // time from the canary until the rate is full
	rampFrom  = 0.1              // fraction of the rate at which a ramp begins
	lookEvery = time.Second      // time between two checks of the depth of the target queues
	burst     = time.Second      // a pacer can catch up on at most the letters of this time
)

// pacer makes an operation keep to its rate. If the operation has not sent anything for a while,
// the pacer allows a small burst. A pacer exists only in memory. Therefore, after a restart of dlo,
// an operation begins without a burst.
type pacer struct {
	tokens    float64
	at        time.Time // time of the last call of allow
	rampAt    time.Time // time at which a ramp began; zero = no ramp
	lookAgain time.Time // time of the next check of the target queues
	// number of the letter with which the chosen canary begins, counted from 1; 0 = none is chosen
	canaryFrom int
}

func (d *Desk) pacer(op *deadletter.Operation) *pacer {
	p := d.pacers[op.ID]
	if p == nil {
		p = &pacer{}
		d.pacers[op.ID] = p
	}
	return p
}

// ramp makes the rate rise gradually from now on.
func (p *pacer) ramp(now time.Time) { p.rampAt = now }

// allow returns how many letters may be sent now. The rate is in letters per second.
func (p *pacer) allow(rate float64, now time.Time) int {
	if share := float64(now.Sub(p.rampAt)) / float64(rampTime); !p.rampAt.IsZero() && share < 1 {
		rate *= max(rampFrom, share)
	}
	if p.at.IsZero() || now.Before(p.at) {
		p.at, p.tokens = now, 1 // the first letter may be sent immediately
	}
	p.tokens = min(p.tokens+rate*now.Sub(p.at).Seconds(), max(1, rate*burst.Seconds()))
	p.at = now
	return int(min(p.tokens, chunk))
}

func (p *pacer) spend(n int) { p.tokens -= float64(n) }

// skipTime must be called while an operation sends nothing because a target queue is too deep. The
// pacer then ignores this time. Otherwise the operation could send a burst of letters after it.
func (p *pacer) skipTime(now time.Time) { p.at = now }
