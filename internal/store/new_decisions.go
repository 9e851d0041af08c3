package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// maxDecisions is the maximum number of letters that are decided again in one transaction.
const maxDecisions = 200

// Waiting returns letters with their bodies: the next letters that match q and wait for their
// retry. The letters are in the order of their ids. The first one follows the letter with the id
// "after", or is the first of all letters if "after" is "". Waiting returns at most 200 letters and
// 32 MiB of bodies, but a single larger body is returned alone. It ignores letters whose serial is
// "until" or higher, so that a flood of new letters cannot make the caller's loop endless.
func (s *Store) Waiting(
	ctx context.Context, q query.Query, after deadletter.ID, until int64,
) ([]deadletter.Waiting, error) {
	from, _, _ := after.Split()
	waiting := query.Query{}.With(query.State, string(deadletter.StateScheduled))
	waiting.Terms = append(waiting.Terms, q.Terms...)
	p, err := s.plan(ctx, waiting)
	if err != nil {
		return nil, err
	}
	p.to = min(p.to, until)
	p.empty = p.empty || p.from >= p.to
	var list []deadletter.Waiting
	err = s.snapshot(ctx, func(db *sql.Conn) error {
		list, err = s.waiting(ctx, db, p, from)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read waiting letters: %w", err)
	}
	return list, nil
}

func (s *Store) waiting(ctx context.Context, db *sql.Conn, p *plan, from int64) ([]deadletter.Waiting, error) {
	serials, err := s.newestSerials(ctx, db, p, from, true, maxDecisions)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT l.id, l.size, l.fixed, coalesce((SELECT max(a.back_at) FROM attempts a
		WHERE a.letter = l.id), l.received_at)
		FROM letters l WHERE l.id `+bySerial(len(serials)), anys(serials)...)
	if err != nil {
		return nil, err
	}
	var list []deadletter.Waiting
	bytes := 0
	serials = serials[:0]
	err = scan(rows, func() error {
		var w deadletter.Waiting
		var serial int64
		var size int
		var since sql.NullInt64
		if err := rows.Scan(&serial, &size, &w.Chosen, &since); err != nil {
			return err
		}
		if bytes += size; bytes > maxRead && len(list) > 0 {
			return nil
		}
		w.Since = timeOf(since)
		list, serials = append(list, w), append(serials, serial)
		return nil
	})
	if err != nil {
		return nil, err
	}
	letters, err := s.lettersOn(ctx, db, bySerial(len(serials)), anys(serials)...)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Letter = letters[i]
		if strings.HasPrefix(letters[i].Why, deadletter.VerbRetryNow.Past()+" by ") {
			list[i].Chosen = true
		}
	}
	return list, nil
}

// RecordDecisions records new decisions about waiting letters in one transaction. The result says
// for each decision, in the order of the list, whether it was recorded. A decision is not recorded
// if its letter has changed since the letter was read. The history of each letter names the person
// who asked for the decision.
func (s *Store) RecordDecisions(ctx context.Context, by string, list []deadletter.NewDecision) ([]bool, error) {
	var recorded []bool
	err := s.tx(ctx, bulk, func(t *tx) error {
		recorded = make([]bool, len(list))
		for i := range list {
			var err error
			if recorded[i], err = t.recordDecision(by, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decide %d letters again: %w", len(list), err)
	}
	return recorded, nil
}

func (t *tx) recordDecision(by string, a *deadletter.NewDecision) (bool, error) {
	serial, _, _ := a.Letter.Split()
	r, err := t.record(serial)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	to, ok := r.state.On(a.Outcome.OfWaiting())
	if !ok || r.state != deadletter.StateScheduled || r.operation.Valid || r.waitsInBroker(t.now) ||
		r.changedAt != a.ChangedAt.UnixMilli() || !timeOf(
		r.dueAt,
	).Equal(
		a.WasDueAt,
	) || r.rule != a.WasRule {
		return false, nil
	}
	louder := r.severity != string(a.Severity)
	t.changeRecord(r, func() { r.state, r.severity, r.overdue = to, string(a.Severity), false })
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3,
		changed_at = $4, rule = $5, severity = $6, why = $7, waiter = '', waits_in = NULL,
		told_by = $8, told_rest = $9, overdue = 0 WHERE id = $1`,
		serial, to, millis(a.DueAt), t.now, a.Rule, string(a.Severity), a.Why, millis(a.ToldBy),
		timeUntilTold(a.ToldBy, a.DueAt)); err != nil {
		return false, err
	}
	if louder { // the search index contains the severity
		if err := t.markUnindexed(serial); err != nil {
			return false, err
		}
	}
	if to == deadletter.StateDead && r.group > 0 {
		if err := t.recordDeaths(r.group, []deadletter.GroupDeath{
			{At: time.UnixMilli(t.now), Severity: a.Severity, Channels: a.Channels},
		}); err != nil {
			return false, err
		}
	}
	detail := a.Why
	if detail == "" {
		detail = "rule " + a.Rule
	}
	return true, t.addEvent(serial, 0, "decided again", by, detail)
}
