package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// EnterPhase moves a running operation from one phase to another. The parameter "end" is the end of
// the new phase. If dlo makes the operation wait, the parameter "reason" says why. If the operation
// is no longer running in the phase "from", EnterPhase changes nothing. From the start of a canary,
// the letters that are sent and the letters that come back are counted again from 0.
func (s *Store) EnterPhase(
	ctx context.Context, op deadletter.OperationID, from, to deadletter.OperationPhase, end time.Time, reason string,
) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET phase = $3, phase_until = $4, why = $5 WHERE id = $1 AND phase = $2
			AND state = 'running'`,
			int64(op), string(from), string(to), millis(end), reason)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 1 && to == deadletter.PhaseCanary && from != to {
			return t.recordBase(op)
		}
		t.ended[op] = true
		return nil
	})
}

// recordBase records three counts of an operation when a canary starts: how many letters it had
// taken, how many it had sent, and how many had come back. These counts are later subtracted from
// the new ones, so that the canary is judged only by its own letters.
func (t *tx) recordBase(op deadletter.OperationID) error {
	_, err := t.exec(`UPDATE operations SET base_at = $2,
		base_taken = (SELECT coalesce(sum(n), 0) FROM operation_counts WHERE operation = $1
		AND result NOT IN ('pending', 'skipped', 'cancelled')),
		base_sent = (SELECT coalesce(sum(n), 0) FROM operation_counts WHERE operation = $1
		AND result IN ('confirmed', 'quiet', 'unverified', 'came back')),
		base_back = (SELECT coalesce(sum(n), 0) FROM operation_counts WHERE operation = $1 AND result = 'came back')
		WHERE id = $1`, int64(op), t.now)
	return err
}

// StopOperation stops a running operation automatically, which means that dlo has decided this and
// not a person. No more letters of the operation are sent until a person resumes or cancels it.
func (s *Store) StopOperation(ctx context.Context, op deadletter.OperationID, why string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET state = 'stopped', why = $2, phase_until = NULL WHERE id = $1
			AND state = 'running'`, int64(op), why)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return nil
		}
		return t.recordSteering(op, deadletter.ActStopped, deadletter.Service.Name, why)
	})
}

// PauseOperation pauses a running operation, so that no more letters of the operation are sent. It
// returns ErrConflict if the operation is not running, or if it has nothing left to send.
func (s *Store) PauseOperation(ctx context.Context, op deadletter.OperationID, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET state = 'paused', why = '' WHERE id = $1 AND state = 'running'
			AND phase NOT IN ('watching', 'over')`, int64(op))
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return t.conflictError(op, "it cannot be paused")
		}
		return t.recordSteering(op, deadletter.ActPaused, by, "")
	})
}

// ResumeOperation resumes a paused or stopped operation. A stopped operation begins with a canary
// again. A paused operation begins with a canary again only if its canary was still being watched.
// ResumeOperation returns ErrConflict if the operation is neither paused nor stopped.
func (s *Store) ResumeOperation(ctx context.Context, op deadletter.OperationID, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var action deadletter.Verb
		var state deadletter.OperationState
		var phase deadletter.OperationPhase
		var p deadletter.Pace
		var hold int64
		err := t.row(`SELECT action, state, phase, canary, hold FROM operations
			WHERE id = $1`, []any{int64(op)}, &action, &state, &phase, &p.Canary, &hold)
		if errors.Is(err, sql.ErrNoRows) ||
			err == nil && state != deadletter.OperationPaused && state != deadletter.OperationStopped {
			return t.conflictError(op, "it cannot be resumed")
		}
		if err != nil {
			return err
		}
		until := any(nil)
		switch {
		case phase == deadletter.PhaseHolding:
			until = t.now + hold
		case phase == deadletter.PhaseWaiting, state == deadletter.OperationStopped:
			phase = firstPhase(action, p)
			if err := t.recordBase(op); err != nil {
				return err
			}
		}
		if _, err := t.exec(`UPDATE operations SET state = 'running', phase = $2, phase_until = $3, why = ''
			WHERE id = $1`, int64(op), string(phase), until); err != nil {
			return err
		}
		t.ended[op] = true
		return t.recordSteering(op, deadletter.ActResumed, by, "")
	})
}

// RateOperation changes the rate of an operation, in letters per second. It returns ErrConflict if
// the operation has ended or has no rate.
func (s *Store) RateOperation(ctx context.Context, op deadletter.OperationID, by string, rate float64) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE operations SET rate = $2 WHERE id = $1 AND state IN ('running', 'paused', 'stopped')
			AND action IN ('requeue', 'edit')`, int64(op), rate)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return t.conflictError(op, "its rate cannot be changed")
		}
		return t.recordSteering(op, deadletter.ActRate, by, fmt.Sprintf("%g letters per second", rate))
	})
}

// conflictError returns an error that names the state of an operation and the action that this
// state prevents. It returns ErrNotFound if the operation does not exist.
func (t *tx) conflictError(op deadletter.OperationID, what string) error {
	var state, phase string
	err := t.row(`SELECT state, phase FROM operations WHERE id = $1`, []any{int64(op)}, &state, &phase)
	if errors.Is(err, sql.ErrNoRows) {
		return deadletter.NoSuch("operation %s", op)
	}
	if err != nil {
		return err
	}
	if state == string(deadletter.OperationRunning) {
		state = phase
	}
	return fmt.Errorf("%w: operation %s is %s, so %s", deadletter.ErrConflict, op, state, what)
}
