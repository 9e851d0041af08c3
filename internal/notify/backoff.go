package notify

import "time"

const (
	firstBackoff = 5 * time.Second
	maxBackoff   = 15 * time.Minute
	maxRest      = time.Minute // a channel that failed is left alone no longer, so that a new page does not wait for an old failure
	maxLater     = time.Hour   // Retry-After beyond it is not believed
	patience     = 72 * time.Hour
	fewest       = 10 // tries, however old the notice: after a long downtime an old one gets its chance too
)

// backoff is how long a delivery waits after its tries-th failure: 5 s, 10 s, 20 s ... to 12 min,
// and up to a quarter more, so that what failed together does not come back together.
func backoff(tries int, jitter float64) time.Duration {
	d := maxBackoff * 4 / 5
	if tries >= 1 && tries <= 8 {
		d = min(d, firstBackoff<<(tries-1))
	}
	return d + time.Duration(jitter*float64(d)/4)
}

// pace lets a message go every so often, and some at once after a rest.
type pace struct {
	full time.Time // when the bucket is full again; in the past = now
}

// wait returns how long the next message has to wait, and takes its place when that is 0.
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
