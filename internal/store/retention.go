package store

import (
	"context"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Expire purges up to n letters in one transaction and returns their number. It chooses letters
// that are in the given state and have not changed since the given time. It begins with the letters
// that were received first. It erases the contents of these letters, but keeps their rows and
// histories. It skips letters that belong to an operation.
func (s *Store) Expire(ctx context.Context, state deadletter.State, before time.Time, n int) (int, error) {
	// The letters are found by a reading connection, and not in the transaction. The search may
	// have to pass many old letters that changed recently, and ingest waits while a transaction
	// runs.
	serials, err := values[int64](s.ask(
		ctx, `SELECT l.id FROM letters l INDEXED BY letters_state WHERE `+expiredLetters+` ORDER BY l.id LIMIT $4`,
		state, deadletter.SerialAt(before), before.UnixMilli(), n,
	))
	if err != nil || len(serials) == 0 {
		return 0, err
	}
	done := 0
	err = s.tx(ctx, bulk, func(t *tx) error {
		done = 0
		for _, serial := range serials {
			records, err := t.records(
				`SELECT `+recordColumns+` FROM letters l WHERE l.id = $4 AND `+expiredLetters, state,
				deadletter.SerialAt(before), before.UnixMilli(), serial,
			)
			if err != nil {
				return err
			}
			if len(records) == 0 { // the letter has changed since the search
				continue
			}
			r := records[0]
			to, ok := r.state.On(deadletter.Purging)
			if !ok {
				continue
			}
			if err := t.expire(r, to, "retention: it was "+string(state)+" long enough"); err != nil {
				return err
			}
			done++
		}
		if done == 0 {
			return nil
		}
		return t.audit(deadletter.Act{
			Kind:    deadletter.ActRetention,
			Actor:   deadletter.Service.Name,
			Targets: []deadletter.Target{{Kind: deadletter.TargetLetters, Name: string(state)}},
			Asked:   deadletter.Amount(done),
			Done:    deadletter.Amount(done),
			Detail: fmt.Sprintf(
				"%d letters purged that were %s since before %s", done, state, before.UTC().Format(time.RFC3339),
			),
		})
	})
	return done, err
}

// expire purges a letter that has been kept long enough. The parameter "reason" is the reason for
// the purge.
func (t *tx) expire(r *record, to deadletter.State, reason string) error {
	detail, err := t.erase(r.id, false)
	if err != nil {
		return err
	}
	t.changeRecord(r, func() { r.state = to })
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL, why = '', changed_at = $3
		WHERE id = $1`, r.id, to, t.now); err != nil {
		return err
	}
	return t.addEvent(r.id, 0, "purged", deadletter.Service.Name, reason+"; "+detail)
}

// expiredLetters is an SQL condition for letters that have been kept for long enough. Its arguments
// are the state, a serial and a time: the letters must have a lower serial, and must have changed
// before the time.
//
// The condition on the serial is not strictly necessary, because a letter that changed before the
// time was also received before it. However, this condition limits how much of the index SQLite
// reads.
const expiredLetters = `l.state = $1 AND l.id < $2 AND l.changed_at < $3 AND NOT EXISTS (SELECT 1
	FROM operation_letters ol WHERE ol.letter = l.id AND ol.result IN ('pending', 'released'))`

// Expiring counts the letters that are in the given state and have not changed since the given
// time. When the count reaches the given limit, Expiring stops counting.
func (s *Store) Expiring(ctx context.Context, state deadletter.State, before time.Time, limit int) (int, error) {
	var n int
	err := s.askRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM letters l INDEXED BY letters_state
		WHERE `+expiredLetters+` LIMIT $4)`,
		[]any{state, deadletter.SerialAt(before), before.UnixMilli(), limit}, &n)
	return n, err
}
