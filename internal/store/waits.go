package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// linedUp returns the time at which a letter leaves its wait queue, in Unix milliseconds. In the
// queue dlo.wait.ttl, each message has its own expiration. A letter cannot leave this queue before
// the letters in front of it.
func (t *tx) linedUp(r *record, m *deadletter.Mark) (int64, error) {
	due := m.DueAt.UnixMilli()
	if m.WaitsIn != deadletter.WaitTTL {
		return due, nil
	}
	at := r.origin
	if r.target.Valid {
		at = r.target.Int64
	}
	var front int64
	err := t.row(`SELECT due_at FROM letters INDEXED BY letters_lined_up WHERE state = 'scheduled'
		AND waits_in = 'dlo.wait.ttl' AND due_at > $2
		AND coalesce(target, origin) IN (SELECT id FROM origins WHERE (broker, vhost) = (SELECT broker, vhost
		FROM origins WHERE id = $1)) ORDER BY due_at DESC LIMIT 1`, []any{at, due}, &front)
	if errors.Is(err, sql.ErrNoRows) {
		return due, nil
	}
	return max(due, front), err
}

// Waited returns up to n letters of a broker that were in a wait queue, and whose wait is over now.
func (s *Store) Waited(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Waited, error) {
	rows, err := s.ask(ctx, `SELECT l.id, l.random, l.rule, a.queue, l.waits_in, coalesce(a.closed_at, a.at)
		FROM letters l INDEXED BY letters_waiting JOIN attempts a ON a.letter = l.id AND a.n = l.tries
		WHERE l.state = 'scheduled' AND l.waits_in IS NOT NULL AND l.due_at <= $1 AND coalesce(l.target, l.origin) IN
		(SELECT id FROM origins WHERE broker = $2) ORDER BY l.due_at LIMIT $3`,
		now.UnixMilli(), broker, n)
	if err != nil {
		return nil, err
	}
	var list []deadletter.Waited
	err = scan(rows, func() error {
		var w deadletter.Waited
		var serial, random, since int64
		err := rows.Scan(&serial, &random, &w.Rule, &w.Queue, &w.In, &since)
		w.Letter, w.Since = deadletter.NewID(serial, uint64(random)), time.UnixMilli(since)
		list = append(list, w)
		return err
	})
	return list, err
}

// RecordWaitEnds records in one transaction what happened to letters whose time in a wait queue is
// over. These letters are then requeued and watched. A letter that is known to be lost is held.
// RecordWaitEnds skips letters that came back in the meantime.
func (s *Store) RecordWaitEnds(ctx context.Context, list []deadletter.WaitEnd) error {
	err := s.tx(ctx, dispatch, func(t *tx) error {
		for i := range list {
			if err := t.recordWaitEnd(&list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record %d letters that left the broker's wait queues: %w", len(list), err)
	}
	return nil
}

// recordWaitEnd records that a letter has left its wait queue. It starts the watch over the letter,
// or holds the letter.
func (t *tx) recordWaitEnd(l *deadletter.WaitEnd) error {
	serial, _, _ := l.Letter.Split()
	r, err := t.record(serial)
	if err != nil {
		return err
	}
	if !r.waitsIn.Valid || r.state != deadletter.StateScheduled {
		return nil
	}
	trigger, due, kind := deadletter.WaitOver, any(millis(l.DueAt)), "arrived"
	detail, why, heldFrom, unverified := "its time in "+r.waitsIn.String+" is over", "", "", 0
	switch {
	case l.Lost != "":
		trigger, due, kind, detail, why, heldFrom = deadletter.WaitLost, nil, "held", l.Lost, l.Lost, string(
			deadletter.StateScheduled,
		)
	case l.Doubt != "":
		unverified = 1
		detail += "; unverified: " + l.Doubt
	}
	to, _ := r.state.On(trigger)
	t.changeRecord(r, func() { r.state = to })
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3,
		changed_at = $4, waits_in = NULL, unverified = $5, why = $6, held_from = $7 WHERE id = $1`,
		serial, to, due, t.now, unverified, why, heldFrom); err != nil {
		return err
	}
	if l.Lost != "" {
		outcome := deadletter.OutcomeReturned
		if l.InDoubt {
			outcome = deadletter.OutcomeInDoubt // the letter may still come back after this outcome
		}
		if _, err := t.exec(`UPDATE attempts SET outcome = $3, detail = $4 WHERE letter = $1
			AND n = $2`, serial, r.publishes, string(outcome), l.Lost); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE letters SET attempts = max(0, attempts - 1) WHERE id = $1`, serial); err != nil {
			return err
		}
		if r.group > 0 {
			if err := t.recordDeaths(r.group, []deadletter.GroupDeath{
				{At: time.UnixMilli(t.now), Severity: deadletter.Severity(r.severity), Channels: l.Channels},
			}); err != nil {
				return err
			}
		}
	} else if _, err := t.exec(
		`UPDATE attempts SET depth = $3 WHERE letter = $1 AND n = $2`, serial, r.publishes, l.Depth,
	); err != nil {
		return err
	}
	return t.addEvent(serial, 0, kind, deadletter.Service.Name, detail)
}
