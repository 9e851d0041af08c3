package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// actor describes what an operation does to each of its letters.
type actor struct {
	op             deadletter.OperationID
	action         deadletter.Verb
	until          int64 // time at which the letters were selected, in Unix milliseconds
	by             string
	target, reason string
	// time at which released or rescheduled letters become due, in Unix milliseconds
	due int64
	// returns an error if letters may not be sent to the given queue; nil permits all queues
	allow func(to deadletter.Origin) error
	// the operation also takes letters that may already have been sent after the backup from which
	// the store was restored
	restored bool
	edited   *deadletter.Edited // the edited letter, if the operation is an edit
}

// act applies an operation to one letter, or skips the letter with a reason.
func (t *tx) act(do *actor, c *pending) error {
	r := &c.record
	trigger := do.action.Trigger(r.heldFrom, unknownOrigin(r.origin))
	to, ok := r.state.On(trigger)
	switch {
	case r.operation.Valid && r.operation.Int64 != int64(do.op):
		return t.recordResult(
			do.op, r.id, deadletter.ResultSkipped,
			fmt.Sprintf("operation %s has it", deadletter.OperationID(r.operation.Int64)),
		)
	case r.waitsInBroker(t.now):
		return t.recordResult(do.op, r.id, deadletter.ResultSkipped, deadletter.WhyInBroker)
	case !ok:
		return t.recordResult(
			do.op, r.id, deadletter.ResultSkipped,
			fmt.Sprintf("it is %s, which cannot be %s", r.state, do.action.Past()),
		)
	case trigger == deadletter.Purging && r.changedAt > do.until:
		// a purge cannot be undone, and a person did not see what has changed in the letter since
		// the selection
		return t.recordResult(do.op, r.id, deadletter.ResultSkipped, "it has changed since it was selected")
	case r.suspect == suspectRestored && trigger.Leaves() && !do.restored:
		return t.recordResult(do.op, r.id, deadletter.ResultSkipped, deadletter.WhyRestored)
	case trigger == deadletter.RequeueAsked && unknownOrigin(r.origin) && do.target == "":
		return t.recordResult(do.op, r.id, deadletter.ResultSkipped, "nothing says which queue it died in")
	}
	if trigger == deadletter.RequeueAsked || trigger == deadletter.ReleasedDue || trigger == deadletter.Timing {
		at := t.destination(do, c)
		if do.allow != nil {
			if err := do.allow(at); err != nil {
				return t.recordResult(do.op, r.id, deadletter.ResultSkipped, err.Error())
			}
		}
		if do.edited != nil {
			if err := t.revise(r, &do.edited.Revision); errors.Is(err, deadletter.ErrConflict) {
				return t.recordResult(do.op, r.id, deadletter.ResultSkipped, err.Error())
			} else if err != nil {
				return err
			}
		}
		if trigger == deadletter.RequeueAsked {
			return t.release(do, c, to, at)
		}
	}
	was := r.state
	t.changeRecord(r, func() { r.state, r.overdue = to, false })
	detail, due, unguarded, fixed := do.reason, any(nil), 0, 0
	switch trigger {
	case deadletter.ReleasedDue:
		due = t.now
	case deadletter.Timing:
		due = do.due
		if do.action == deadletter.VerbReschedule {
			fixed = 1
			detail = "due " + time.UnixMilli(do.due).UTC().Format(time.RFC3339) + reasonSuffix(do.reason)
		}
	case deadletter.ReleasedAgain:
		unguarded = 1
	case deadletter.Purging:
		var err error
		if detail, err = t.erase(r.id, true); err != nil {
			return err
		}
		if was == deadletter.StateRequeued {
			if err := t.unwatch(r, deadletter.ResultUnverified, "it was purged while it was watched"); err != nil {
				return err
			}
		}
	}
	why := ""
	switch to {
	case deadletter.StateHeld:
		why = "held by " + do.by
	case deadletter.StateScheduled:
		if trigger == deadletter.Timing {
			why = do.action.Past() + " by " + do.by
		}
	}
	if why != "" && do.reason != "" {
		why += ": " + do.reason
	}
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3,
		changed_at = $4, why = $5, held_from = $6, unguarded = $7,
		fixed = $8, waiter = '', waits_in = NULL, overdue = 0, suspect = CASE WHEN suspect = 3 AND $10 THEN 3
		ELSE 0 END,
		told_by = coalesce($3 + max(told_rest, $9), told_by) WHERE id = $1`,
		r.id, to, due, t.now, why, string(was), unguarded, fixed, toldSoonest,
		!trigger.Leaves() && trigger != deadletter.Purging); err != nil {
		return err
	}
	if err := t.addEvent(r.id, do.op, do.action.Past(), do.by, detail); err != nil {
		return err
	}
	return t.recordResult(do.op, r.id, deadletter.ResultChanged, "")
}

// unwatch records the result of the watch over a requeued letter in the operation that sent it, so
// that the operation can finish.
func (t *tx) unwatch(r *record, result deadletter.Result, reason string) error {
	var operation sql.NullInt64
	if err := t.row(
		`SELECT operation FROM attempts WHERE letter = $1 AND n = $2`, []any{r.id, r.publishes}, &operation,
	); err != nil || !operation.Valid {
		return err
	}
	return t.recordResult(deadletter.OperationID(operation.Int64), r.id, result, reason)
}

// destination returns the queue to which a letter would be sent. If the operation has a target,
// this is the target. Otherwise, it is the target of a saved redirect. If there is no redirect
// either, it is the queue in which the letter died.
func (t *tx) destination(do *actor, c *pending) deadletter.Origin {
	at := t.s.names.placeOf(c.origin, c.inbox)
	if unknownOrigin(c.origin) {
		at.Queue = ""
	}
	to := deadletter.Origin{Broker: at.Broker, VHost: at.VHost, Queue: at.Queue}
	switch {
	case do.target != "":
		to.Queue = do.target
	case c.redirect.Valid:
		to.Queue = c.redirect.String
	}
	return to
}

// release makes a letter due, so that the dispatcher sends it. It records the state in which the
// letter was before. The caller must call storeReleases after it.
func (t *tx) release(do *actor, c *pending, to deadletter.State, at deadletter.Origin) error {
	was, due, target := c.state, c.dueAt, any(nil)
	if do.target != "" {
		id, err := t.originID(at)
		if err != nil {
			return err
		}
		target = id
	}
	t.changeRecord(&c.record, func() { c.state, c.overdue = to, false })
	t.moves.share(do.op, c.share, deadletter.ResultPending, deadletter.ResultReleased)
	t.released.letters = append(t.released.letters, c.id, to, do.due, target)
	t.released.results = append(t.released.results, c.id, string(was), due)
	return nil
}

// storeReleases stores the releases of a transaction, all of one operation. Until then, its queries
// find the letters as they were.
func (t *tx) storeReleases(op deadletter.OperationID) error {
	r := t.released
	t.released = sendings{}
	if err := t.many(`WITH r (letter, state, due_at, target) AS (VALUES rows) UPDATE letters SET state = r.state,
		due_at = r.due_at, changed_at = ?, operation = ?, target = r.target, waits_in = NULL, overdue = 0
		FROM r WHERE id = r.letter`, 4, r.letters, t.now, int64(op)); err != nil {
		return err
	}
	return t.many(`WITH r (letter, was, was_due) AS (VALUES rows) UPDATE operation_letters SET result = 'released',
		was = r.was, was_due = r.was_due FROM r WHERE operation = ? AND operation_letters.letter = r.letter`,
		3, r.results, int64(op))
}

// erase deletes the contents of a letter from the store and from the index of words, and returns a
// description of the erased body. The letter's row and history stay. If "now" is false, the bytes
// of the body may stay in the file for some time.
func (t *tx) erase(serial int64, now bool) (string, error) {
	var in sql.NullInt64
	var text string
	var group int64
	if err := t.row(
		`SELECT segment, error, grp FROM letters WHERE id = $1`, []any{serial}, &in, &text, &group,
	); err != nil {
		return "", err
	}
	m, err := t.forget(serial, in, now)
	if err != nil {
		return "", err
	}
	if err := t.forgetAnnotation(serial); err != nil {
		return "", err
	}
	for _, text := range []string{
		`UPDATE attempts SET returned = NULL, returned_body = NULL WHERE letter = $1`,
		eraseTexts,
		`DELETE FROM words WHERE rowid = $1`,
		`DELETE FROM unindexed WHERE letter = $1`,
		`DELETE FROM unread WHERE letter = $1`,
		`DELETE FROM body_fields WHERE letter = $1`,
		`DELETE FROM picks WHERE letter = $1`,
		`DELETE FROM added WHERE letter = $1`,
	} {
		if _, err := t.exec(text, serial); err != nil {
			return "", err
		}
	}
	for _, text := range []string{
		`UPDATE revisions SET properties = $2, body = x'', changes = '' WHERE letter = $1`,
		// The operation's patch may contain values from the letter. It is needed only until the operation
		// is over.
		`UPDATE operations SET patch = NULL WHERE $2 IS NOT NULL AND phase = 'over' AND id IN (SELECT operation
			FROM revisions WHERE letter = $1)`,
	} {
		if _, err := t.exec(text, serial, purged.Properties); err != nil {
			return "", err
		}
	}
	for _, text := range []string{
		`UPDATE letters SET checksum = $2 WHERE id = $1`, `UPDATE revisions SET checksum = $2 WHERE letter = $1`,
	} {
		if _, err := t.exec(text, serial, checksum(purged.Properties)); err != nil {
			return "", err
		}
	}
	if text != "" {
		if err := t.retitle(group, text); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d bytes, SHA-256 %x", len(m.Body), sha256.Sum256(m.Body)), nil
}

// retitle gives a group a new title if the present title is the error text of a letter that is
// being erased. The new title is the error text of another letter in the group. If no other letter
// has one, the next letter that joins the group sets the title.
func (t *tx) retitle(group int64, text string) error {
	var bears bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM groups WHERE id = $1
		AND error = $2)`, []any{group, text}, &bears); err != nil || !bears {
		return err
	}
	title, next := "letters that were purged", ""
	err := t.row(`SELECT error FROM letters INDEXED BY letters_group WHERE grp = $1 AND grp > 0
		AND state IN ('received', 'scheduled', 'dead', 'held', 'publishing', 'requeued', 'settled', 'discarded')
		AND error <> '' LIMIT 1`, []any{group}, &next)
	switch {
	case err == nil:
		title = next
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	_, err = t.exec(`UPDATE groups SET title = $2, error = $3 WHERE id = $1`, group, title, next)
	return err
}
