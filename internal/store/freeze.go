package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

const (
	partLetters = 2000 // letters in one part of a frozen selection; one transaction lays out one part
	laidAtOnce  = 500  // maximum size of a selection that is laid out in the transaction that freezes it
)

// Freeze stores an operation and its selection in one transaction, before any letter is changed. It
// fills in op.ID, op.CreatedAt, op.Phase, op.Total and op.Changed. If the parameter "limit" is
// above 0, Freeze takes at most that many letters, in the order of sending. A principal and an
// idempotency key together start at most one operation. If that operation exists already, Freeze
// only sets op.ID to its id. If the existing operation came from a different request, Freeze
// returns ErrConflict.
//
// Freeze calls the function "allow" for each place whose letters it freezes. If "allow" returns an
// error, Freeze stores nothing. It is not enough that the caller checks the places earlier, because
// a letter may have died after that.
func (s *Store) Freeze(
	ctx context.Context, op *deadletter.Operation, sel query.Selection, limit int, allow func(deadletter.Origin) error,
) error {
	err := s.freeze(ctx, op, sel, limit, allow)
	if err != nil {
		return fmt.Errorf("freeze the selection of a %s: %w", op.Action, err)
	}
	return nil
}

func (s *Store) freeze(
	ctx context.Context, op *deadletter.Operation, sel query.Selection, first int, allow func(deadletter.Origin) error,
) error {
	if known, err := sameRequest(
		op, func(text string, args []any, dest ...any) error { return s.askRow(ctx, text, args, dest...) },
	); known || err != nil {
		return err
	}
	until := s.now()
	list, changed, err := s.pick(ctx, sel, first, bool(op.Pace.Newest))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: no letter is selected%s", deadletter.ErrInvalid, changedSince(changed))
	}
	if op.Expect > 0 && len(list) > op.Expect {
		return fmt.Errorf(
			"%w: %d letters match now, but %d were shown; look at them again", deadletter.ErrConflict, len(list),
			op.Expect,
		)
	}
	if err := s.eachPlace(list, allow); err != nil {
		return err
	}
	if !sel.Until.IsZero() {
		until = sel.Until
	}
	// All slow work is done before the transaction, because ingest has to wait for the transaction.
	shares, groups, total := map[int64]int64{}, map[int64]bool{}, len(list)
	for _, l := range list {
		shares[l.origin]++
		if l.group > 0 {
			groups[l.group] = true
		}
	}
	var parts [][]byte
	if total > laidAtOnce {
		for part := range slices.Chunk(list, partLetters) {
			parts = append(parts, encodePicked(part))
		}
	}
	return s.tx(ctx, bulk, func(t *tx) error {
		// an identical request may have been stored in the meantime
		if known, err := sameRequest(op, t.row); known || err != nil {
			return err
		}
		var key any
		if op.Key != "" {
			key = op.Key
		}
		op.CreatedAt, op.State, op.Phase = time.UnixMilli(
			t.now,
		).UTC(), deadletter.OperationRunning, deadletter.PhaseSelecting
		op.Total, op.Changed, op.Except = total, changed, len(sel.Except)
		p := op.Pace
		newest := 0
		if p.Newest {
			newest = 1
		}
		var id int64
		if err := t.row(`INSERT INTO operations (action, state,
			phase, by, through, reason, key, request, query, excepted, changed, until, created_at, total, target,
			rate, canary, canary_wait, stop_at, max_depth, newest, hold, due_at, reset, restored, patch, first, reveal)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
			$11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28) RETURNING id`,
			[]any{
				string(op.Action), string(op.State), string(op.Phase), op.By, string(op.Through), op.Reason, key,
				op.Request[:], op.Query, op.Except, changed, until.UnixMilli(), t.now, op.Total, op.To,
				p.Rate, p.Canary, p.CanaryWait.Milliseconds(), p.StopAt, p.MaxDepth, newest, p.Hold.Milliseconds(),
				millis(op.DueAt), op.Reset, op.Restored, op.Patch, first, op.Reveal,
			}, &id); err != nil {
			return err
		}
		op.ID = deadletter.OperationID(id)
		for _, other := range op.TakesOver {
			if err := t.takeOver(other, op); err != nil {
				return err
			}
		}
		for origin, n := range shares {
			t.moves.shares[share{op.ID, origin, deadletter.ResultPending}] += n
		}
		for group := range groups {
			if _, err := t.exec(`INSERT INTO operation_groups (operation, grp)
				VALUES ($1, $2)`, id, group); err != nil {
				return err
			}
		}
		if err := t.audit(deadletter.Act{
			Kind:      string(op.Action),
			Actor:     op.By,
			Operation: op.ID,
			Detail:    op.Reason,
			Asked:     deadletter.Amount(op.Total),
			Done:      deadletter.UnknownAmount,
		}); err != nil {
			return err
		}
		if len(parts) == 0 {
			if err := t.layOut(op.ID, deadletter.ResultPending, list); err != nil {
				return err
			}
			return t.beginPhase(op.ID, op.Action, p)
		}
		for part, letters := range parts {
			if _, err := t.exec(`INSERT INTO operation_selections (operation, part, letters)
				VALUES ($1, $2, $3)`, id, part, letters); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPlace calls the function "fn" once for each place to which letters of the list belong
// (deadletter.Letter.Place). It stops when fn returns an error.
func (s *Store) eachPlace(list []picked, fn func(deadletter.Origin) error) error {
	type ids struct{ origin, inbox int64 }
	done := map[ids]bool{}
	for _, l := range list {
		at := ids{l.origin, l.inbox}
		if done[at] {
			continue
		}
		done[at] = true
		if err := fn(s.names.placeOf(l.origin, l.inbox).origin()); err != nil {
			return err
		}
	}
	return nil
}

func changedSince(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(": %d letters of the query have changed since they were shown", n)
}

// sameRequest reports whether an operation of the same principal with the same idempotency key
// exists. If that operation came from a different request, sameRequest returns ErrConflict. Without
// this error, the caller would believe that the new request had been carried out.
func sameRequest(op *deadletter.Operation, row func(text string, args []any, dest ...any) error) (bool, error) {
	if op.Key == "" {
		return false, nil
	}
	var id int64
	var request []byte
	err := row(`SELECT id, request FROM operations WHERE by = $1 AND key = $2`, []any{op.By, op.Key}, &id, &request)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	op.ID = deadletter.OperationID(id)
	if !bytes.Equal(request, op.Request[:]) {
		return false, fmt.Errorf(
			"%w: the Idempotency-Key was used for %s, which is another request", deadletter.ErrConflict, op.ID,
		)
	}
	return true, nil
}
