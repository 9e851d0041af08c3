package store

import (
	"context"
	"database/sql"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// CancelOperation cancels an operation that is not over. Letters that the operation has released
// but that were not sent yet return at once to their earlier state. Letters that are being sent are
// sent normally. Sweep later frees the letters that the operation has not touched, in chunks.
// CancelOperation returns ErrConflict if the operation cannot be cancelled.
func (s *Store) CancelOperation(ctx context.Context, op deadletter.OperationID, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET state = 'cancelled', why = '', phase_until = NULL WHERE id = $1
			AND state IN ('running', 'paused', 'stopped') AND phase <> 'watching'`, int64(op))
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return t.conflictError(op, "it cannot be cancelled")
		}
		if err := t.takeBack(op, by); err != nil {
			return err
		}
		if err := t.sweep(op, laidAtOnce); err != nil { // a short operation ends immediately
			return err
		}
		return t.recordSteering(op, deadletter.ActCancelled, by, "")
	})
}

// takeOver cancels the rest of a halted operation, so that a new operation can have its letters. It
// runs in the transaction that freezes the selection of the new operation. The new operation gets
// the letters later, when the store writes a row for each letter of the selection.
func (t *tx) takeOver(halted deadletter.OperationID, by *deadletter.Operation) error {
	done, err := t.exec(`UPDATE operations SET state = 'cancelled', why = '', phase_until = NULL WHERE id = $1
		AND state IN ('paused', 'stopped') AND phase NOT IN ('watching', 'over')`, int64(halted))
	if err != nil {
		return err
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return t.conflictError(halted, "its rest cannot be taken over")
	}
	if err := t.takeBack(halted, by.By); err != nil {
		return err
	}
	t.ended[halted] = true
	return t.recordSteering(halted, deadletter.ActCancelled, by.By, "its rest was taken over by "+by.ID.String())
}

// takeBack puts an operation's released letters back into their earlier state, unless they are
// already being sent.
func (t *tx) takeBack(op deadletter.OperationID, by string) error {
	rows, err := t.query(`SELECT letter, was, was_due FROM operation_letters WHERE operation = $1
		AND result = 'released'`, int64(op))
	if err != nil {
		return err
	}
	type released struct {
		letter int64
		was    deadletter.State
		due    sql.NullInt64
	}
	list, err := collect(rows, func(r *released) []any { return []any{&r.letter, &r.was, &r.due} })
	if err != nil {
		return err
	}
	for _, l := range list {
		r, err := t.record(l.letter)
		if err != nil {
			return err
		}
		if r.state != deadletter.StateScheduled { // the letter is being sent
			continue
		}
		t.changeRecord(r, func() { r.state = l.was })
		if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3, changed_at = $4, operation = NULL
			WHERE id = $1`, l.letter, string(l.was), l.due, t.now); err != nil {
			return err
		}
		if err := t.addEvent(
			l.letter, op, string(l.was), by, "the requeue was cancelled before it was sent",
		); err != nil {
			return err
		}
		if err := t.recordResult(op, l.letter, deadletter.ResultCancelled, ""); err != nil {
			return err
		}
	}
	return nil
}

// Sweep frees letters that a cancelled operation has not touched, so that other operations can act
// on them. It frees up to n letters in one transaction.
func (s *Store) Sweep(ctx context.Context, op deadletter.OperationID, n int) error {
	return s.tx(ctx, bulk, func(t *tx) error { return t.sweep(op, n) })
}

func (t *tx) sweep(op deadletter.OperationID, n int) error {
	list, err := values[int64](t.query(`SELECT n.letter `+nextLetters(false), int64(op), n))
	if err != nil {
		return err
	}
	for _, letter := range list {
		if err := t.recordResult(op, letter, deadletter.ResultCancelled, ""); err != nil {
			return err
		}
	}
	t.ended[op] = true
	return nil
}
