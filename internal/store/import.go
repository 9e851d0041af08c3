package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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
	row := arrival{Row: l.Row, keys: keys{serial: serial, random: random, imported: l.Arrives()}}
	// this dlo decides about the letter again
	row.Group, row.Severity, row.Attempts, row.DueAt, row.Why, row.Unverified = 0, "", 0, time.Time{}, "", false
	var err error
	if row.inbox, err = t.inboxID(l.Broker, l.VHost, l.Inbox); err != nil {
		return "", err
	}
	if row.origin, err = t.originID(l.Origin()); err != nil {
		return "", err
	}
	t.s.serial = max(t.s.serial, serial)
	if err := t.prepare(&row, l.ArrivedBy, l.Properties, l.Body); err != nil {
		return "", err
	}
	values := row.imported().values()
	if err := t.many(insertImported, len(values), values); err != nil {
		return "", err
	}
	detail := fmt.Sprintf(
		"through %s; at its source it was %s, after %d attempts", deadletter.WayOf(t.ctx), l.State, l.Attempts,
	)
	return deadletter.ImportNew, t.addEvent(serial, 0, "imported", by, detail)
}
