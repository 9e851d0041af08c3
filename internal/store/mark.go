package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mark records the outcomes of attempts to send letters, all in one transaction. A letter may have
// come back before Mark records the confirm of its attempt. In that case, Mark only adds an event
// to the letter. The parameter "noted" is the progress of the store that the broker has just
// confirmed.
func (s *Store) Mark(ctx context.Context, marks []deadletter.Mark, noted deadletter.Noted) error {
	err := s.tx(ctx, dispatch, func(t *tx) error {
		if err := t.recordConfirmed(noted); err != nil {
			return err
		}
		published, err := t.published(marks)
		if err != nil {
			return err
		}
		for i := range marks {
			if err := t.mark(&marks[i], published[marks[i].Token]); err != nil {
				return err
			}
		}
		return t.storeMarks()
	})
	if err != nil {
		return fmt.Errorf("mark %d attempts: %w", len(marks), err)
	}
	return nil
}

// published is a letter that was sent, with its attempt.
type published struct {
	record
	n         int
	outcome   deadletter.OutcomeKind
	operation sql.NullInt64 // of the attempt
	running   bool          // the operation may still send letters
	result    deadletter.Result
	share     int64 // origin under which the operation counts the letter
	was       deadletter.State
	wasDue    sql.NullInt64
}

// published reads the letters whose outcomes are given, by the tokens of their newest attempts.
func (t *tx) published(marks []deadletter.Mark) (map[deadletter.Token]*published, error) {
	var sent []any
	for i := range marks {
		serial, _, _ := marks[i].Letter.Split()
		sent = append(sent, serial, marks[i].Token.Bytes())
	}
	found := make(map[deadletter.Token]*published, len(marks))
	for query, args := range manyAtOnce(`WITH m (letter, token) AS (VALUES rows)
		SELECT `+recordColumns+`, a.n, a.outcome, a.operation, a.token,
		coalesce(o.state IN ('running', 'paused', 'stopped'), false), coalesce(ol.result, ''), coalesce(ol.origin, 0),
		coalesce(ol.was, ''), ol.was_due FROM m CROSS JOIN attempts a CROSS JOIN letters l
		LEFT JOIN operations o ON o.id = a.operation
		LEFT JOIN operation_letters ol ON ol.operation = a.operation AND ol.letter = a.letter
		WHERE a.letter = m.letter AND a.token = m.token AND l.id = a.letter ORDER BY a.n`, 2, sent) {
		rows, err := t.query(query, args...)
		if err != nil {
			return nil, err
		}
		if err := scan(rows, func() error {
			var p published
			var token []byte
			err := rows.Scan(append(
				p.dest(), &p.n, &p.outcome, &p.operation, &token, &p.running, &p.result, &p.share, &p.was, &p.wasDue,
			)...)
			found[deadletter.TokenFromBytes(token)] = &p
			return err
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// mark records an outcome. The letter is nil if the store has none with such an attempt.
func (t *tx) mark(m *deadletter.Mark, p *published) error {
	if p == nil {
		return fmt.Errorf("letter %s: %w", m.Letter, sql.ErrNoRows)
	}
	r, serial, n, outcome, operation := &p.record, p.id, p.n, p.outcome, p.operation
	if outcome == deadletter.OutcomeCameBack {
		if m.Outcome != deadletter.OutcomeConfirmed {
			return nil
		}
		return t.addEvent(
			serial, 0, "confirmed late", deadletter.Service.Name, "the broker confirmed after the letter had come back",
		)
	}
	if r.state != deadletter.StatePublishing || r.publishes != n || r.epoch.Int64 != t.s.epoch {
		return t.addEvent(
			serial, 0, "late outcome", deadletter.Service.Name,
			fmt.Sprintf("%s, after the letter had moved on", m.Outcome),
		)
	}
	if m.Resend {
		if _, err := t.exec(`UPDATE attempts SET outcome = $3, detail = $4 WHERE letter = $1
			AND n = $2`, serial, n, string(m.Outcome), m.Detail); err != nil {
			return err
		}
		_, err := t.exec(`UPDATE letters SET epoch = 0, resend_at = $2 WHERE id = $1`, serial, m.DueAt.UnixMilli())
		return err
	}
	trigger, dueAt, result := deadletter.Stopped, any(nil), deadletter.ResultFailed
	switch m.Outcome {
	case deadletter.OutcomeConfirmed:
		trigger, dueAt, result = deadletter.Confirmed, millis(m.DueAt), deadletter.ResultConfirmed
		if m.WaitsIn != "" {
			trigger = deadletter.WaitBegun
			if err := t.storeMarks(); err != nil { // the letters before this one are in the same line
				return err
			}
			due, err := t.linedUp(r, m)
			if err != nil {
				return err
			}
			dueAt = due
		}
		r.attempts++
		r.nacks = 0
	case deadletter.OutcomeNacked:
		trigger, dueAt = deadletter.Nacked, millis(m.DueAt)
		if !m.Stays { // the queue itself rejected the letter
			r.nacks++
		}
	case deadletter.OutcomeReturned:
		result = deadletter.ResultReturned
	case deadletter.OutcomeInDoubt:
		result = deadletter.ResultInDoubt
	case deadletter.OutcomeUnsent:
		// the letter was never sent, so nothing is in doubt, and the next attempt uses the same
		// token
		trigger, dueAt = deadletter.Nacked, millis(m.DueAt)
	}
	if m.Stays {
		trigger, dueAt = deadletter.Nacked, millis(m.DueAt)
	}
	to, _ := r.state.On(trigger)
	why, keep, heldFrom, stays := "", any(nil), "", m.WaitsIn != "" || m.Stays
	switch {
	case to == deadletter.StateHeld:
		why, heldFrom = m.Detail, string(deadletter.StateScheduled)
	case to == deadletter.StateScheduled && operation.Valid:
		// The operation keeps the letter, because the queue rejects the letter only for now and dlo
		// will send it again. If the operation was cancelled, or is cancelled later, the letter
		// returns to its earlier state instead.
		stays, heldFrom = true, string(r.heldFrom)
		if keep, result = operation.Int64, deadletter.ResultReleased; !p.running {
			keep, result, to, dueAt = nil, deadletter.ResultCancelled, p.was, p.wasDue
		}
	}
	if to == deadletter.StateScheduled && dueAt == nil {
		dueAt = t.now
	}
	t.changeRecord(r, func() { r.state = to })
	closed := any(t.now)
	if m.Outcome == deadletter.OutcomeInDoubt {
		closed = nil // the letter may still come back after this outcome
		if err := t.revertDoubt(serial, n, operation); err != nil {
			return err
		}
	}
	t.marked.attempts = append(
		t.marked.attempts, serial, n, string(m.Outcome), m.Detail, closed, m.Depth, m.WaitsIn,
	)
	t.marked.letters = append(
		t.marked.letters, serial, to, dueAt, r.attempts, r.nacks, keep, stays, why, heldFrom, m.WaitsIn,
	)
	if p.result != "" && p.result != result {
		t.countResult(deadletter.OperationID(operation.Int64), p.share, p.result, result)
		t.marked.results = append(t.marked.results, operation, serial, string(result), why)
	}
	// a held letter needs people, like a dead letter; if an operation sent the letter, people see
	// it in the operation
	if to == deadletter.StateHeld && !operation.Valid && r.group > 0 {
		if err := t.recordDeaths(r.group, []deadletter.GroupDeath{
			{At: time.UnixMilli(t.now), Severity: deadletter.Severity(r.severity), Channels: m.Channels},
		}); err != nil {
			return err
		}
	}
	return t.writeNotice(m.Notice, serial)
}

// storeMarks stores the outcomes that a transaction has recorded. Until then, its queries find the
// letters as they were.
func (t *tx) storeMarks() error {
	m := t.marked
	t.marked = sendings{}
	if err := t.many(`WITH m (letter, n, outcome, detail, closed_at, depth, waits_in) AS (VALUES rows)
		UPDATE attempts SET outcome = m.outcome, detail = m.detail, closed_at = m.closed_at, depth = m.depth,
		waits_in = m.waits_in FROM m WHERE attempts.letter = m.letter AND attempts.n = m.n`, 7, m.attempts); err != nil {
		return err
	}
	if err := t.many(`WITH m (operation, letter, result, reason) AS (VALUES rows) UPDATE operation_letters
		SET result = m.result, reason = m.reason FROM m WHERE operation_letters.operation = m.operation
		AND operation_letters.letter = m.letter`, 4, m.results); err != nil {
		return err
	}
	return t.many(`WITH m (letter, state, due_at, attempts, nacks, operation, stays, why, held_from, waits_in) AS
		(VALUES rows) UPDATE letters SET state = m.state, due_at = m.due_at, changed_at = ?, attempts = m.attempts,
		nacks = m.nacks, operation = m.operation, why = CASE WHEN m.stays THEN letters.why ELSE m.why END,
		held_from = m.held_from, epoch = NULL, resend_at = NULL, waits_in = nullif(m.waits_in, '')
		FROM m WHERE id = m.letter`, 10, m.letters, t.now)
}

// When a letter in doubt is claimed again, dlo counts one more send, and the operation of the
// letter may count it as sent twice. revertDoubt reverts these counts. It is called if the letter
// is held instead of being sent once more.
func (t *tx) revertDoubt(serial int64, n int, operation sql.NullInt64) error {
	var sends int
	if err := t.row(`UPDATE attempts SET sends = max(1, sends - 1) WHERE letter = $1 AND n = $2
		RETURNING sends`, []any{serial, n}, &sends); err != nil || sends > 1 || !operation.Valid {
		return err
	}
	_, err := t.exec(`UPDATE operation_letters SET twice = 0 WHERE operation = $1
		AND letter = $2`, operation.Int64, serial)
	return err
}
