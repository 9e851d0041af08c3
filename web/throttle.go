package web

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	burstSeconds = 5      // after a quiet time, requests for this many seconds may arrive at once
	unknownASec  = 10     // the requests per second that one address may send without a known caller
	maxLimited   = 10_000 // the maximum number of callers and addresses that are remembered
)

// throttle limits, for each key, how fast requests may arrive.
type throttle struct {
	mu    sync.Mutex
	known map[string]*rate.Limiter
}

// take counts a request with the given key. If the key has had too many requests lately, take does
// not count the request, and returns the time until the next one is allowed.
func (l *throttle) take(key string, perSecond float64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.known[key]
	if limiter == nil {
		if len(l.known) >= maxLimited {
			// forget keys whose quota is full again, because a new entry has the same quota
			maps.DeleteFunc(l.known, func(_ string, one *rate.Limiter) bool {
				return one.TokensAt(now) >= float64(one.Burst())
			})
		}
		for k := range l.known { // forget keys in random order
			if len(l.known) < maxLimited {
				break
			}
			delete(l.known, k)
		}
		if l.known == nil {
			l.known = map[string]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond*burstSeconds)))
		l.known[key] = limiter
	}
	reservation := limiter.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}

// tooMany returns an error if the requests with a key come faster than "perSecond". It returns nil
// if the request may continue. If dlo has no sign-in, it limits nobody.
func (w *Web) tooMany(rw http.ResponseWriter, key string, perSecond float64) error {
	if w.open || perSecond <= 0 {
		return nil
	}
	delay := w.throttle.take(key, perSecond, time.Now())
	if delay == 0 {
		return nil
	}
	seconds := int(math.Ceil(delay.Seconds()))
	rw.Header().Set("Retry-After", strconv.Itoa(seconds))
	return fmt.Errorf(
		"%w: these are more requests than %g per second; try again in %d s", deadletter.ErrTooMany, perSecond, seconds,
	)
}

// tooManyFrom limits the requests of unknown callers. It returns an error if too many such requests
// came lately from the same address or, with IPv6, from the same network. Otherwise it returns nil.
func (w *Web) tooManyFrom(rw http.ResponseWriter, r *http.Request) error {
	return w.tooMany(rw, "address "+deadletter.Network(w.Address(r)), unknownASec)
}
