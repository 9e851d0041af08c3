package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Record appends an event that belongs to no letter to the audit, such as the start of a drain. The time is that of the commit.
func (s *Store) Record(ctx context.Context, e deadletter.Event) error {
	err := s.tx(ctx, urgent, func(t *tx) error { return t.event(0, e.Operation, e.Kind, e.Actor, e.Detail) })
	if err != nil {
		return fmt.Errorf("record %s: %w", e.Kind, err)
	}
	return nil
}
