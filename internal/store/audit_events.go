package store

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Record appends an event to the audit, such as the start of a drain; one of a letter stands in its
// history too. The time is that of the commit.
func (s *Store) Record(ctx context.Context, e deadletter.Event) error {
	if err := s.tx(ctx, urgent, func(t *tx) error { return t.audit(e) }); err != nil {
		return fmt.Errorf("record %s: %w", e.Kind, err)
	}
	return nil
}

// audit notes an event in the audit log, and in the history of its letter.
func (t *tx) audit(e deadletter.Event) error {
	if e.Letter == "" {
		return t.event(0, e.Operation, e.Kind, e.Actor, e.Detail)
	}
	serial, _, _ := e.Letter.Split()
	if err := t.event(serial, e.Operation, e.Kind, e.Actor, e.Detail); err != nil {
		return err
	}
	return t.event(0, e.Operation, e.Kind, e.Actor, "letter "+string(e.Letter)+": "+e.Detail)
}
