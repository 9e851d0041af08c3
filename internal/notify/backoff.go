package notify

import "time"

const (
	firstBackoff = 5 * time.Second
	maxBackoff   = 15 * time.Minute
	// maximum rest of a channel after a failure, so that a new page does not wait for an old
	// failure
	maxRest  = time.Minute
	maxLater = time.Hour // maximum time that a receiver can request with Retry-After
	patience = 72 * time.Hour
	// minimum number of attempts, at any age of the notice, so that an old notice is still tried
	// after dlo was down for long
	fewest = 10
)

// backoff returns the wait after a failed attempt: 5 s, 10 s, 20 s, and so on, up to 12 min. The
// parameter "tries" is the number of failed attempts. Up to a quarter is added to the wait, so that
// deliveries that failed together are not retried together.
func backoff(tries int, jitter float64) time.Duration {
	d := maxBackoff * 4 / 5
	if tries >= 1 && tries <= 8 {
		d = min(d, firstBackoff<<(tries-1))
	}
	return d + time.Duration(jitter*float64(d)/4)
}

// pace limits the rate of messages. After a rest, several messages may be sent at once.
type pace struct {
	full time.Time // time at which the full burst is available again
}

// wait returns how long the next message must wait before it may be sent. If wait returns 0, it
// assumes that the caller sends the message now, and counts it.
func (p *pace) wait(now time.Time, every time.Duration, burst int) time.Duration {
	if p.full.Before(now) {
		p.full = now
	}
	most := time.Duration(burst) * every
	if over := p.full.Sub(now); over > most { // this is the case if the clock was set back
		p.full = now.Add(most)
	}
	if wait := p.full.Add(every).Sub(now) - most; wait > 0 {
		return wait
	}
	p.full = p.full.Add(every)
	return 0
}
