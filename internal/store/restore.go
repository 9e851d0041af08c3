package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// whyRestored is the reason that people see for a held letter if the store was restored from a
// copy.
const whyRestored = "the store was restored from a copy: it may have been sent since"

const (
	suspectRestored = 3    // value of the column letters.suspect that stands for DoubtRestored
	restoredAtATime = 1000 // maximum number of letters in one transaction
)

// restoring is a restore that is in progress.
type restoring struct {
	id     int64
	newest int64 // serial of the newest letter in the copy
}

// Restored records that the file is an older copy of a store. The parameter "noted" is the progress
// that was noted for this store. Letters that may have been sent since the copy was made are not
// sent again. Restored holds such a letter if dlo would send it automatically, and otherwise marks
// it. At the end, Restored raises the counters of the file's progress to those in "noted". If dlo
// dies before that, the next start detects the copy again and continues.
//
// A store that is opened was copied before. If another dlo has sent letters from a copy while this
// one was running, the parameter "whole" is true: then the copy may have all letters of the store.
func (s *Store) Restored(ctx context.Context, noted deadletter.Progress, whole bool) error {
	copied := s.opened
	if whole {
		copied = opened{s.Progress(), math.MaxInt64}
		copied.At = noted.At
	}
	return s.hold(ctx, noted, copied, max(0, noted.Received-copied.Received), deadletter.Service.Name)
}

// HoldCopy records that a person declared the file an older copy of the store. Letters that may
// have been sent since the copy was made are not sent again. Nobody knows in this case how many
// letters are missing.
func (s *Store) HoldCopy(ctx context.Context, by string) error {
	return s.hold(ctx, s.Progress(), s.opened, deadletter.MissingUnknown, by)
}

func (s *Store) hold(ctx context.Context, seen deadletter.Progress, copied opened, missing int64, by string) error {
	r, err := s.beginRestore(ctx, seen, copied, missing, by)
	if err == nil && r != nil {
		err = errors.Join(s.holdRestored(ctx, r), s.markRestored(ctx, r))
	}
	if err == nil {
		err = s.endRestore(ctx, seen, r)
	}
	if err != nil {
		return fmt.Errorf("hold what may have been sent since the copy: %w", err)
	}
	return nil
}

// beginRestore begins a restore: it records what is lost, and stops operations that send letters.
// After a restore is complete, dlo may read the store's progress on another broker. If that
// progress is from before the restore, beginRestore only adds it to the completed restore and
// returns nil.
func (s *Store) beginRestore(
	ctx context.Context, seen deadletter.Progress, copied opened, missing int64, by string,
) (*restoring, error) {
	r := &restoring{}
	err := s.tx(ctx, urgent, func(t *tx) error {
		var at int64
		var done bool
		err := t.row(`SELECT id, at, newest, done FROM restores ORDER BY id DESC
			LIMIT 1`, nil, &r.id, &at, &r.newest, &done)
		switch {
		case errors.Is(err, sql.ErrNoRows) || err == nil && done && seen.At.UnixMilli() > at:
			r.newest = min(copied.serial, t.s.serial)
			since := copied.At
			if seen.At.Before(since) { // the older store ran longer
				since = seen.At
			}
			return t.newRestore(r, deadletter.Restore{Since: since, Until: seen.At, Missing: missing}, by)
		case err != nil:
			return err
		}
		if done {
			r = nil
		}
		_, err = t.exec(`UPDATE restores SET until = max(until, $1), missing = max(missing, $2) WHERE id =
			(SELECT max(id) FROM restores)`,
			seen.At.UnixMilli(), missing)
		return err
	})
	return r, err
}

func (t *tx) newRestore(r *restoring, lost deadletter.Restore, by string) error {
	if err := t.row(`INSERT INTO restores (at, since, until, missing, newest) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
		[]any{t.now, lost.Since.UnixMilli(), lost.Until.UnixMilli(), lost.Missing, r.newest}, &r.id); err != nil {
		return err
	}
	if err := t.audit(deadletter.Once(
		deadletter.ActStoreRestored, by, "this store is a copy from an earlier time. "+lost.Lost(), deadletter.Target{
			Kind: deadletter.TargetStore,
		},
	)); err != nil {
		return err
	}
	if err := t.endOldAccess(); err != nil {
		return err
	}
	return t.stopSending(whyRestored)
}

// endOldAccess ends all sessions and withdraws the invitations that a restored copy of the store
// contains. It does this because somebody may have ended a session or withdrawn an invitation in
// the original after the copy was made. An invitation that was made after this process opened the
// copy stays.
func (t *tx) endOldAccess() error {
	_, err := t.exec(`DELETE FROM sessions`)
	if err == nil {
		_, err = t.exec(
			`DELETE FROM invitations WHERE expires_at <= $1`, t.s.opened.At.Add(deadletter.InvitationLasts).UnixMilli(),
		)
	}
	return err
}

// stopSending stops every operation that sends letters.
func (t *tx) stopSending(why string) error {
	stopped, err := values[int64](t.query(`UPDATE operations SET state = 'stopped', why = $1, phase_until = NULL
		WHERE action IN ('requeue', 'edit') AND state IN ('running', 'paused') AND phase NOT IN ('watching', 'over')
		RETURNING id`, why))
	if err != nil {
		return err
	}
	for _, id := range stopped {
		if err := t.recordSteering(
			deadletter.OperationID(id), deadletter.ActStopped, deadletter.Service.Name, why,
		); err != nil {
			return err
		}
	}
	return nil
}

// holdRestored holds the scheduled and the watched letters of a restored store. It also holds the
// letters that were being sent when the copy was made. It does not hold letters that this process
// is sending, because the mark of their broker has proved that they may be sent.
func (s *Store) holdRestored(ctx context.Context, r *restoring) error {
	for more := true; more; {
		err := s.tx(ctx, classify, func(t *tx) error {
			letters, err := t.records(`SELECT `+recordColumns+` FROM letters l
				WHERE l.state IN ('scheduled', 'publishing', 'requeued') AND l.id <= $1
				AND (l.state <> 'publishing' OR l.epoch IS NOT $2) LIMIT $3`, r.newest, s.epoch, restoredAtATime)
			more = len(letters) == restoredAtATime
			for _, l := range letters {
				if err == nil {
					err = t.holdRestored(l)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) holdRestored(r *record) error {
	to, ok := r.state.On(deadletter.FoundRestored)
	if !ok {
		return fmt.Errorf("letter %d: %w: it is %s", r.id, deadletter.ErrConflict, r.state)
	}
	switch {
	case r.state == deadletter.StateRequeued:
		if err := t.unwatch(r, deadletter.ResultUnverified, whyRestored); err != nil {
			return err
		}
	case r.operation.Valid:
		if err := t.recordResult(
			deadletter.OperationID(r.operation.Int64), r.id, deadletter.ResultSkipped, whyRestored,
		); err != nil {
			return err
		}
	}
	if r.state == deadletter.StatePublishing {
		if _, err := t.exec(`UPDATE attempts SET outcome = 'in doubt', detail = $3 WHERE letter = $1
			AND n = $2`, r.id, r.publishes, whyRestored); err != nil {
			return err
		}
	}
	t.changeRecord(r, func() { r.state, r.overdue = to, false })
	if _, err := t.exec(`UPDATE letters SET state = $2, changed_at = $3,
		why = $4, held_from = 'scheduled', suspect = $5, due_at = NULL,
		operation = NULL, fixed = 0, unverified = 0, overdue = 0,
		waiter = '', waits_in = NULL, epoch = NULL, resend_at = NULL
		WHERE id = $1`, r.id, to, t.now, whyRestored, suspectRestored); err != nil {
		return err
	}
	return t.addEvent(r.id, 0, string(to), deadletter.Service.Name, whyRestored)
}

// markRestored is for a restored store. It marks the letters that people could send, because these
// letters may have been sent before. Dead, held and discarded letters stay in their state. A
// received letter is held later, when it is classified.
func (s *Store) markRestored(ctx context.Context, r *restoring) error {
	for last, more := int64(0), true; more; {
		err := s.tx(ctx, classify, func(t *tx) error {
			rows, err := t.query(`UPDATE letters SET suspect = $1, why = CASE state WHEN 'received' THEN $2 ELSE why END
				WHERE id IN (SELECT id FROM letters WHERE id > $3 AND id <= $4
				AND state IN ('received', 'dead', 'held', 'discarded') AND suspect = 0 ORDER BY id LIMIT $5)
				RETURNING id`,
				suspectRestored, whyRestored, last, r.newest, restoredAtATime)
			if err != nil {
				return err
			}
			more = false
			return scan(rows, func() error {
				var id int64
				err := rows.Scan(&id)
				last, more = max(last, id), true
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endRestore ends the restore of a store from an older copy. It raises the counters of the store's
// progress to those in the note, if the counters are lower.
func (s *Store) endRestore(ctx context.Context, seen deadletter.Progress, r *restoring) error {
	now := s.Progress()
	err := s.tx(ctx, classify, func(t *tx) error {
		t.s.restored = true
		t.step.claims = max(0, seen.Claims-now.Claims) + 1
		t.step.received = max(0, seen.Received-now.Received)
		if _, err := t.exec(`UPDATE progress SET commits = max(commits, $1)`, seen.Commits); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE marks SET unproved = 0`); err != nil || r == nil {
			return err
		}
		_, err := t.exec(`UPDATE restores SET done = 1 WHERE id = $1`, r.id)
		return err
	})
	if err != nil {
		return err
	}
	s.course.mu.Lock()
	s.course.now.Commits = max(s.course.now.Commits, seen.Commits+1)
	s.course.beside = true
	s.course.mu.Unlock()
	s.log.Warn(
		"the store was restored from a copy: letters that may have been sent since then are held", "copy", s.opened.At,
		"noted", seen.At,
	)
	return nil
}

// Restore describes when the store file was last found to be a copy, and how many letters are held
// for that reason. It returns nil if the file was never found to be a copy, or if dlo has not yet
// held all letters that it must hold for that reason.
func (s *Store) Restore(ctx context.Context) (*deadletter.Restore, error) {
	var at, since, until int64
	r := &deadletter.Restore{}
	err := s.askRow(ctx, `SELECT at, since, until, missing, (SELECT count(*) FROM letters INDEXED BY letters_restored
		WHERE suspect = 3 AND state = 'held') FROM restores WHERE done = 1 ORDER BY id DESC LIMIT 1`,
		nil, &at, &since, &until, &r.Missing, &r.Held)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("when the store was restored: %w", err)
	}
	r.At, r.Since, r.Until = time.UnixMilli(at).UTC(), time.UnixMilli(since).UTC(), time.UnixMilli(until).UTC()
	return r, nil
}
