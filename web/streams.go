package web

import "sync"

const (
	maxStreams    = 128            // the maximum number of open event streams
	maxOwnStreams = maxStreams / 4 // the maximum number of one caller, so that nobody takes all places
)

// streams counts the open event streams.
type streams struct {
	mu  sync.Mutex
	all int
	own map[string]int // the number of open streams of each caller
}

// enter reports whether a caller may open another event stream. If so, it counts the stream. If the
// name is "", the limit for one caller does not apply.
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

// leave must be called at the end of each event stream that the method enter has counted.
func (s *streams) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.own[name]--; s.own[name] == 0 {
		delete(s.own, name)
	}
}
