package notify

import "time"

const (
	firstBackoff = 5 * time.Second
	maxBackoff   = 15 * time.Minute
	maxRest      = time.Minute // a failed channel rests no longer than this, so that a new page need not wait for an old failure
	maxLater     = time.Hour   // longer Retry-After times are ignored
	patience     = 72 * time.Hour
	fewest       = 10 // minimum attempts, however old the notice is, so that an old notice is still tried after a long downtime
)

// backoff returns how long a delivery waits after its tries-th failure: 5 s, 10 s, 20 s ... up to
// 12 min, plus up to a quarter, so that deliveries that failed together are not retried together.
func backoff(tries int, jitter float64) time.Duration {
	d := maxBackoff * 4 / 5
	if tries >= 1 && tries <= 8 {
		d = min(d, firstBackoff<<(tries-1))
	}
	return d + time.Duration(jitter*float64(d)/4)
}

// pace limits the rate of messages and allows a burst after a rest.
type pace struct {
	full time.Time // when the bucket is full again; a past time means it is full
}

// wait returns how long the next message has to wait. If that is 0, the message takes its slot.
func (p *pace) wait(now time.Time, every time.Duration, burst int) time.Duration {
	if p.full.Before(now) {
		p.full = now
	}
	most := time.Duration(burst) * every
	if over := p.full.Sub(now); over > most { // the clock was set back
		p.full = now.Add(most)
	}
	if wait := p.full.Add(every).Sub(now) - most; wait > 0 {
		return wait
	}
	p.full = p.full.Add(every)
	return 0
}
