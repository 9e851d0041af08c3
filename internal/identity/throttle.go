package identity

import (
	"strings"
	"sync"
	"time"
)

// Limits of sign-in attempts. The attempts of one name from one address are counted, and those of
// one address, so that nobody can lock somebody else out from elsewhere.
const (
	triesOfName    = 5
	triesOfAddress = 50
	triesWithin    = 15 * time.Minute
	maxTries       = 20_000 // names and addresses that are remembered
)

// throttle counts failed sign-in attempts.
type throttle struct {
	mu     sync.Mutex
	failed map[string]failures
	swept  time.Time // when failures of long ago were last forgotten
}

type failures struct {
	n     int
	since time.Time
}

func keysOf(name, address string) [2]string {
	name = name[:min(len(name), 128)] // no user has a longer one, and what is kept is small
	return [2]string{address, strings.ToLower(name) + "\x00" + address}
}

// left returns how many attempts are left, and if none is, when there will be some again.
func (t *throttle) left(name, address string, now time.Time) (n int, again time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = triesOfName
	for i, key := range keysOf(name, address) {
		f := t.failed[key]
		if f.n == 0 || now.Sub(f.since).Abs() >= triesWithin {
			continue
		}
		if left := [2]int{triesOfAddress, triesOfName}[i] - f.n; left < n {
			n = max(left, 0)
		}
		if until := f.since.Add(triesWithin); until.After(again) {
			again = until
		}
	}
	return n, again
}

// fail counts a failed attempt.
func (t *throttle) fail(name, address string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = map[string]failures{}
	}
	if len(t.failed) >= maxTries && now.Sub(t.swept).Abs() > time.Minute {
		t.swept = now
		for key, f := range t.failed {
			if now.Sub(f.since).Abs() >= triesWithin {
				delete(t.failed, key)
			}
		}
	}
	for _, key := range keysOf(name, address) {
		f, known := t.failed[key]
		if !known && len(t.failed) >= maxTries {
			continue // the address still counts
		}
		if f.n == 0 || now.Sub(f.since).Abs() >= triesWithin {
			f = failures{since: now}
		}
		f.n++
		t.failed[key] = f
	}
}

// forget forgets the failed attempts of a name from an address, after it signed in.
func (t *throttle) forget(name, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failed, keysOf(name, address)[1])
}
