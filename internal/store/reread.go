package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Reread requests that letters be read again in the background. The request survives a crash.
// ListUnread later lists these letters.
func (s *Store) Reread(ctx context.Context, r deadletter.Reread) error {
	return s.tx(ctx, bulk, func(t *tx) error { return t.reread(r) })
}

// reread requests that letters be read again, because of a change. It writes the request in the
// transaction of this change.
func (t *tx) reread(r deadletter.Reread) error {
	var types, origins any
	if r.Types != nil {
		text, _ := json.Marshal(r.Types) // json.Marshal cannot fail here, because the values are only texts
		types = string(text)
	}
	if r.Queues != nil {
		origins = jsonList(t.s.names.originsWhere(func(p place) bool { return r.Queues(p.Queue) }))
	}
	serial, _, _ := r.Letter.Split()
	_, err := t.exec(`INSERT INTO rereads (why, types, origins, letter, grp, at, hides)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.Why, types, origins, positiveOrNull(serial), positiveOrNull(int64(r.Group)), t.now, r.Hides)
	return err
}

// maxListed is the maximum number of letters that one transaction checks in order to list them.
// maxForgotten is that number if it also removes their contents from the index, which takes longer.
// They are limited because ingest waits for the transaction.
const (
	maxListed    = 10_000
	maxForgotten = 1000
)

// ListUnread lists the next letters that must be read again. The result "more" is false if no
// letters are left to list.
func (s *Store) ListUnread(ctx context.Context) (more bool, err error) {
	const open = `SELECT id, types, origins, letter, grp, listed_to, hides FROM rereads WHERE listed = 0
		ORDER BY id LIMIT 1`
	var id, from int64
	var hides bool
	var types, origins sql.NullString
	var letter, group sql.NullInt64
	err = s.askRow(ctx, open, nil, &id, &types, &origins, &letter, &group, &from, &hides)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list letters to be read again: %w", err)
	}
	err = s.tx(ctx, bulk, func(t *tx) error {
		upper, last := from, true
		limit := maxListed
		if hides {
			limit = maxForgotten
		}
		where, args := `id = $1`, []any{letter}
		switch {
		case letter.Valid:
		case group.Valid:
			// the ids of a group's letters are far apart, so one transaction reads all of them
			// through the index
			where, args = `grp = $1 AND grp > 0`, []any{group}
		default:
			if err := t.row(`SELECT coalesce(max(id), 0) FROM (SELECT id FROM letters WHERE id > $1 ORDER BY id
				LIMIT $2)`, []any{from, limit}, &upper); err != nil {
				return err
			}
			last = upper == 0
			where, args = `id > $1 AND id <= $2`, []any{from, upper}
			if types.Valid {
				args = append(args, types.String)
				guessed := `false`
				if hides { // a changed type may fit these letters as well
					guessed = `reading = '` + string(deadletter.ReadByMatch) + `'`
				}
				where += ` AND (NOT ` + bySchema + ` OR ` + guessed + ` OR type IN (SELECT id FROM types
					WHERE name IN (SELECT value FROM json_each($3))))`
			}
			if origins.Valid {
				args = append(args, origins.String)
				where += fmt.Sprintf(` AND origin IN (SELECT value FROM json_each($%d))`, len(args))
			}
		}
		listed := `SELECT id FROM letters WHERE ` + where + ` AND state NOT IN ('received', 'purged')`
		done, err := t.exec(`INSERT INTO unread (letter) `+listed+` ON CONFLICT DO NOTHING`, args...)
		if err != nil {
			return err
		}
		if hides {
			if err := t.forgetContents(listed, args); err != nil {
				return err
			}
		}
		n, _ := done.RowsAffected()
		if _, err = t.exec(`UPDATE rereads SET listed_to = max(listed_to, $2), listed = $3, total = total + $4
			WHERE id = $1`, id, upper, last, n); err != nil || !last {
			return err
		}
		return t.allRead()
	})
	if err != nil {
		return false, fmt.Errorf("list letters to be read again: %w", err)
	}
	return true, nil
}

// forgetContents removes what the search index and the lists show of the letters that a query
// selects.
func (t *tx) forgetContents(letters string, args []any) error {
	for _, text := range []string{
		`DELETE FROM words WHERE rowid IN (` + letters + `)`,
		`DELETE FROM body_fields WHERE letter IN (` + letters + `)`,
		`UPDATE letters SET summary = '' WHERE id IN (` + letters + `) AND summary <> ''`,
		`INSERT INTO unindexed (letter) ` + letters + ` ON CONFLICT DO NOTHING`,
	} {
		if _, err := t.exec(text, args...); err != nil {
			return err
		}
	}
	return nil
}

// NextUnread returns up to n letters that must be read again, newest first, with their bodies.
// While the caller reads a letter, the letter must be registered with Rereading. As in
// NextReceived, letters that have crashed the process come last. Only one reader may call
// NextUnread at a time.
func (s *Store) NextUnread(ctx context.Context, n int) ([]deadletter.Letter, error) {
	return s.innocentFirst(ctx, `FROM unread u JOIN letters l ON l.id = u.letter WHERE true`, `u.letter DESC`, n)
}

// Read records the results of reading letters again, in one transaction. A result consists of the
// type, how the body was read, the summary, the error and the group. The search index is updated
// later. A letter that has changed since NextUnread returned it stays listed.
func (s *Store) Read(ctx context.Context, list []deadletter.Read) error {
	err := s.tx(ctx, bulk, func(t *tx) error {
		groups := map[[32]byte]*grouped{}
		changed := 0
		for i := range list {
			is, err := t.recordReread(&list[i], groups)
			if err != nil {
				return err
			}
			if is {
				changed++
			}
		}
		for _, g := range groups {
			if err := t.growGroup(g); err != nil {
				return err
			}
		}
		if _, err := t.exec(`UPDATE rereads SET changed = changed + $1 WHERE id = (SELECT min(id)
			FROM rereads)`, changed); err != nil {
			return err
		}
		return t.allRead()
	})
	if err == nil {
		err = s.families.load(ctx, s.read) // a group may have taken the place of a merged group
	}
	if err != nil {
		return fmt.Errorf("record %d letters that were read again: %w", len(list), err)
	}
	return nil
}

// recordReread records the result of reading one letter again. It reports whether the letter's type
// changed.
func (t *tx) recordReread(c *deadletter.Read, groups map[[32]byte]*grouped) (bool, error) {
	serial, _, _ := c.Letter.Split()
	r, err := t.record(serial)
	if err != nil {
		return false, err
	}
	decided := r.state != deadletter.StateReceived && r.state != deadletter.StatePurged
	if decided && r.changedAt != c.AsOf.UnixMilli() {
		return false, nil
	}
	if _, err := t.exec(`DELETE FROM unread WHERE letter = $1`, serial); err != nil || !decided {
		return false, err // a received letter will be read soon anyway; a purged letter has no contents
	}
	if err := t.recordUnwrapped(c, r); err != nil {
		return false, err
	}
	if err := t.recordAddedFields(serial, c.Added); err != nil {
		return false, err
	}
	typ, err := t.typeID(c.Type)
	if err != nil {
		return false, err
	}
	origin := r.origin
	if origin == 0 { // dlo decided about the letter before each inbox had an origin for letters of unknown origin
		if origin, err = t.unknownOriginOfLetter(serial); err != nil {
			return false, err
		}
	}
	g, err := t.join(&c.Classified, groups, origin, typ, r.receivedAt)
	if err != nil {
		return false, err
	}
	same := typ == r.typ
	if same && origin == r.origin && c.Reading == r.reading && g.id == r.group {
		if _, err := t.exec(`UPDATE letters SET summary = $2, error = $4, crashes = CASE WHEN crashes >= $3 THEN crashes
			ELSE 0 END WHERE id = $1 AND (summary <> $2 OR error <> $4 OR crashes > 0)`,
			serial, c.Summary, deadletter.MaxCrashes, c.Error); err != nil {
			return false, err
		}
		// JSON that names a type has no type here, but the type says what it hides and how its fields
		// are called
		return false, t.markUnindexed(serial)
	}
	if g.id != r.group { // the old group was paused so that these letters would not be sent
		if _, err := t.exec(`INSERT INTO pauses (origin, grp, reason, by, at) SELECT origin, $3, reason, by, at
			FROM pauses WHERE origin = $1 AND grp = $2 AND grp > 0 ON CONFLICT DO NOTHING`,
			r.origin, r.group, g.id); err != nil {
			return false, err
		}
		if err := t.repick(r.group, g.id, c.GroupVersion); err != nil {
			return false, err
		}
		if err := t.moveToGroup(c, r, g); err != nil {
			return false, err
		}
	}
	was := t.s.names.typeName(r.typ)
	if !same || origin != r.origin || r.reading.Typed() != c.Reading.Typed() {
		if err := t.relearn(r, origin, typ, c.Reading); err != nil {
			return false, err
		}
	}
	t.changeRecord(r, func() { r.origin, r.typ, r.reading, r.group = origin, typ, c.Reading, g.id })
	if _, err := t.exec(`UPDATE letters SET type = $2, reading = $3,
		grp = $4, summary = $5, changed_at = $6, crashes = CASE WHEN crashes >= $7 THEN crashes
		ELSE 0 END, error = $8, origin = $9 WHERE id = $1`,
		serial, typ, string(c.Reading), g.id, c.Summary, t.now, deadletter.MaxCrashes, c.Error, origin); err != nil {
		return false, err
	}
	if err := t.markUnindexed(serial); err != nil || same {
		return false, err
	}
	return true, t.addEvent(serial, 0, "read again", deadletter.Service.Name, readAs(c.Type, was))
}

// recordUnwrapped handles a letter that was stored before dlo unwrapped EasyNetQ errors. It records
// the contents that must be sent for the letter, or why the letter cannot be sent. It does not
// change a letter that is being sent.
func (t *tx) recordUnwrapped(c *deadletter.Read, r *record) error {
	if _, ok := r.state.On(deadletter.RequeueAsked); !ok || r.waitsInBroker(t.now) {
		return nil
	}
	if c.Unwrapped != nil {
		return t.addRevision(r, c.Unwrapped)
	}
	if c.Unpublishable == "" {
		return nil
	}
	_, err := t.exec(`UPDATE letters SET unpublishable = $2 WHERE id = $1`, r.id, c.Unpublishable)
	return err
}

// moveToGroup moves a letter from its old group to a new group.
func (t *tx) moveToGroup(c *deadletter.Read, r *record, g *grouped) error {
	if !c.Late && g.from == 0 && r.group > 0 {
		g.from = r.group
		var err error
		if g.own, err = t.inherit(g.id, r.group); err != nil {
			return err
		}
	}
	if (c.Late || g.own && g.from == r.group) &&
		(r.state == deadletter.StateDead || r.state == deadletter.StateHeld || r.overdue) {
		g.deaths = append(g.deaths, t.deathOf(&c.Classified))
	}
	return nil
}

func readAs(is, was string) string {
	switch {
	case was == "":
		return "as " + is
	case is == "":
		return "no longer as " + was
	}
	return "as " + is + ", not as " + was
}

// markUnindexed adds a letter to the list of letters whose search tokens must be updated.
func (t *tx) markUnindexed(serial int64) error {
	_, err := t.exec(`INSERT INTO unindexed (letter) VALUES ($1) ON CONFLICT DO NOTHING`, serial)
	return err
}

const secondLook = "what their queues have by now"

// If no letters are left that must be read again, allRead ends the rereading. After a schema
// change, the newest letters are read first. At that time, dlo does not yet know whether their
// queue has a single type, so the type of some of these letters may be undecided. If their queue
// has a single type now, allRead requests that they be read once more.
func (t *tx) allRead() error {
	var left, changed bool
	err := t.row(`SELECT EXISTS (SELECT 1 FROM unread) OR EXISTS (SELECT 1 FROM rereads WHERE listed = 0), EXISTS
		(SELECT 1 FROM rereads WHERE types IS NOT NULL AND why != $1)`, []any{secondLook}, &left, &changed)
	if err != nil || left {
		return err
	}
	if _, err := t.exec(`DELETE FROM rereads`); err != nil || !changed {
		return err
	}
	// the next query must also count the letters that this transaction has read
	if err := t.moves.flush(t); err != nil {
		return err
	}
	t.moves = newMoves()
	_, err = t.exec(`INSERT INTO rereads (why, types, origins, at)
		SELECT $1, '[]', json_group_array(DISTINCT origin), $2 FROM readings WHERE n > 0 AND reading IN ($3, $4)
		AND origin IN (SELECT origin FROM readings WHERE n > 0
		AND `+bySchema+` GROUP BY origin HAVING count(DISTINCT type) = 1 AND sum(n) >= $5) HAVING count(*) > 0`,
		secondLook, t.now, string(deadletter.ReadUnknown), string(deadletter.ReadAmbiguous), enoughRun)
	return err
}

// RereadProgress returns how many letters have been read again and how many are left.
func (s *Store) RereadProgress(ctx context.Context) (deadletter.RereadProgress, error) {
	var r deadletter.RereadProgress
	var why sql.NullString
	err := s.askRow(ctx, `SELECT (SELECT group_concat(why, ', ') FROM (SELECT DISTINCT why FROM rereads ORDER BY id DESC
		LIMIT 5)), (SELECT coalesce(sum(total), 0) FROM rereads),
		(SELECT count(*) FROM unread), (SELECT coalesce(sum(changed), 0)
		FROM rereads)`, nil, &why, &r.Total, &r.Left, &r.Changed)
	if r.Why = why.String; err != nil {
		return r, fmt.Errorf("reading again: %w", err)
	}
	r.Total = max(r.Total, r.Left)
	return r, nil
}
