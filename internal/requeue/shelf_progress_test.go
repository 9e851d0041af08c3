package requeue_test

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func (s *shelf) Progress() deadletter.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now
	p.Store, p.Commits = "shelf", p.Claims
	return p
}

func (s *shelf) Note(p deadletter.Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside = max(s.beside, p.Commits)
	return nil
}

func (s *shelf) Remembered(context.Context, string, string) (deadletter.Remembered, error) {
	m := deadletter.Remembered{Progress: s.Progress(), Marked: -1, Beside: true}
	if s.marked > 0 {
		m.Marked = s.marked
	}
	return m, nil
}

func (s *shelf) Restored(context.Context, deadletter.Progress, bool) error {
	panic("a store that is no copy is taken for one")
}

func (s *shelf) Unproved(context.Context, string, string, bool) error {
	panic("a store that is no copy is taken for one that may be")
}

func (s *shelf) BeginTurn(context.Context) error { return nil }
