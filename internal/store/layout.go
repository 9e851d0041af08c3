package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// layOut inserts a row for each letter of a frozen selection. A letter belongs to one operation at
// a time, so layOut skips letters that belong to another operation. There is one exception. If the
// other operation is cancelled and has not touched the letter, layOut takes the letter from it.
func (t *tx) layOut(op deadletter.OperationID, as deadletter.Result, list []picked) error {
	for _, l := range list {
		done, err := t.exec(`INSERT INTO operation_letters (operation, letter, origin, result, grp)
			VALUES ($1, $2, $3, $4, (SELECT grp FROM letters WHERE id = $2))
			ON CONFLICT DO NOTHING`, int64(op), l.serial, l.origin, string(as))
		if err != nil {
			return err
		}
		n, _ := done.RowsAffected()
		if n == 1 && as == deadletter.ResultPending {
			continue
		}
		to, reason := as, ""
		if n == 0 {
			owner, free, err := t.owner(l.serial)
			if err != nil {
				return err
			}
			if free {
				if err := t.recordResult(
					deadletter.OperationID(owner), l.serial, deadletter.ResultCancelled, "",
				); err != nil {
					return err
				}
				if _, err := t.exec(`INSERT INTO operation_letters (operation, letter, origin, result, grp)
					VALUES ($1, $2, $3, 'pending', (SELECT grp FROM letters
					WHERE id = $2))`, int64(op), l.serial, l.origin); err != nil {
					return err
				}
				continue
			}
			to, reason = deadletter.ResultSkipped, fmt.Sprintf("operation %s has it", deadletter.OperationID(owner))
			if _, err := t.exec(`INSERT INTO operation_letters (operation, letter, origin, result, reason)
				VALUES ($1, $2, $3, 'skipped', $4)`, int64(op), l.serial, l.origin, reason); err != nil {
				return err
			}
		}
		t.moves.share(op, l.origin, deadletter.ResultPending, to)
	}
	return nil
}

// owner returns the operation to which a letter belongs. The result "free" is true if that
// operation is cancelled and has not touched the letter.
func (t *tx) owner(letter int64) (op int64, free bool, err error) {
	err = t.row(`SELECT ol.operation, ol.result = 'pending' AND o.state = 'cancelled' FROM operation_letters ol
		JOIN operations o ON o.id = ol.operation WHERE ol.letter = $1
		AND ol.result IN ('pending', 'released')`, []any{letter}, &op, &free)
	return op, free, err
}

// LayOut inserts the rows for the next part of a frozen selection in one transaction. It reports
// whether more parts are left. After the last part, the operation enters its next phase. If the
// operation was cancelled, LayOut records that the remaining letters were cancelled.
func (s *Store) LayOut(ctx context.Context, op deadletter.OperationID) (more bool, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		var action deadletter.Verb
		var state deadletter.OperationState
		var p deadletter.Pace
		var hold int64
		if err := t.row(`SELECT action, state, canary, hold FROM operations
			WHERE id = $1`, []any{int64(op)}, &action, &state, &p.Canary, &hold); err != nil {
			return err
		}
		p.Hold = time.Duration(hold) * time.Millisecond
		var part int64
		var letters []byte
		err := t.row(`SELECT part, letters FROM operation_selections WHERE operation = $1 ORDER BY part
			LIMIT 1`, []any{int64(op)}, &part, &letters)
		if err == nil {
			list, err := decodePicked(letters)
			if err != nil {
				return err
			}
			as := deadletter.ResultPending
			if state == deadletter.OperationCancelled {
				as = deadletter.ResultCancelled
			}
			if err := t.layOut(op, as, list); err != nil {
				return err
			}
			if _, err := t.exec(`DELETE FROM operation_selections WHERE operation = $1
				AND part = $2`, int64(op), part); err != nil {
				return err
			}
		} else if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = t.row(`SELECT EXISTS (SELECT 1 FROM operation_selections WHERE operation = $1)`, []any{int64(op)}, &more)
		if err != nil || more || state == deadletter.OperationCancelled {
			return err
		}
		return t.beginPhase(op, action, p)
	})
	if err != nil {
		return false, fmt.Errorf("lay out %s: %w", op, err)
	}
	return more, nil
}

// beginPhase moves an operation to its first phase when each letter of the selection has a row. If
// the operation has a time to hold, it first waits for this time, in which people can undo it.
func (t *tx) beginPhase(op deadletter.OperationID, action deadletter.Verb, p deadletter.Pace) error {
	phase, until := firstPhase(action, p), any(nil)
	if p.Hold > 0 {
		phase, until = deadletter.PhaseHolding, t.now+p.Hold.Milliseconds()
	}
	t.ended[op] = true // an operation whose letters were all skipped ends now
	_, err := t.exec(`UPDATE operations SET phase = $2, phase_until = $3 WHERE id = $1
		AND phase = 'selecting'`, int64(op), string(phase), until)
	return err
}

// firstPhase returns the phase in which an operation sends or changes its first letters.
func firstPhase(action deadletter.Verb, p deadletter.Pace) deadletter.OperationPhase {
	if action.Sends() && p.Canary > 0 {
		return deadletter.PhaseCanary
	}
	return deadletter.PhaseSending
}
