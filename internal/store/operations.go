package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Advance acts on the next n pending letters of a running operation, in the order of the operation
// and in one transaction. A requeue makes the letters scheduled and due now. Other actions change
// the letters at once. If an action is not possible for a letter, Advance skips the letter and
// records the reason. Before a letter is released to a queue, Advance checks the queue with the
// function "allow". If "allow" is nil, all queues are permitted. Advance returns the number of
// letters that it took.
func (s *Store) Advance(
	ctx context.Context, op deadletter.OperationID, n int, allow func(to deadletter.Origin) error,
) (taken int, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		taken = 0
		do, newest, dueAt, err := t.actor(op, allow)
		if do == nil {
			return err
		}
		if do.action == deadletter.VerbEdit {
			return fmt.Errorf("%w: an edit advances with its revisions", deadletter.ErrInvalid)
		}
		list, err := t.pendingLetters(nextLetters(newest), int64(op), n)
		if err != nil {
			return err
		}
		for i := range list {
			// the dispatcher takes letters by due time, and letters with equal due times by age
			if do.due = t.now; newest {
				do.due += int64(i - len(list))
			}
			if dueAt.Valid {
				do.due = dueAt.Int64
			}
			if err := t.act(do, &list[i]); err != nil {
				return err
			}
		}
		taken = len(list)
		t.ended[op] = true
		return t.storeReleases(op)
	})
	if err != nil {
		return 0, fmt.Errorf("advance %s: %w", op, err)
	}
	return taken, nil
}

// actor reads an operation from the database. It returns an actor, which performs the operation's
// action on letters. If the operation is not running, the result "do" is nil.
func (t *tx) actor(
	op deadletter.OperationID, allow func(to deadletter.Origin) error,
) (do *actor, newest bool, dueAt sql.NullInt64, err error) {
	var state deadletter.OperationState
	do = &actor{op: op, allow: allow}
	err = t.row(`SELECT action, state, by, newest, target, reason, until, due_at, restored FROM operations
		WHERE id = $1`, []any{int64(op)},
		&do.action, &state, &do.by, &newest, &do.target, &do.reason, &do.until, &dueAt, &do.restored)
	if err != nil || state != deadletter.OperationRunning {
		do = nil
	}
	return do, newest, dueAt, err
}

// Revised acts on the letters in a list, which are pending letters of an operation that edits
// letters. If a letter has a new revision, Revised stores it and performs the operation's action on
// the letter. If it has none, or if the action is not possible, Revised skips the letter and
// records the reason. A letter that has changed since it was read stays pending. Revised returns
// the number of letters that it took.
func (s *Store) Revised(
	ctx context.Context, op deadletter.OperationID, list []deadletter.Edited, allow func(to deadletter.Origin) error,
) (taken int, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		taken = 0
		do, newest, _, err := t.actor(op, allow)
		if do == nil {
			return err
		}
		for i := range list {
			e := &list[i]
			serial, _, _ := e.Letter.Split()
			letters, err := t.pendingLetters(`FROM operation_letters ol JOIN letters l ON l.id = ol.letter
				WHERE ol.operation = $1 AND ol.letter = $2 AND ol.result = 'pending'`, int64(op), serial)
			if err != nil {
				return err
			}
			if len(letters) == 0 || letters[0].changedAt != e.AsOf.UnixMilli() {
				continue
			}
			if do.due = t.now; newest {
				do.due += int64(i - len(list))
			}
			if e.Refusal != "" {
				err = t.recordResult(op, serial, deadletter.ResultSkipped, e.Refusal)
			} else {
				e.Operation, e.By, e.Reason, do.edited = op, do.by, do.reason, e
				err = t.act(do, &letters[0])
			}
			if err != nil {
				return err
			}
			taken++
		}
		t.ended[op] = true
		return t.storeReleases(op)
	})
	if err != nil {
		return 0, fmt.Errorf("advance %s: %w", op, err)
	}
	return taken, nil
}

// nextLetters returns the FROM and the ORDER BY of an SQL query for the next $2 pending letters of
// the operation $1, in the order of the operation. During a canary, the letters that ChooseCanary
// chose come before the others.
func nextLetters(newest bool) string {
	order := ""
	if newest {
		order = " DESC"
	}
	return strings.ReplaceAll(`FROM (SELECT letter FROM (
		SELECT og.canary AS letter, 0 AS place FROM operations o JOIN operation_groups og ON og.operation = o.id
			JOIN operation_letters c ON c.operation = o.id AND c.letter = og.canary AND c.result = 'pending'
			WHERE o.id = $1 AND o.phase = 'canary'
		UNION ALL SELECT * FROM (SELECT letter, 1 FROM operation_letters INDEXED BY operation_results
			WHERE operation = $1 AND result = 'pending' ORDER BY letter# LIMIT $2))
		GROUP BY letter ORDER BY min(place), letter# LIMIT $2) n
		JOIN operation_letters ol ON ol.operation = $1 AND ol.letter = n.letter
		JOIN letters l ON l.id = n.letter ORDER BY n.letter#`, "#", order)
}

// ChooseCanary chooses the letters that the next canary of an operation sends first: the first
// letter of each cause on which the operation can act, for at most n causes. It reads the pending
// letters outside the transaction, because there may be many.
func (s *Store) ChooseCanary(ctx context.Context, op deadletter.OperationID, n int) error {
	var action deadletter.Verb
	var newest bool
	if err := s.askRow(
		ctx, `SELECT action, newest FROM operations WHERE id = $1`, []any{int64(op)}, &action, &newest,
	); err != nil {
		return fmt.Errorf("choose the canary of %s: %w", op, err)
	}
	first, args := `min(ol.letter)`, []any{int64(op), n}
	if newest {
		first = `-max(ol.letter)`
	}
	for _, state := range deadletter.States {
		if action.May(state) {
			args = append(args, string(state))
		}
	}
	chosen := map[int64]int64{} // letter -> its group
	rows, err := s.ask(ctx, `SELECT ol.grp, ol.letter, `+first+` FROM operation_letters ol INDEXED BY operation_results
		JOIN groups g ON g.id = ol.grp JOIN letters l ON l.id = ol.letter
		WHERE ol.operation = $1 AND ol.result = 'pending' AND l.state IN (`+placeholders(3, len(args)-2)+`)
		GROUP BY coalesce(g.head, g.id) ORDER BY 3 LIMIT $2`, args...)
	if err == nil {
		err = scan(rows, func() error {
			var group, letter, sorted int64
			err := rows.Scan(&group, &letter, &sorted)
			chosen[letter] = group
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("choose the canary of %s: %w", op, err)
	}
	return s.tx(ctx, bulk, func(t *tx) error {
		if _, err := t.exec(`UPDATE operation_groups SET canary = NULL WHERE operation = $1`, int64(op)); err != nil {
			return err
		}
		for letter, group := range chosen {
			if _, err := t.exec(`UPDATE operation_groups SET canary = $3 WHERE operation = $1
				AND grp = $2`, int64(op), group, letter); err != nil {
				return err
			}
		}
		return nil
	})
}

// pending is a letter on which an operation acts now.
type pending struct {
	record
	share    int64 // origin under which the operation counts the letter
	inbox    int64
	redirect sql.NullString // queue of the saved redirect for the letter's queue
}

// pendingLetters reads letters of an operation. The parameter "from" is the end of the query, in
// which letters are l and operation_letters are ol.
func (t *tx) pendingLetters(from string, args ...any) ([]pending, error) {
	rows, err := t.query(`SELECT `+recordColumns+`, ol.origin, l.inbox, (SELECT target FROM overrides
		WHERE origin = l.origin) `+from, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(c *pending) []any { return append(c.dest(), &c.share, &c.inbox, &c.redirect) })
}

// recordResult records the result of an operation for one letter.
func (t *tx) recordResult(op deadletter.OperationID, letter int64, to deadletter.Result, reason string) error {
	var from deadletter.Result
	var origin int64
	err := t.row(`SELECT result, origin FROM operation_letters WHERE operation = $1
		AND letter = $2`, []any{int64(op), letter}, &from, &origin)
	if errors.Is(err, sql.ErrNoRows) || err == nil && from == to {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE operation_letters SET result = $3, reason = $4 WHERE operation = $1
		AND letter = $2`, int64(op), letter, string(to), reason); err != nil {
		return err
	}
	t.countResult(op, origin, from, to)
	return nil
}

// countResult counts the new result of an operation for a letter, whose origin is given.
func (t *tx) countResult(op deadletter.OperationID, origin int64, from, to deadletter.Result) {
	t.moves.share(op, origin, from, to)
	if !to.Open() {
		t.ended[op] = true
	}
}

// cameBack records that a letter of an operation came back. A letter that was sent before the
// current canary says nothing about that canary. It is therefore added to the base counts, which
// are subtracted from the counts of the canary. The parameter "sent" is the time of the broker's
// confirm, or the time of the publish if there was no confirm.
func (t *tx) cameBack(op deadletter.OperationID, letter int64, reason string, confirmed bool, sent int64) error {
	if err := t.recordResult(op, letter, deadletter.ResultCameBack, reason); err != nil {
		return err
	}
	uncounted := 1 // base_sent does not yet contain a letter that has no confirm
	if confirmed {
		uncounted = 0
	}
	_, err := t.exec(`UPDATE operations SET base_back = base_back + 1, base_sent = base_sent + $3 WHERE id = $1
		AND base_at > $2`, int64(op), sent, uncounted)
	return err
}

// finish moves an operation without open letters to its next phase. The operation is watched while
// a letter that it sent may still come back. It is done when there is a verdict on every letter.
func (t *tx) finish(op deadletter.OperationID) error {
	var state deadletter.OperationState
	var phase deadletter.OperationPhase
	if err := t.row(`SELECT state, phase FROM operations WHERE id = $1`, []any{int64(op)}, &state, &phase); err != nil {
		return err
	}
	if phase == deadletter.PhaseOver || phase == deadletter.PhaseSelecting && state.Active() {
		return nil
	}
	var open, watched bool
	if err := t.hasResult(op, `'pending', 'released'`, &open); err != nil || open {
		return err
	}
	if err := t.hasResult(op, `'confirmed'`, &watched); err != nil {
		return err
	}
	if state == deadletter.OperationCancelled {
		var laid bool
		if err := t.row(`SELECT NOT EXISTS (SELECT 1 FROM operation_selections
			WHERE operation = $1)`, []any{int64(op)}, &laid); err != nil || !laid || watched {
			return err
		}
		if _, err := t.exec(`UPDATE operations SET phase = 'over', phase_until = NULL, finished_at = $2
			WHERE id = $1`, int64(op), t.now); err != nil {
			return err
		}
		return t.noticeFinished(op)
	}
	if watched {
		_, err := t.exec(`UPDATE operations SET state = 'running',
			phase = 'watching', phase_until = NULL, why = '', sent_at = coalesce(sent_at, $2) WHERE id = $1
			AND phase <> 'watching'`, int64(op), t.now)
		return err
	}
	if _, err := t.exec(`UPDATE operations SET state = 'done',
		phase = 'over', phase_until = NULL, why = '', sent_at = coalesce(sent_at, $2), finished_at = $2 WHERE id = $1`,
		int64(op), t.now); err != nil {
		return err
	}
	outcome, err := t.outcome(op)
	if err != nil {
		return err
	}
	if err := t.recordSteering(op, deadletter.ActDone, deadletter.Service.Name, outcome); err != nil {
		return err
	}
	return t.noticeFinished(op)
}

// noticeFinished writes a notice that tells machines that an operation is over.
func (t *tx) noticeFinished(op deadletter.OperationID) error {
	return t.writeNotice(&deadletter.Notice{
		Kind:     deadletter.EventOperationFinished,
		Key:      op.String(),
		Op:       op,
		Severity: deadletter.SeverityDigest,
	}, 0)
}

// hasResult checks whether an operation has a letter with one of the given results. It stores the
// answer in the variable to which "found" points. The parameter "results" is an SQL list.
func (t *tx) hasResult(op deadletter.OperationID, results string, found *bool) error {
	return t.row(`SELECT EXISTS (SELECT 1 FROM operation_letters WHERE operation = $1
		AND result IN (`+results+`))`, []any{int64(op)}, found)
}
