package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// toldSoonest is the minimum time, in milliseconds, from the due time of a retry until its letter
// becomes overdue.
const toldSoonest = 60_000

// toldAhead is a short time. A waiting letter becomes overdue this long before people are to be
// notified about it. The notice needs this time, because the notice first waits until its group has
// settled, and its channel then takes a moment.
const toldAhead = settling + 5*time.Second

// told says when people are notified about a letter that waits, and whether they already were.
type told struct {
	by      any   // Unix milliseconds; nil if no rule makes the letter wait
	rest    int64 // milliseconds between the due time of the retry and the notification of people
	already bool  // people were already notified while the letter waited for the present retry
}

// timeUntilTold returns the time between the due time of a retry and the notification of people, in
// milliseconds. If the parameter "toldBy" is zero, it returns 0. Otherwise it returns at least
// toldSoonest.
func timeUntilTold(toldBy, due time.Time) int64 {
	if toldBy.IsZero() {
		return 0
	}
	return max(toldSoonest, toldBy.Sub(due).Milliseconds())
}

// whenTold returns when people are to be notified about a letter that gets a verdict and waits for
// a retry. If the letter came back from an earlier retry, the new verdict must not postpone the
// notification without limit. The latest time is therefore the time in the previous verdict, plus
// the time during which a worker had the letter. This limit does not apply to a letter that people
// sent.
func (t *tx) whenTold(c *deadletter.Classified, r *record, to deadletter.State, group int64) (told, error) {
	var sent, back sql.NullInt64
	if r.toldBy.Valid && r.publishes > 0 {
		err := t.row(`SELECT max(at, coalesce(wait_until, 0)), back_at FROM attempts WHERE letter = $1 AND n = $2
			AND operation IS NULL`, []any{r.id, r.publishes}, &sent, &back)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return told{}, err
		}
	}
	earlier := r.toldBy.Int64 + max(0, back.Int64-sent.Int64)
	told := told{already: r.overdue && back.Valid && group == r.group}
	if to != deadletter.StateScheduled || c.ToldBy.IsZero() {
		return told, nil
	}
	told.by, told.rest = c.ToldBy.UnixMilli(), timeUntilTold(c.ToldBy, c.DueAt)
	if back.Valid && earlier < c.ToldBy.UnixMilli() {
		told.by = earlier
	}
	return told, nil
}

// Overdue marks up to n letters of a broker as overdue. A letter is overdue if it still waits
// although its retries should have ended. Its group then counts it as a letter that needs people. A
// letter of a paused queue or group is not overdue. After a pause or an outage of the broker, a
// letter becomes overdue only when it has been free to leave for as long as its retries would have
// taken. The parameter "since" is the time at which the broker began to accept messages. The
// function "channels" returns the channels of a rule. Overdue returns the number of letters that it
// processed.
func (s *Store) Overdue(
	ctx context.Context, broker string, since time.Time, channels func(rule string) []string, n int,
) (int, error) {
	late, err := s.lateLetters(ctx, broker, since, n)
	if err != nil {
		return 0, fmt.Errorf("overdue letters: %w", err)
	}
	if len(late) == 0 {
		return 0, nil
	}
	err = s.tx(ctx, bulk, func(t *tx) error {
		groups := map[int64][]deadletter.GroupDeath{}
		for _, id := range late {
			r, err := t.record(id)
			if err != nil {
				return err
			}
			if r.state != deadletter.StateScheduled || r.operation.Valid || r.overdue ||
				r.toldBy.Int64 > t.now+toldAhead.Milliseconds() {
				continue
			}
			t.changeRecord(r, func() { r.overdue = true })
			if _, err := t.exec(`UPDATE letters SET overdue = 1 WHERE id = $1`, id); err != nil {
				return err
			}
			detail := "its retries should have been over by " +
				time.UnixMilli(r.toldBy.Int64).UTC().Format(time.RFC3339)
			if err := t.addEvent(id, 0, "overdue", deadletter.Service.Name, detail); err != nil {
				return err
			}
			if r.group > 0 {
				groups[r.group] = append(groups[r.group], deadletter.GroupDeath{
					At:       time.UnixMilli(r.receivedAt),
					Severity: deadletter.Severity(r.severity),
					Channels: channels(r.rule),
				})
			}
		}
		for group, deaths := range groups {
			if err := t.recordDeaths(group, deaths); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("overdue letters: %w", err)
	}
	return len(late), nil
}

// lateLetters returns the letters that must be marked as overdue.
func (s *Store) lateLetters(ctx context.Context, broker string, since time.Time, n int) ([]int64, error) {
	now := s.now().Add(toldAhead).UnixMilli()
	return values[int64](s.ask(ctx, `SELECT l.id FROM (SELECT DISTINCT c.origin FROM counters c
		JOIN origins o ON o.id = c.origin WHERE c.state = 'scheduled' AND o.broker = $1) c
		CROSS JOIN letters l INDEXED BY letters_told ON l.origin = c.origin
		WHERE l.state = 'scheduled' AND l.operation IS NULL AND l.overdue = 0 AND l.told_by <= $2 AND l.told_rest <= $3
		AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.origin = l.origin AND p.grp = 0) AND `+notPaused+`
		AND NOT EXISTS (SELECT 1 FROM resumed r WHERE r.origin = l.origin AND r.grp IN (0, l.grp)
		AND r.at + l.told_rest > $2) LIMIT $4`,
		broker, now, now-since.UnixMilli(), n))
}

// GiveUp makes up to n overdue letters of a broker dead. It chooses letters that a breaker holds
// back and that have been overdue for longer than the given duration. It returns their number.
// Their groups have already counted these letters as overdue.
func (s *Store) GiveUp(ctx context.Context, broker string, after time.Duration, n int) (int, error) {
	const held = `FROM breakers b JOIN origins o ON o.id = b.origin CROSS JOIN letters l
		INDEXED BY letters_overdue ON l.origin = b.origin
		WHERE o.broker = $1 AND l.state = 'scheduled' AND l.overdue = 1 AND l.operation IS NULL AND l.waits_in IS NULL
		AND l.told_by <= $2 AND (b.grp = 0 OR b.grp = l.grp)`
	before := s.now().Add(-after).UnixMilli()
	var some bool
	if err := s.askRow(ctx, `SELECT EXISTS (SELECT 1 `+held+`)`, []any{broker, before}, &some); err != nil || !some {
		return 0, err
	}
	given := 0
	err := s.tx(ctx, bulk, func(t *tx) error {
		records, err := t.records(`SELECT `+recordColumns+` `+held+` GROUP BY l.id LIMIT $3`, broker, before, n)
		if err != nil {
			return err
		}
		why := fmt.Sprintf(
			"given up: its retries were held back for %s longer than they should have lasted, because almost all letters came back",
			after,
		)
		for _, r := range records {
			to, ok := r.state.On(deadletter.RuleDead.OfWaiting())
			if !ok {
				continue
			}
			t.changeRecord(r, func() { r.state, r.overdue = to, false })
			if _, err := t.exec(`UPDATE letters SET state = $2,
				due_at = NULL, changed_at = $3, why = $4, waiter = '',
				waits_in = NULL, told_by = NULL, told_rest = 0, overdue = 0 WHERE id = $1`,
				r.id, to, t.now, why); err != nil {
				return err
			}
			if err := t.addEvent(r.id, 0, string(to), deadletter.Service.Name, why); err != nil {
				return err
			}
		}
		given = len(records)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("give letters up: %w", err)
	}
	return given, nil
}
