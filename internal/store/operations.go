package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Freeze stores an operation and its selection before the first letter is touched, and fills in op.ID, op.CreatedAt and op.Total. An operation of the same
// principal and key is not made twice: op becomes that one.
func (s *Store) Freeze(ctx context.Context, op *deadletter.Operation, sel query.Selection) error {
	err := s.tx(ctx, bulk, func(t *tx) error {
		if op.Key != "" {
			var id int64
			var action deadletter.Verb
			err := t.row(`SELECT id, action FROM operations WHERE by = $1 AND key = $2`, []any{op.By, op.Key}, &id, &action)
			if err == nil {
				op.ID = deadletter.OperationID(id)
				return t.sameRequest(op, action, sel)
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		var key any
		if op.Key != "" {
			key = op.Key
		}
		op.CreatedAt, op.State = time.UnixMilli(t.now).UTC(), deadletter.OperationRunning
		var id int64
		if err := t.row(`INSERT INTO operations (action, state, by, through, reason, key, created_at, total) VALUES ($1, $2, $3, $4, $5, $6, $7, 0) RETURNING id`,
			[]any{string(op.Action), string(op.State), op.By, op.Through, op.Reason, key, t.now}, &id); err != nil {
			return err
		}
		op.ID, op.Total = deadletter.OperationID(id), 0
		for _, letter := range sel.IDs {
			serial, random, _ := letter.Split()
			var origin int64
			err := t.row(`SELECT origin FROM letters WHERE id = $1 AND random = $2`, []any{serial, random}, &origin)
			if errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("letter %s: %w", letter, deadletter.ErrNotFound)
			}
			if err != nil {
				return err
			}
			done, err := t.exec(`INSERT INTO operation_letters (operation, letter, origin, result) VALUES ($1, $2, $3, 'pending') ON CONFLICT DO NOTHING`, id, serial, origin)
			if err != nil {
				return err
			}
			if n, _ := done.RowsAffected(); n == 1 { // a letter named twice is one letter
				op.Total++
				t.moves.share(op.ID, origin, "", deadletter.ResultPending)
			}
		}
		if _, err := t.exec(`UPDATE operations SET total = $2 WHERE id = $1`, id, op.Total); err != nil {
			return err
		}
		return t.event(0, op.ID, string(op.Action), op.By, op.Reason)
	})
	if err != nil {
		return fmt.Errorf("freeze the selection of a %s: %w", op.Action, err)
	}
	return nil
}

// sameRequest says ErrConflict unless an operation is what op and sel ask for: a key that is used again for something else must not look as if that were done.
func (t *tx) sameRequest(op *deadletter.Operation, action deadletter.Verb, sel query.Selection) error {
	letters := map[int64]bool{}
	for _, id := range sel.IDs {
		serial, _, _ := id.Split()
		letters[serial] = true
	}
	same := action == op.Action
	rows, err := t.query(`SELECT letter FROM operation_letters WHERE operation = $1`, int64(op.ID))
	if err != nil {
		return err
	}
	n := 0
	if err := scan(rows, func() error {
		var serial int64
		err := rows.Scan(&serial)
		same = same && letters[serial]
		n++
		return err
	}); err != nil {
		return err
	}
	if !same || n != len(letters) {
		return fmt.Errorf("%w: the Idempotency-Key was used for %s, which is another request", deadletter.ErrConflict, op.ID)
	}
	return nil
}

// RunningOperations returns the operations that have pending letters, oldest first: also those that an earlier process began.
func (s *Store) RunningOperations(ctx context.Context) ([]deadletter.OperationID, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id FROM operations WHERE state = 'running' ORDER BY id`)
	if err != nil {
		return nil, err
	}
	var ids []deadletter.OperationID
	err = scan(rows, func() error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, deadletter.OperationID(id))
		return err
	})
	return ids, err
}

// Advance acts on the next n pending letters of an operation, in one commit: requeue makes them scheduled, due now; discard and restore change them. Letters that
// cannot be acted on are skipped with the reason. left is how many are pending still. An operation with nothing open is finished.
func (s *Store) Advance(ctx context.Context, op deadletter.OperationID, n int) (left int, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		var action deadletter.Verb
		var state deadletter.OperationState
		var by string
		if err := t.row(`SELECT action, state, by FROM operations WHERE id = $1`, []any{int64(op)}, &action, &state, &by); err != nil {
			return err
		}
		if state != deadletter.OperationRunning {
			left = 0
			return nil
		}
		trigger, ok := action.Trigger()
		if !ok {
			return fmt.Errorf("%s: %w: action %q", op, deadletter.ErrInvalid, action)
		}
		rows, err := t.query(`SELECT letter, origin FROM operation_letters WHERE operation = $1 AND result = 'pending' ORDER BY letter LIMIT $2`, int64(op), n)
		if err != nil {
			return err
		}
		type pending struct{ serial, origin int64 }
		var list []pending
		if err := scan(rows, func() error {
			var p pending
			err := rows.Scan(&p.serial, &p.origin)
			list = append(list, p)
			return err
		}); err != nil {
			return err
		}
		for _, p := range list {
			if err := t.act(op, by, action, trigger, p.serial, p.origin); err != nil {
				return err
			}
		}
		if err := t.row(`SELECT count(*) FROM (SELECT 1 FROM operation_letters WHERE operation = $1 AND result = 'pending' LIMIT 1)`, []any{int64(op)}, &left); err != nil {
			return err
		}
		t.ended[op] = true
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("advance %s: %w", op, err)
	}
	return left, nil
}

// act does what the operation is for to one letter, or skips it.
func (t *tx) act(op deadletter.OperationID, by string, action deadletter.Verb, trigger deadletter.Trigger, serial, origin int64) error {
	r, err := t.record(serial)
	if err != nil {
		return err
	}
	to, ok := r.state.On(trigger)
	switch {
	case r.operation.Valid:
		return t.result(op, serial, deadletter.ResultSkipped, fmt.Sprintf("operation %s has it", deadletter.OperationID(r.operation.Int64)))
	case !ok:
		return t.result(op, serial, deadletter.ResultSkipped, fmt.Sprintf("it is %s, which cannot be %s", r.state, past(action)))
	case trigger == deadletter.Released && r.origin == 0:
		return t.result(op, serial, deadletter.ResultSkipped, "nothing says which queue it died in")
	}
	was, wasDue := r.state, r.dueAt
	t.moved(r, func() { r.state = to })
	if trigger != deadletter.Released {
		if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL, changed_at = $3, why = '' WHERE id = $1`, serial, string(to), t.now); err != nil {
			return err
		}
		if err := t.event(serial, op, past(action), by, ""); err != nil {
			return err
		}
		return t.result(op, serial, deadletter.ResultChanged, "")
	}
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3, changed_at = $3, operation = $4 WHERE id = $1`, serial, string(to), t.now, int64(op)); err != nil {
		return err
	}
	t.moves.share(op, origin, deadletter.ResultPending, deadletter.ResultReleased)
	_, err = t.exec(`UPDATE operation_letters SET result = 'released', was = $3, was_due = $4 WHERE operation = $1 AND letter = $2`, int64(op), serial, string(was), wasDue)
	return err
}

func past(v deadletter.Verb) string {
	return map[deadletter.Verb]string{deadletter.VerbRequeue: "requeued", deadletter.VerbDiscard: "discarded", deadletter.VerbRestore: "restored"}[v]
}

// result records what an operation did with a letter, and finishes the operation when that was the last.
func (t *tx) result(op deadletter.OperationID, letter int64, to deadletter.Result, reason string) error {
	var from deadletter.Result
	var origin int64
	err := t.row(`SELECT result, origin FROM operation_letters WHERE operation = $1 AND letter = $2`, []any{int64(op), letter}, &from, &origin)
	if errors.Is(err, sql.ErrNoRows) || err == nil && from == to {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE operation_letters SET result = $3, reason = $4 WHERE operation = $1 AND letter = $2`, int64(op), letter, string(to), reason); err != nil {
		return err
	}
	t.moves.share(op, origin, from, to)
	if from == deadletter.ResultReleased && !to.Open() {
		t.ended[op] = true
	}
	return nil
}

// finish ends a running operation that has no open letter.
func (t *tx) finish(op deadletter.OperationID) error {
	var open int
	if err := t.row(`SELECT count(*) FROM (SELECT 1 FROM operation_letters WHERE operation = $1 AND result IN ('pending', 'released') LIMIT 1)`, []any{int64(op)}, &open); err != nil || open > 0 {
		return err
	}
	done, err := t.exec(`UPDATE operations SET state = 'done', finished_at = $2 WHERE id = $1 AND state = 'running'`, int64(op), t.now)
	if err != nil {
		return err
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return nil
	}
	return t.event(0, op, "done", deadletter.Service.Name, "")
}

// CancelOperation stops a running operation: letters that were not sent go back to what they were. Those on their way end as they end. It returns how many went back;
// ErrConflict when the operation is not running.
func (s *Store) CancelOperation(ctx context.Context, op deadletter.OperationID, by string) (int, error) {
	back := 0
	err := s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET state = 'cancelled', finished_at = $2 WHERE id = $1 AND state = 'running'`, int64(op), t.now)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			var state string
			if err := t.row(`SELECT state FROM operations WHERE id = $1`, []any{int64(op)}, &state); errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("%s: %w", op, deadletter.ErrNotFound)
			} else if err != nil {
				return err
			}
			return fmt.Errorf("%s is %s: %w", op, state, deadletter.ErrConflict)
		}
		rows, err := t.query(`SELECT letter, result, was, was_due FROM operation_letters WHERE operation = $1 AND result IN ('pending', 'released')`, int64(op))
		if err != nil {
			return err
		}
		type open struct {
			letter int64
			result deadletter.Result
			was    deadletter.State
			due    sql.NullInt64
		}
		var list []open
		if err := scan(rows, func() error {
			var o open
			err := rows.Scan(&o.letter, &o.result, &o.was, &o.due)
			list = append(list, o)
			return err
		}); err != nil {
			return err
		}
		for _, o := range list {
			if o.result == deadletter.ResultReleased {
				r, err := t.record(o.letter)
				if err != nil {
					return err
				}
				if r.state != deadletter.StateScheduled { // on its way
					continue
				}
				t.moved(r, func() { r.state = o.was })
				if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3, changed_at = $4, operation = NULL WHERE id = $1`, o.letter, string(o.was), o.due, t.now); err != nil {
					return err
				}
				if err := t.event(o.letter, op, string(o.was), by, "the requeue was cancelled before it was sent"); err != nil {
					return err
				}
			}
			if err := t.result(op, o.letter, deadletter.ResultCancelled, ""); err != nil {
				return err
			}
			back++
		}
		return t.event(0, op, "cancelled", by, fmt.Sprintf("%d letters stay as they were", back))
	})
	return back, err
}
