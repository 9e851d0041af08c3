package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Import stores letters that another dlo exported, in one transaction. It returns one result per
// letter, in the order of the list. Letters keep their id, time of receipt and bytes. The
// classifier later gives each letter the state that Imported.Arrives returns. Import skips an id
// that already exists, even if that letter was purged in this store. The caller must limit the
// number of letters. Import returns ErrUnavailable if the disk is full.
func (s *Store) Import(ctx context.Context, by string, list []deadletter.Imported) ([]deadletter.ImportResult, error) {
	if s.space != nil {
		if err := s.space.Room(); err != nil {
			return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
		}
	}
	var results []deadletter.ImportResult
	err := s.tx(ctx, bulk, func(t *tx) error {
		results = make([]deadletter.ImportResult, len(list))
		for i := range list {
			var err error
			if results[i], err = t.importLetter(&list[i], by); err != nil {
				return fmt.Errorf("letter %s: %w", list[i].ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("import %d letters: %w", len(list), err)
	}
	return results, nil
}

// importLetter stores one imported letter.
func (t *tx) importLetter(l *deadletter.Imported, by string) (deadletter.ImportResult, error) {
	serial, random, ok := l.ID.Split()
	if !ok || serial <= 0 {
		return "", fmt.Errorf("%w: it is not a letter id", deadletter.ErrInvalid)
	}
	// serials only grow, so a serial far in the future would make the times of all later serials
	// wrong
	if serial>>12 > t.now {
		return deadletter.ImportAhead, nil
	}
	var known int64
	switch err := t.row(`SELECT random FROM letters WHERE id = $1`, []any{serial}, &known); {
	case err == nil && known == random:
		return deadletter.ImportKnown, nil
	case err == nil:
		return deadletter.ImportTaken, nil
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	properties, err := l.Properties.Encode()
	if err != nil {
		return "", err
	}
	inbox, err := t.inboxID(l.Origin.Broker, l.Origin.VHost, l.Inbox)
	if err != nil {
		return "", err
	}
	origin, err := t.originID(l.Origin)
	if err != nil {
		return "", err
	}
	received := l.ReceivedAt.UnixMilli()
	t.s.serial = max(t.s.serial, serial)
	if _, err := t.exec(`INSERT INTO letters (id, random, state,
		inbox, origin, reason, exchange, routing_key, received_at, died_at, changed_at, size, error, imported, checksum)
		VALUES ($1, $2, 'received', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		serial, random, inbox, origin, l.Reason, l.Origin.Exchange, l.Origin.RoutingKey, received, millis(l.DiedAt),
		t.now, len(l.Body), l.Error, string(l.Arrives()), checksum(properties, l.Body)); err != nil {
		return "", err
	}
	if _, err := t.exec(`INSERT INTO bodies (letter, exchange, routing_key, properties, body)
		VALUES ($1, $2, $3, $4, $5)`,
		serial, l.ArrivedBy.Exchange, l.ArrivedBy.RoutingKey, properties, nonNil(l.Body)); err != nil {
		return "", err
	}
	t.step.received++
	t.moves.letter(&record{state: deadletter.StateReceived, origin: origin, reason: l.Reason, receivedAt: received}, 1)
	detail := fmt.Sprintf(
		"through %s; at its source it was %s, after %d attempts", deadletter.WayOf(t.ctx), l.State, l.Attempts,
	)
	return deadletter.ImportNew, t.addEvent(serial, 0, "imported", by, detail)
}
