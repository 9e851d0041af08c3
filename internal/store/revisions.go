package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sentSize is an SQL expression for the size in bytes of the body that a requeue of a letter sends.
const sentSize = `CASE WHEN l.revision = 0 THEN l.size ELSE (SELECT length(v.body) FROM revisions v
	WHERE v.letter = l.id AND v.n = l.revision) END`

// heldSize is an SQL expression for the number of bytes that a letter's bodies take in memory.
// These are the received body and the body of the newest revision.
const heldSize = `l.size + CASE WHEN l.revision = 0 THEN 0 ELSE ` + sentSize + ` END`

// Revise stores a person's edit of a letter as a revision. From then on, the revision is sent
// instead of the received letter, which is kept. The number of the revision must be the number that
// the person saw, plus one. Revise returns ErrConflict if there is a newer revision, or if nobody
// can act on the letter. A request contains a key. If a second request has the same key and equal
// content, Revise returns the existing revision. If the content differs, Revise returns
// ErrConflict.
func (s *Store) Revise(ctx context.Context, r deadletter.Revision) (deadletter.Revision, error) {
	err := s.tx(ctx, dispatch, func(t *tx) error {
		serial, random, _ := r.Letter.Split()
		if r.Key != "" {
			known, err := revisionOf(t.row, `letter = $1 AND key = $2 AND by = $3`, serial, r.Key, r.By)
			if err == nil {
				if same, err := sameContent(&known, &r); !same {
					return errors.Join(
						err, fmt.Errorf("%w: the key was used for another edit of this letter", deadletter.ErrConflict),
					)
				}
				known.Letter = r.Letter
				r = known
				return nil
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		l, err := t.record(serial)
		if err != nil || l.random != random {
			return deadletter.NoSuch("letter %s", r.Letter)
		}
		if _, ok := l.state.On(deadletter.RequeueAsked); !ok {
			return fmt.Errorf("%w: it is %s, which cannot be edited", deadletter.ErrConflict, l.state)
		}
		var owner int64
		err = t.row(`SELECT operation FROM operation_letters INDEXED BY operation_owner WHERE letter = $1
			AND result IN ('pending', 'released')`, []any{serial}, &owner)
		if err == nil {
			return fmt.Errorf("%w: operation %s has it", deadletter.ErrConflict, deadletter.OperationID(owner))
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if l.waitsInBroker(t.now) {
			return fmt.Errorf("%w: %s", deadletter.ErrConflict, deadletter.WhyInBroker)
		}
		return t.revise(l, &r)
	})
	if err != nil {
		return r, fmt.Errorf("edit: %w", err)
	}
	return r, nil
}

// sameContent reports whether two revisions would send equal messages.
func sameContent(a, b *deadletter.Revision) (bool, error) {
	x, err := a.Properties.Encode()
	if err != nil {
		return false, err
	}
	y, err := b.Properties.Encode()
	return err == nil && bytes.Equal(x, y) && bytes.Equal(a.Body, b.Body), err
}

// revise adds a revision to a letter and requests that the letter be read again. The caller has
// checked that people can act on the letter.
func (t *tx) revise(l *record, r *deadletter.Revision) error {
	if err := t.whyDamaged(l.id); err != nil {
		return err
	}
	if err := t.addRevision(l, r); err != nil {
		return err
	}
	// only letters with a type are indexed after they are read again, so every edited letter is
	// added here
	if err := t.markUnindexed(l.id); err != nil {
		return err
	}
	if r.Operation != 0 {
		_, err := t.exec(`INSERT INTO unread (letter) VALUES ($1) ON CONFLICT DO NOTHING`, l.id)
		return err
	}
	return t.reread(deadletter.Reread{Why: "an edit", Letter: r.Letter})
}

func (t *tx) addRevision(l *record, r *deadletter.Revision) error {
	if r.Number != l.revision+1 {
		return fmt.Errorf(
			"%w: someone else has edited it meanwhile; look at revision %d first", deadletter.ErrConflict, l.revision,
		)
	}
	properties, err := r.Properties.Encode()
	if err != nil {
		return err
	}
	key := any(nil)
	if r.Key != "" {
		key = r.Key
	}
	r.At = time.UnixMilli(t.now).UTC()
	if _, err := t.exec(`INSERT INTO revisions (letter, n, properties,
		body, changes, reason, by, at, operation, key, checksum) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		l.id, r.Number, properties, nonNil(r.Body), r.Changes, r.Reason, r.By, t.now,
		positiveOrNull(int64(r.Operation)), key, checksum(properties, r.Body)); err != nil {
		return err
	}
	l.revision = r.Number
	if _, err := t.exec(`UPDATE letters SET revision = $2, changed_at = $3, unpublishable = ''
		WHERE id = $1`, l.id, r.Number, t.now); err != nil {
		return err
	}
	detail := fmt.Sprintf("revision %d", r.Number)
	if r.Changes != "" {
		detail += " changes " + r.Changes
	}
	if r.Reason != "" {
		detail += "; reason: " + r.Reason
	}
	if r.Operation != 0 { // in the audit, the edits of an operation are one act with its own row
		return t.addEvent(l.id, r.Operation, deadletter.ActEdited, r.By, detail)
	}
	return t.audit(deadletter.Once(deadletter.ActEdited, r.By, detail, deadletter.Target{
		Kind: deadletter.TargetLetter,
		Name: string(r.Letter),
	}))
}

const revisionColumns = `n, properties, body, changes, reason, by, at, operation, coalesce(key, ''), checksum`

// revisionOf reads one revision. It leaves out the id of the letter. It returns sql.ErrNoRows if
// the revision does not exist.
func revisionOf(
	row func(text string, args []any, dest ...any) error, where string, args ...any,
) (deadletter.Revision, error) {
	var r deadletter.Revision
	var properties []byte
	var at int64
	var operation, sum sql.NullInt64
	err := row(
		`SELECT `+revisionColumns+` FROM revisions WHERE `+where, args, &r.Number, &properties, &r.Body, &r.Changes,
		&r.Reason, &r.By, &at, &operation, &r.Key, &sum,
	)
	if err != nil {
		return r, err
	}
	r.Damaged = differs(sum, properties, r.Body)
	r.At, r.Operation = time.UnixMilli(at).UTC(), deadletter.OperationID(operation.Int64)
	r.Properties, err = deadletter.DecodeProperties(properties)
	return r, err
}

// Revisions returns the revisions of a letter, oldest first. Purged contents are missing.
func (s *Store) Revisions(ctx context.Context, id deadletter.ID) ([]deadletter.Revision, error) {
	var list []deadletter.Revision
	serial, _, _ := id.Split()
	for n := 1; ; n++ {
		r, err := revisionOf(
			func(text string, args []any, dest ...any) error { return s.askRow(ctx, text, args, dest...) },
			`letter = $1 AND n = $2`, serial, n,
		)
		if errors.Is(err, sql.ErrNoRows) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("revisions of letter %s: %w", id, err)
		}
		r.Letter = id
		list = append(list, r)
	}
}

// addRevisions adds the newest revision of each letter to the letters in a list.
func addRevisions(ctx context.Context, db reader, list []deadletter.Letter) error {
	for i := range list {
		l := &list[i]
		if l.Revision == 0 {
			continue
		}
		serial, _, _ := l.ID.Split()
		r, err := revisionOf(
			func(text string, args []any, dest ...any) error {
				return db.QueryRowContext(ctx, text, args...).Scan(dest...)
			},
			`letter = $1 AND n = $2`, serial, l.Revision,
		)
		if err != nil {
			return fmt.Errorf("revision %d of letter %s: %w", l.Revision, l.ID, err)
		}
		r.Letter, l.Revised = l.ID, &r
		if r.Damaged {
			l.Damage = damagedRevision
		} else if l.Damage == damagedContents {
			l.Damage = damagedReceived
		}
	}
	return nil
}

// PendingLetters returns the next n letters on which a running operation has not acted yet, with
// their bodies.
func (s *Store) PendingLetters(ctx context.Context, op deadletter.OperationID, n int) ([]deadletter.Letter, error) {
	var newest bool
	if err := s.askRow(ctx, `SELECT newest FROM operations WHERE id = $1`, []any{int64(op)}, &newest); err != nil {
		return nil, err
	}
	serials, err := s.serials(ctx, `SELECT n.letter, `+heldSize+` `+nextLetters(newest), int64(op), n)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	return s.lettersBySerial(ctx, serials)
}
