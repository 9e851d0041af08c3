package identity

import (
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// These are the limits of sign-in attempts. Attempts are counted for each address, and for each
// combination of a name and an address. Nobody can therefore lock out a user who signs in from
// another address.
const (
	triesOfName    = 5
	triesOfAddress = 50
	triesWithin    = 15 * time.Minute
	maxTries       = 20_000 // maximum number of keys (names and addresses) that are remembered
	sweepEvery     = time.Minute
)

// throttle counts failed sign-in attempts, and attempts whose password is being checked.
type throttle struct {
	mu    sync.Mutex
	tried map[string]attempts
	swept time.Time // time at which old attempts were last removed
}

type attempts struct {
	n     int
	since time.Time
}

// keysOf returns the two keys under which a sign-in attempt is counted. One key stands for the
// address of the client. The other key stands for the name together with this address.
func keysOf(name, address string) [2]string {
	address = deadletter.Network(address)
	name = name[:min(len(name), 128)] // no user has a longer name, and a short key saves memory
	return [2]string{address, strings.ToLower(name) + "\x00" + address}
}

// attemptsLeft returns how many attempts are left. If none is left, the result "nextTry" is the
// time at which the next attempt is possible.
func (t *throttle) attemptsLeft(name, address string, now time.Time) (n int, nextTry time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.triesLeftOf(keysOf(name, address), now)
}

func (t *throttle) triesLeftOf(keys [2]string, now time.Time) (n int, nextTry time.Time) {
	n = triesOfName
	for i, key := range keys {
		f := t.tried[key]
		if f.n == 0 || f.isOld(now) {
			continue
		}
		if left := [2]int{triesOfAddress, triesOfName}[i] - f.n; left < n {
			n = max(left, 0)
		}
		if until := f.since.Add(triesWithin); until.After(nextTry) {
			nextTry = until
		}
	}
	return n, nextTry
}

func (f attempts) isOld(now time.Time) bool { return now.Sub(f.since).Abs() >= triesWithin }

// takeAttempt counts an attempt before its password is checked, so that simultaneous attempts
// cannot exceed the limits. If there were too many attempts, it returns false and the time at which
// the next attempt is possible.
func (t *throttle) takeAttempt(name, address string, now time.Time) (nextTry time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := keysOf(name, address)
	if n, nextTry := t.triesLeftOf(keys, now); n == 0 {
		return nextTry, false
	}
	if t.tried == nil {
		t.tried = map[string]attempts{}
	}
	t.sweep(now)
	for _, key := range keys {
		f, known := t.tried[key]
		if !known && len(t.tried) >= maxTries {
			t.forgetOne()
		}
		if f.n == 0 || f.isOld(now) {
			f = attempts{since: now}
		}
		f.n++
		t.tried[key] = f
	}
	return time.Time{}, true
}

// sweep removes sign-in attempts that are too old to count.
func (t *throttle) sweep(now time.Time) {
	if now.Sub(t.swept).Abs() < sweepEvery {
		return
	}
	t.swept = now
	for key, f := range t.tried {
		if f.isOld(now) {
			delete(t.tried, key)
		}
	}
}

// forgetOne removes one of the counters of sign-in attempts, to make room for another. It looks at
// a few counters and removes the one with the fewest attempts. Therefore a counter that is near its
// limit is unlikely to be removed.
func (t *throttle) forgetOne() {
	const looked = 20
	least, n, i := "", 0, 0
	for key, f := range t.tried { // the iteration order is random
		if least == "" || f.n < n {
			least, n = key, f.n
		}
		if i++; i == looked {
			break
		}
	}
	delete(t.tried, least)
}

// removeAttempt removes an attempt that was successful, or whose password could not be checked.
// After a successful attempt, it also removes the earlier attempts of the name from this address.
func (t *throttle) removeAttempt(name, address string, successful bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, key := range keysOf(name, address) {
		f := t.tried[key]
		if f.n--; f.n <= 0 || successful && i == 1 {
			delete(t.tried, key)
			continue
		}
		t.tried[key] = f
	}
}
