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
func (t *tx) act(do *actor, p picked) error {
	r, err := t.record(p.serial)
	if err != nil {
		return err
	}
	trigger := do.action.Trigger(r.heldFrom, unknownOrigin(r.origin))
	to, ok := r.state.On(trigger)
	switch {
	case r.operation.Valid && r.operation.Int64 != int64(do.op):
		return t.recordResult(
			do.op, p.serial, deadletter.ResultSkipped,
			fmt.Sprintf("operation %s has it", deadletter.OperationID(r.operation.Int64)),
		)
	case r.waitsInBroker(t.now):
		return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, deadletter.WhyInBroker)
	case !ok:
		return t.recordResult(
			do.op, p.serial, deadletter.ResultSkipped,
			fmt.Sprintf("it is %s, which cannot be %s", r.state, do.action.Past()),
		)
	case trigger == deadletter.Purging && r.changedAt > do.until:
		// a purge cannot be undone, and a person did not see what has changed in the letter since
		// the selection
		return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, "it has changed since it was selected")
	case r.suspect == suspectRestored && trigger.Leaves() && !do.restored:
		return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, deadletter.WhyRestored)
	case trigger == deadletter.RequeueAsked && unknownOrigin(r.origin) && do.target == "":
		return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, "nothing says which queue it died in")
	}
	if trigger == deadletter.RequeueAsked || trigger == deadletter.ReleasedDue || trigger == deadletter.Timing {
		at, err := t.destination(do, r)
		if err != nil {
			return err
		}
		if do.allow != nil {
			if err := do.allow(at); err != nil {
				return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, err.Error())
			}
		}
		if do.edited != nil {
			if err := t.revise(r, &do.edited.Revision); errors.Is(err, deadletter.ErrConflict) {
				return t.recordResult(do.op, p.serial, deadletter.ResultSkipped, err.Error())
			} else if err != nil {
				return err
			}
		}
		if trigger == deadletter.RequeueAsked {
			return t.release(do, p, r, to, at)
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
		if detail, err = t.erase(p.serial, true); err != nil {
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
		p.serial, to, due, t.now, why, string(was), unguarded, fixed, toldSoonest,
		!trigger.Leaves() && trigger != deadletter.Purging); err != nil {
		return err
	}
	if err := t.addEvent(p.serial, do.op, do.action.Past(), do.by, detail); err != nil {
		return err
	}
	return t.recordResult(do.op, p.serial, deadletter.ResultChanged, "")
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
func (t *tx) destination(do *actor, r *record) (deadletter.Origin, error) {
	var inbox int64
	if r.origin == 0 {
		if err := t.row(`SELECT inbox FROM letters WHERE id = $1`, []any{r.id}, &inbox); err != nil {
			return deadletter.Origin{}, err
		}
	}
	at := t.s.names.placeOf(r.origin, inbox)
	if unknownOrigin(r.origin) {
		at.Queue = ""
	}
	to := deadletter.Origin{Broker: at.Broker, VHost: at.VHost, Queue: at.Queue}
	if do.target != "" {
		to.Queue = do.target
		return to, nil
	}
	err := t.row(`SELECT target FROM overrides WHERE origin = $1`, []any{r.origin}, &to.Queue)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return to, err
}

// release makes a letter due, so that the dispatcher sends it. It records the state in which the
// letter was before.
func (t *tx) release(do *actor, p picked, r *record, to deadletter.State, at deadletter.Origin) error {
	was, due, target := r.state, r.dueAt, any(nil)
	if do.target != "" {
		id, err := t.originID(at)
		if err != nil {
			return err
		}
		target = id
	}
	t.changeRecord(r, func() { r.state, r.overdue = to, false })
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = $3,
		changed_at = $4, operation = $5, target = $6, waits_in = NULL, overdue = 0
		WHERE id = $1`, p.serial, to, do.due, t.now, int64(do.op), target); err != nil {
		return err
	}
	t.moves.share(do.op, p.origin, deadletter.ResultPending, deadletter.ResultReleased)
	_, err := t.exec(`UPDATE operation_letters SET result = 'released', was = $3, was_due = $4 WHERE operation = $1
		AND letter = $2`, int64(do.op), p.serial, string(was), due)
	return err
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
