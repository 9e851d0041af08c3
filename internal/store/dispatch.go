package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ClaimDue takes up to n scheduled letters of a broker that are due and commits the intent to publish them: state publishing, an attempt with its token, a lease. allow
// says how many automatic retries may leave now to a queue; letters that an operation released are not asked for.
func (s *Store) ClaimDue(ctx context.Context, broker string, now time.Time, n int, lease time.Duration, allow func(o deadletter.Origin) int) ([]deadletter.Due, error) {
	origins, released, err := s.due(ctx, broker, now)
	if err != nil || len(origins) == 0 && !released {
		return nil, err
	}
	var claimed []deadletter.Due
	err = s.tx(ctx, dispatch, func(t *tx) error {
		var serials []int64
		add := func(limit int, query string, args ...any) error {
			if limit <= 0 {
				return nil
			}
			rows, err := t.query(query, append(args, limit)...)
			if err != nil {
				return err
			}
			return scan(rows, func() error {
				var serial int64
				err := rows.Scan(&serial)
				serials = append(serials, serial)
				return err
			})
		}
		for _, id := range origins {
			p := t.s.names.origin(id)
			limit := min(n-len(serials), allow(deadletter.Origin{Broker: p.Broker, VHost: p.VHost, Queue: p.Queue}))
			if err := add(limit, `SELECT id FROM letters WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL AND origin = $1 AND due_at <= $2
				ORDER BY due_at LIMIT $3`, id, now.UnixMilli()); err != nil {
				return err
			}
		}
		if err := add(n-len(serials), `SELECT id FROM letters WHERE state = 'scheduled' AND operation IS NOT NULL AND waits_in IS NULL AND due_at <= $1
			AND origin IN (SELECT id FROM origins WHERE broker = $2) ORDER BY due_at, id LIMIT $3`, now.UnixMilli(), broker); err != nil {
			return err
		}
		for _, serial := range serials {
			d, err := t.claim(serial, now.Add(lease))
			if err != nil {
				return err
			}
			claimed = append(claimed, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim due letters: %w", err)
	}
	for i := range claimed {
		if claimed[i].Letter, err = s.dueLetter(ctx, claimed[i].Attempt.Letter); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// due returns the origins that have automatic retries due, and whether any letter released by an operation is.
func (s *Store) due(ctx context.Context, broker string, now time.Time) (origins []int64, released bool, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT c.origin FROM counters c WHERE c.state = 'scheduled' AND EXISTS (SELECT 1 FROM letters l INDEXED BY letters_due
		WHERE l.state = 'scheduled' AND l.operation IS NULL AND l.waits_in IS NULL AND l.origin = c.origin AND l.due_at <= $1)`, now.UnixMilli())
	if err != nil {
		return nil, false, err
	}
	if err := scan(rows, func() error {
		var id int64
		err := rows.Scan(&id)
		if s.names.origin(id).Broker == broker {
			origins = append(origins, id)
		}
		return err
	}); err != nil {
		return nil, false, err
	}
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM letters INDEXED BY letters_released WHERE state = 'scheduled' AND operation IS NOT NULL AND waits_in IS NULL
		AND due_at <= $1 AND origin IN (SELECT id FROM origins WHERE broker = $2))`, now.UnixMilli(), broker).Scan(&released)
	return origins, released, err
}

func (t *tx) claim(serial int64, leaseUntil time.Time) (deadletter.Due, error) {
	r, err := t.record(serial)
	if err != nil {
		return deadletter.Due{}, err
	}
	to, ok := r.state.On(deadletter.Claimed)
	if !ok {
		return deadletter.Due{}, fmt.Errorf("letter %d: %w: it is %s", serial, deadletter.ErrConflict, r.state)
	}
	var random int64
	if err := t.row(`SELECT random FROM letters WHERE id = $1`, []any{serial}, &random); err != nil {
		return deadletter.Due{}, err
	}
	a := deadletter.Attempt{Letter: deadletter.NewID(serial, uint64(random)), Number: r.attempts + 1, Token: deadletter.NewToken(), Sends: 1,
		Queue: t.s.names.origin(r.origin).Queue, Operation: deadletter.OperationID(r.operation.Int64), Outcome: deadletter.OutcomeOpen, At: time.UnixMilli(t.now)}
	var attempt int64
	if err := t.row(`INSERT INTO attempts (letter, number, token, queue, operation, outcome, at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
		[]any{serial, a.Number, a.Token.Bytes(), a.Queue, positive(int64(a.Operation)), string(a.Outcome), t.now}, &attempt); err != nil {
		return deadletter.Due{}, err
	}
	t.moved(r, func() { r.state = to })
	_, err = t.exec(`UPDATE letters SET state = $2, attempt = $3, epoch = $4, lease_until = $5, changed_at = $6, due_at = NULL WHERE id = $1`,
		serial, string(to), attempt, t.s.epoch, leaseUntil.UnixMilli(), t.now)
	return deadletter.Due{Attempt: a}, err
}

// ClaimDoubtful takes up to n letters of a broker whose attempt an earlier process left unfinished, or that this one released for another try (Mark.Resend), with the
// same attempt and token. They may have been sent, but for those with the outcome unsent.
func (s *Store) ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int, lease time.Duration) ([]deadletter.Due, error) {
	var found bool
	if err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM letters WHERE state = 'publishing' AND (epoch <> $1 OR lease_until <= $2))`,
		s.epoch, now.UnixMilli()).Scan(&found); err != nil || !found {
		return nil, err
	}
	var claimed []deadletter.Due
	err := s.tx(ctx, dispatch, func(t *tx) error {
		rows, err := t.query(`SELECT l.id, l.random, a.id, a.number, a.token, a.queue, a.operation, a.sends, a.at, a.outcome FROM letters l JOIN attempts a ON a.id = l.attempt
			WHERE l.state = 'publishing' AND (l.epoch <> $1 OR l.lease_until <= $2)
			AND l.origin IN (SELECT id FROM origins WHERE broker = $3) ORDER BY l.id LIMIT $4`, t.s.epoch, now.UnixMilli(), broker, n)
		if err != nil {
			return err
		}
		var attempts []int64
		err = scan(rows, func() error {
			var serial, random, attempt, at int64
			var token []byte
			var operation sql.NullInt64
			var a deadletter.Attempt
			if err := rows.Scan(&serial, &random, &attempt, &a.Number, &token, &a.Queue, &operation, &a.Sends, &at, &a.Outcome); err != nil {
				return err
			}
			a.Letter, a.Token, a.Operation, a.At = deadletter.NewID(serial, uint64(random)), deadletter.TokenFromBytes(token), deadletter.OperationID(operation.Int64), time.UnixMilli(at)
			if a.Outcome != deadletter.OutcomeUnsent {
				a.Outcome = deadletter.OutcomeInDoubt
				a.Sends++
			}
			attempts = append(attempts, attempt)
			claimed = append(claimed, deadletter.Due{Attempt: a})
			return nil
		})
		if err != nil {
			return err
		}
		for i, attempt := range attempts {
			serial, _, _ := claimed[i].Attempt.Letter.Split()
			unsent := claimed[i].Attempt.Outcome == deadletter.OutcomeUnsent
			outcome := deadletter.OutcomeInDoubt
			if unsent {
				outcome = deadletter.OutcomeOpen
			}
			if _, err := t.exec(`UPDATE attempts SET outcome = $2, sends = $3 WHERE id = $1`, attempt, string(outcome), claimed[i].Attempt.Sends); err != nil {
				return err
			}
			if _, err := t.exec(`UPDATE letters SET epoch = $2, lease_until = $3 WHERE id = $1`, serial, t.s.epoch, now.Add(lease).UnixMilli()); err != nil {
				return err
			}
			if unsent {
				continue
			}
			if err := t.event(serial, 0, "in doubt", deadletter.Service.Name, fmt.Sprintf("attempt %d was sent, or was about to be, when its answer was lost", claimed[i].Attempt.Number)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim doubtful letters: %w", err)
	}
	for i := range claimed {
		if claimed[i].Letter, err = s.dueLetter(ctx, claimed[i].Attempt.Letter); err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

// dueLetter reads what the dispatcher needs of a claimed letter.
func (s *Store) dueLetter(ctx context.Context, id deadletter.ID) (deadletter.Letter, error) {
	serial, random, _ := id.Split()
	return s.letter(ctx, serial, random, true)
}

// Mark records what became of attempts, in one commit. An attempt that came back before its confirm was recorded gets a note, and its letter stays as it is.
func (s *Store) Mark(ctx context.Context, marks []deadletter.Mark) error {
	err := s.tx(ctx, dispatch, func(t *tx) error {
		for i := range marks {
			if err := t.mark(&marks[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("mark %d attempts: %w", len(marks), err)
	}
	return nil
}

func (t *tx) mark(m *deadletter.Mark) error {
	serial, _, _ := m.Letter.Split()
	var attempt, epoch int64
	var outcome deadletter.OutcomeKind
	var operation sql.NullInt64
	if err := t.row(`SELECT a.id, a.outcome, a.operation, coalesce(l.epoch, 0) FROM attempts a JOIN letters l ON l.id = a.letter WHERE a.token = $1 AND a.letter = $2`,
		[]any{m.Token.Bytes(), serial}, &attempt, &outcome, &operation, &epoch); err != nil {
		return fmt.Errorf("letter %s: %w", m.Letter, err)
	}
	r, err := t.record(serial)
	if err != nil {
		return err
	}
	if outcome == deadletter.OutcomeCameBack {
		if m.Outcome != deadletter.OutcomeConfirmed {
			return nil
		}
		return t.event(serial, 0, "confirmed late", deadletter.Service.Name, "the broker confirmed after the letter had come back")
	}
	if r.state != deadletter.StatePublishing || r.attempt.Int64 != attempt || epoch != t.s.epoch {
		return t.event(serial, 0, "late outcome", deadletter.Service.Name, fmt.Sprintf("%s, after the letter had moved on", m.Outcome))
	}
	trigger, dueAt := deadletter.Stopped, any(nil)
	detail := m.Detail
	result, kind := deadletter.ResultFailed, "held"
	switch {
	case m.Resend:
		if _, err := t.exec(`UPDATE attempts SET outcome = $2, detail = $3 WHERE id = $1`, attempt, string(m.Outcome), m.Detail); err != nil {
			return err
		}
		_, err := t.exec(`UPDATE letters SET lease_until = $2 WHERE id = $1`, serial, millisOrZero(m.DueAt))
		return err
	case m.Outcome == deadletter.OutcomeConfirmed:
		trigger, dueAt, result, kind = deadletter.Confirmed, millis(m.DueAt), deadletter.ResultConfirmed, "requeued"
		r.attempts++
		r.nacks = 0
		detail = fmt.Sprintf("attempt %d to the tail of %s, confirmed", r.attempts, deadletter.Visible(t.s.names.origin(r.origin).Queue))
		if m.Detail != "" {
			detail += "; " + m.Detail
		}
	case m.Outcome == deadletter.OutcomeNacked:
		trigger, dueAt, result, kind = deadletter.Nacked, millis(m.DueAt), deadletter.ResultFailed, "nacked"
		r.nacks++
	}
	to, _ := r.state.On(trigger)
	why, keep := "", any(nil)
	switch {
	case to == deadletter.StateHeld:
		why = detail
	case to == deadletter.StateScheduled && operation.Valid:
		// It stays released: a running operation is not done with a letter that its queue refuses for now. A cancelled one lets go of it.
		var running bool
		var was deadletter.State
		var wasDue sql.NullInt64
		if err := t.row(`SELECT o.state = 'running', ol.was, ol.was_due FROM operations o JOIN operation_letters ol ON ol.operation = o.id WHERE o.id = $1 AND ol.letter = $2`,
			[]any{operation.Int64, serial}, &running, &was, &wasDue); err != nil {
			return err
		}
		if keep, result = operation.Int64, deadletter.ResultReleased; !running {
			keep, result, to, dueAt = nil, deadletter.ResultCancelled, was, wasDue
		}
	}
	t.moved(r, func() { r.state = to })
	closed := any(t.now)
	if m.Outcome == deadletter.OutcomeInDoubt {
		closed = nil // it may still come back
	}
	if _, err := t.exec(`UPDATE attempts SET outcome = $2, detail = $3, closed_at = $4, depth = $5 WHERE id = $1`, attempt, string(m.Outcome), m.Detail, closed, m.Depth); err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3, changed_at = $4, attempts = $5, nacks = $6, operation = $7, why = $8, epoch = NULL, lease_until = NULL WHERE id = $1`,
		serial, string(to), dueAt, t.now, r.attempts, r.nacks, keep, why); err != nil {
		return err
	}
	if operation.Valid {
		if err := t.result(deadletter.OperationID(operation.Int64), serial, result, why); err != nil {
			return err
		}
	}
	if err := t.event(serial, 0, kind, deadletter.Service.Name, detail); err != nil {
		return err
	}
	return t.notice(m.Notice, serial)
}

func millisOrZero(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// Watched returns the origins of a broker that have requeued letters whose watch window is over at now.
func (s *Store) Watched(ctx context.Context, broker string, now time.Time) ([]deadletter.Origin, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT origin FROM (SELECT origin FROM letters INDEXED BY letters_watched WHERE state = 'requeued' AND due_at <= $1 ORDER BY due_at LIMIT 10000)`, now.UnixMilli())
	if err != nil {
		return nil, err
	}
	var origins []deadletter.Origin
	err = scan(rows, func() error {
		var id int64
		err := rows.Scan(&id)
		if p := s.names.origin(id); p.Broker == broker {
			origins = append(origins, deadletter.Origin{Broker: p.Broker, VHost: p.VHost, Queue: p.Queue})
		}
		return err
	})
	return origins, err
}

// SettleQuiet settles up to n requeued letters of an origin whose watch window is over: they did not come back. Where the queue is known to be deeper now than when a letter
// was sent, that letter stays. Letters are unverified where nobody could see whether the queue is drained. It returns how many it settled.
func (s *Store) SettleQuiet(ctx context.Context, o deadletter.Origin, now time.Time, n int, facts deadletter.QueueFacts) (int, error) {
	done := 0
	err := s.tx(ctx, classify, func(t *tx) error {
		done = 0
		origin, err := t.originID(o)
		if err != nil {
			return err
		}
		records, err := t.records(`SELECT `+recordColumns+` FROM letters WHERE state = 'requeued' AND origin = $1 AND due_at <= $2
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = letters.attempt AND a.depth < $3) LIMIT $4`, origin, now.UnixMilli(), facts.Ready, n)
		if err != nil {
			return err
		}
		flag, detail := 0, "quiet: it did not come back"
		if !facts.Exists || facts.Consumers < 0 || facts.Ready < 0 {
			flag, detail = 1, "quiet: it did not come back; unverified, as nobody could see whether the queue is drained"
		}
		for _, r := range records {
			to, _ := r.state.On(deadletter.Quiet)
			t.moved(r, func() { r.state = to })
			if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL, unverified = $3, changed_at = $4 WHERE id = $1`, r.id, string(to), flag, t.now); err != nil {
				return err
			}
			if err := t.event(r.id, 0, string(to), deadletter.Service.Name, detail); err != nil {
				return err
			}
			done++
		}
		return nil
	})
	return done, err
}

// WatchOn gives the requeued letters of an origin that are at the end of their watch until a later time: their queue is known not to be drained.
func (s *Store) WatchOn(ctx context.Context, o deadletter.Origin, now, until time.Time) error {
	return s.tx(ctx, classify, func(t *tx) error {
		origin, err := t.originID(o)
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE letters SET due_at = $3 WHERE state = 'requeued' AND origin = $1 AND due_at <= $2`, origin, now.UnixMilli(), until.UnixMilli())
		return err
	})
}

// records reads letters by a query over recordColumns.
func (t *tx) records(query string, args ...any) ([]*record, error) {
	rows, err := t.query(query, args...)
	if err != nil {
		return nil, err
	}
	var records []*record
	err = scan(rows, func() error {
		var r record
		err := rows.Scan(r.dest()...)
		records = append(records, &r)
		return err
	})
	return records, err
}
