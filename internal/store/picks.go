package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Picks returns the types that people picked. Picks for a queue come first, sorted by queue. Picks
// for a group come next, and picks for a letter come last, both newest first.
func (s *Store) Picks(ctx context.Context) ([]deadletter.Pick, error) {
	rows, err := s.ask(ctx, `SELECT p.id, p.letter, l.random, p.grp, g.key, p.queue, p.key, p.path, p.type, p.reason, p.by,
		p.at FROM picks p LEFT JOIN letters l ON l.id = p.letter
		LEFT JOIN groups g ON g.id = p.grp ORDER BY p.queue IS NULL, p.grp IS NULL, p.queue, p.key, p.path, p.id DESC`)
	if err != nil {
		return nil, fmt.Errorf("picks: %w", err)
	}
	var list []deadletter.Pick
	err = scan(rows, func() error {
		var p deadletter.Pick
		var letter, random, group sql.NullInt64
		var key []byte
		var queue, routing sql.NullString
		var at int64
		if err := rows.Scan(
			&p.ID, &letter, &random, &group, &key, &queue, &routing, &p.Path, &p.Type, &p.Reason, &p.By, &at,
		); err != nil {
			return err
		}
		if letter.Valid {
			p.Letter = deadletter.NewID(letter.Int64, uint64(random.Int64))
		}
		if group.Valid {
			p.Group = deadletter.GroupID(group.Int64)
			copy(p.GroupKey[:], key)
		}
		p.Queue, p.Key, p.At = queue.String, routing.String, time.UnixMilli(at).UTC()
		list = append(list, p)
		return nil
	})
	return list, err
}

// AddPick saves a pick and fills in its id and time. It replaces an earlier pick for the same
// letter, the same group, or the same queue, routing key and path. The letters to which the pick
// applies are then read again. The function "fits" reports whether a queue matches the glob of a
// pick for queues.
func (s *Store) AddPick(
	ctx context.Context, p deadletter.Pick, fits func(glob, queue string) bool,
) (deadletter.Pick, error) {
	err := s.tx(ctx, bulk, func(t *tx) error {
		p.At = time.UnixMilli(t.now).UTC()
		serial, random, _ := p.Letter.Split()
		var what string
		r := deadletter.Reread{Why: "a pick of " + p.Type, Letter: p.Letter, Group: p.Group, Hides: true}
		var queue, key any
		switch {
		case p.Letter != "":
			what = "this letter is read as " + p.Type
			if err := t.row(`SELECT id FROM letters WHERE id = $1 AND random = $2
				AND state <> 'purged'`, []any{serial, random}, &serial); err != nil {
				return orNotFound("letter "+string(p.Letter), err)
			}
			_, err := t.exec(`DELETE FROM picks WHERE letter = $1`, serial)
			if err != nil {
				return err
			}
		case p.Group != 0:
			what = fmt.Sprintf("letters of %s are read as %s", p.Group, p.Type)
			var id int64
			if err := t.row(`SELECT id FROM groups WHERE id = $1`, []any{int64(p.Group)}, &id); err != nil {
				return orNotFound("group "+p.Group.String(), err)
			}
			if _, err := t.exec(`DELETE FROM picks WHERE grp = $1`, id); err != nil {
				return err
			}
		default:
			queue, key = p.Queue, p.Key
			r.Queues = func(queue string) bool { return fits(p.Queue, queue) }
			what = bindingText(p)
			if _, err := t.exec(`DELETE FROM picks WHERE queue = $1 AND key = $2 AND path = $3`, p.Queue, p.Key, p.Path); err != nil {
				return err
			}
		}
		if err := t.row(`INSERT INTO picks (letter, grp, queue, key, path, type, reason, by, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
			[]any{
				positiveOrNull(serial), positiveOrNull(int64(p.Group)), queue, key, p.Path, p.Type, p.Reason, p.By, t.now,
			}, &p.ID); err != nil {
			return err
		}
		act := deadletter.Once(deadletter.ActTypePicked, p.By, what+reasonSuffix(p.Reason), pickTarget(p))
		if err := t.audit(act); err != nil {
			return err
		}
		if p.Reveals {
			detail := "masked values may become visible: " + what
			if err := t.audit(deadletter.Once(deadletter.ActRevealed, p.By, detail, pickTarget(p))); err != nil {
				return err
			}
		}
		return t.reread(r)
	})
	return p, err
}

// pickTarget returns the target for the audit of a pick: the letter, the group or the binding of a
// queue to which the picked type applies.
func pickTarget(p deadletter.Pick) deadletter.Target {
	switch {
	case p.Letter != "":
		return deadletter.Target{Kind: deadletter.TargetLetter, Name: string(p.Letter)}
	case p.Group != 0:
		return deadletter.GroupTarget(p.Group)
	}
	return deadletter.Target{Kind: deadletter.TargetBinding, Name: p.Queue}
}

func bindingText(p deadletter.Pick) string {
	text := "letters of " + deadletter.Visible(p.Queue)
	if p.Key != "" {
		text += " with routing key " + deadletter.Visible(p.Key)
	}
	if p.Path != "" {
		return "messages in the member " + deadletter.Visible(p.Path) + " of " + text + " are read as " + p.Type
	}
	return text + " are read as " + p.Type
}

// orNotFound returns ErrNotFound if err is sql.ErrNoRows. Otherwise it returns err. The parameter
// "object" names the object that was looked up.
func orNotFound(object string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return deadletter.NoSuch("%s", object)
	}
	return err
}

// RemovePick removes a pick. The letters to which the pick applied are then read again. RemovePick
// returns ErrNotFound if no pick has that id.
func (s *Store) RemovePick(ctx context.Context, id int64, by string, fits func(glob, queue string) bool) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var p deadletter.Pick
		var letter, random, group sql.NullInt64
		var queue, key sql.NullString
		err := t.row(`SELECT p.letter, l.random, p.grp, p.queue, p.key, p.path, p.type FROM picks p
			LEFT JOIN letters l ON l.id = p.letter WHERE p.id = $1`, []any{id},
			&letter, &random, &group, &queue, &key, &p.Path, &p.Type)
		if err != nil {
			return orNotFound(fmt.Sprintf("pick %d", id), err)
		}
		if _, err := t.exec(`DELETE FROM picks WHERE id = $1`, id); err != nil {
			return err
		}
		r := deadletter.Reread{Why: "a pick of " + p.Type + " that was removed", Hides: true}
		what := ""
		switch {
		case letter.Valid:
			p.Letter = deadletter.NewID(letter.Int64, uint64(random.Int64))
			what = "this letter is no longer read as " + p.Type + " by choice"
		case group.Valid:
			p.Group = deadletter.GroupID(group.Int64)
			what = fmt.Sprintf("letters of %s are no longer read as %s by choice", p.Group, p.Type)
		default:
			p.Queue, p.Key = queue.String, key.String
			r.Queues = func(queue string) bool { return fits(p.Queue, queue) }
			what = "no longer: " + bindingText(p)
		}
		r.Letter, r.Group = p.Letter, p.Group
		if err := t.audit(deadletter.Once(deadletter.ActPickRemoved, by, what, pickTarget(p))); err != nil {
			return err
		}
		return t.reread(r)
	})
}
