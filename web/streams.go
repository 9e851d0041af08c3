package web

import "sync"

const (
	maxStreams    = 128            // maximum number of open event streams
	maxOwnStreams = maxStreams / 4 // maximum for one principal, so that nobody takes all places
)

// streams counts the open event streams.
type streams struct {
	mu  sync.Mutex
	all int
	own map[string]int // by principal
}

// enter takes a place for a stream of a principal, and returns whether there was one. If name is
// "", the limit for one principal does not apply.
func (s *streams) enter(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == maxStreams || name != "" && s.own[name] == maxOwnStreams {
		return false
	}
	if s.own == nil {
		s.own = map[string]int{}
	}
	s.all++
	s.own[name]++
	return true
}

// leave gives the place back that enter took.
func (s *streams) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.own[name]--; s.own[name] == 0 {
		delete(s.own, name)
	}
}
