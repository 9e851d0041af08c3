package operation

import (
	"context"
	"fmt"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// Reviser stores the edits of single letters.
type Reviser interface {
	// Revise stores r as the newest revision of its letter. It returns ErrConflict if r is based on an
	// older revision, or if nobody can act on the letter.
	Revise(ctx context.Context, r deadletter.Revision) (deadletter.Revision, error)
}

// Edit stores a person's edit of one letter. From then on, dlo sends the revision instead of the
// original. If "send" is true, Edit also requeues the letter immediately. If a second call has the
// same idempotency key, Edit returns the same revision and the same requeue.
//
// Errors wrap ErrInvalid, ErrForbidden, ErrNotFound or ErrConflict. If Edit returns an error
// together with a revision, the edit was stored, and the error says why it was not sent.
func (d *Desk) Edit(
	ctx context.Context, by deadletter.Principal, l *deadletter.Letter, r deadletter.Revision, send bool,
) (deadletter.Revision, deadletter.OperationID, error) {
	r.Letter, r.By, r.Reason = l.ID, by.Name, strings.TrimSpace(r.Reason)
	if err := deadletter.Allow(by, deadletter.VerbEdit, l.Place()); err != nil {
		return r, 0, err
	}
	switch {
	case r.Reason == "":
		return r, 0, deadletter.FieldErrors{
			{Field: "reason", Why: "say why, so that the next person understands the change"},
		}
	case len(r.Reason) > maxReason:
		return r, 0, fmt.Errorf("%w: a reason has at most %d bytes", deadletter.ErrInvalid, maxReason)
	case len(r.Key) > maxKey:
		return r, 0, fmt.Errorf("%w: an Idempotency-Key has at most %d bytes", deadletter.ErrInvalid, maxKey)
	case len(r.Body) > d.maxBody:
		return r, 0, fmt.Errorf(
			"%w: the body has %d bytes, more than requeue.max_body, %d", deadletter.ErrInvalid, len(r.Body), d.maxBody,
		)
	}
	r, err := d.store.Revise(ctx, r)
	if err != nil || !send {
		return r, 0, err
	}
	d.crash("edit: stored")
	none := 0
	id, err := d.Start(ctx, by, Request{
		Action:    deadletter.VerbRequeue,
		Selection: query.Selection{IDs: []deadletter.ID{l.ID}},
		Restored:  true,
		Reason:    r.Reason,
		Key:       r.Key,
		Pace:      Pace{Canary: &none},
	})
	if err != nil {
		err = fmt.Errorf("revision %d is stored, and not sent: %w", r.Number, err)
	}
	return r, id, err
}

// maxEdited is the limit for the new bodies that one transaction stores, in bytes. Once their total
// size reaches it, the transaction edits no other letters.
const maxEdited = 16 << 20

// takeLetters acts on the next n letters of an operation and returns how many it took. If the
// operation is an edit, takeLetters first edits these letters in a transaction of its own. The next
// transaction releases them.
func (d *Desk) takeLetters(ctx context.Context, op *deadletter.Operation, n int) (int, error) {
	if op.Action != deadletter.VerbEdit {
		return d.store.Advance(ctx, op.ID, n, d.targets.Allow)
	}
	letters, err := d.store.PendingLetters(ctx, op.ID, n)
	if err != nil {
		return 0, err
	}
	list := make([]deadletter.Edited, 0, len(letters))
	size := 0
	for i := range letters {
		if size >= maxEdited {
			break // the next call edits the other letters
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		l := &letters[i]
		e := deadletter.Edited{AsOf: l.ChangedAt}
		if e.Revision, err = d.edit(l, op.Patch, op.Reveal); err != nil {
			e.Refusal = err.Error()
		}
		e.Letter = l.ID
		size += len(e.Body)
		list = append(list, e)
	}
	return d.store.Revised(ctx, op.ID, list, d.targets.Allow)
}
