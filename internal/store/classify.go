package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// NextReceived returns up to n received letters with their bodies, oldest first, without the
// letters of the list "except", whose verdicts are not recorded yet. While the caller reads a
// letter, the letter must be registered with Reading. Only one classifier may call NextReceived at
// a time.
//
// If a letter has already crashed the process, it is returned alone, and only if there are no other
// letters. If it then crashes the process again, no verdict about another letter is lost. If the
// process dies for another reason, it is unlikely that it was reading this letter.
func (s *Store) NextReceived(ctx context.Context, n int, except ...deadletter.ID) ([]deadletter.Letter, error) {
	return s.innocentFirst(ctx, `FROM letters l WHERE l.state = 'received'`, `l.id`, n, except...)
}

// NewestReceived is like NextReceived, but the newest letters are first.
func (s *Store) NewestReceived(ctx context.Context, n int, except ...deadletter.ID) ([]deadletter.Letter, error) {
	return s.innocentFirst(ctx, `FROM letters l WHERE l.state = 'received'`, `l.id DESC`, n, except...)
}

// innocentFirst returns letters with their bodies: up to n letters, none of which has ever crashed
// the process, without those of the list "except". If there are no such letters, and "except" is
// empty, it returns one letter that has crashed the process. The parameters fromClause and
// orderClause are the SQL clauses that select and sort the letters.
func (s *Store) innocentFirst(
	ctx context.Context, fromClause, orderClause string, n int, except ...deadletter.ID,
) ([]deadletter.Letter, error) {
	args := []any{n}
	for _, id := range except {
		serial, _, _ := id.Split()
		args = append(args, serial)
	}
	if len(except) > 0 {
		fromClause += ` AND l.id NOT IN (` + placeholders(2, len(except)) + `)`
	}
	query := `SELECT l.id, ` + heldSize + ` ` + fromClause + ` AND l.crashes %s ORDER BY ` + orderClause + ` LIMIT $1`
	serials, err := s.serials(ctx, fmt.Sprintf(query, `= 0`), args...)
	if err == nil && len(serials)+len(except) == 0 {
		serials, err = s.serials(ctx, fmt.Sprintf(query, `> 0`), 1)
	}
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	return s.lettersBySerial(ctx, serials)
}

// maxRead limits the total size of the bodies in one batch, in bytes. A single larger body is read
// alone.
const maxRead = 32 << 20

// serials runs a query for the serials and sizes of letters. It returns the serials of those
// letters that fit into one batch. The first column of the query must be the serial, and the second
// column must be the size in bytes. The first letter is always returned.
func (s *Store) serials(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := s.ask(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var serials []int64
	bytes := 0
	err = scan(rows, func() error {
		var serial int64
		var size int
		if err := rows.Scan(&serial, &size); err != nil {
			return err
		}
		if bytes += size; bytes <= maxRead || len(serials) == 0 {
			serials = append(serials, serial)
		}
		return nil
	})
	return serials, err
}

// Classify records verdicts in one transaction. A verdict consists of the state, origin, type and
// group of a letter, the values shown in lists, an event and a notice. Classify skips letters that
// are no longer in the state "received".
func (s *Store) Classify(ctx context.Context, verdicts []deadletter.Classified) error {
	err := s.tx(ctx, classify, func(t *tx) error {
		groups := map[[32]byte]*grouped{}
		recent, err := t.annotatedLately()
		if err != nil {
			return err
		}
		records, err := t.verdictRecords(verdicts)
		if err != nil {
			return err
		}
		rows := &verdictRows{}
		for i := range verdicts {
			if err := t.recordVerdict(&verdicts[i], records, groups, rows); err != nil {
				return err
			}
		}
		if err := t.storeVerdicts(rows); err != nil {
			return err
		}
		for _, v := range rows.list {
			if err := t.recordExplanation(v.Classified, v.record.id, recent); err != nil {
				return err
			}
		}
		for _, g := range groups {
			if err := t.growGroup(g); err != nil {
				return err
			}
		}
		return t.storeUnexplainedKeys()
	})
	if err != nil {
		return fmt.Errorf("record %d verdicts: %w", len(verdicts), err)
	}
	return nil
}

// verdictRecords reads the letters of verdicts.
func (t *tx) verdictRecords(verdicts []deadletter.Classified) (map[deadletter.ID]*record, error) {
	var ids []any
	for i := range verdicts {
		serial, _, _ := verdicts[i].Letter.Split()
		ids = append(ids, serial)
	}
	records := make(map[deadletter.ID]*record, len(ids))
	for query, args := range manyAtOnce(`SELECT `+recordColumns+` FROM letters l WHERE l.id IN (VALUES rows)`, 1, ids) {
		found, err := t.records(query, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			records[deadletter.NewID(r.id, uint64(r.random))] = r
		}
	}
	return records, nil
}

// verdictRows are verdicts that a transaction has not stored yet.
type verdictRows struct {
	list                 []verdictOn
	letters, ids, events []any // values for the rows
}

// verdictOn is a verdict with the letter that it is about.
type verdictOn struct {
	*deadletter.Classified
	record *record
}

var (
	verdictNames = append(decidedColumns(&deadletter.Row{}, &keys{}).names(),
		"rule", "held_from", "unpublishable", "waiter", "wait", "reading", "told_by", "told_rest", "overdue")
	updateVerdicts = `WITH v (letter, ` + strings.Join(verdictNames, `, `) + `) AS (VALUES rows) UPDATE letters SET
		` + fromTable("v", verdictNames) + `, changed_at = ?, crashes = CASE WHEN crashes >= ? THEN crashes ELSE 0 END,
		suspect = CASE WHEN v.state = 'held' THEN suspect ELSE 0 END, nacks = 0, unguarded = 0, imported = ''
		FROM v WHERE id = v.letter`
)

// storeVerdicts stores the verdicts that recordVerdict has collected. Until then, queries find the
// letters as they were.
func (t *tx) storeVerdicts(v *verdictRows) error {
	if err := t.many(updateVerdicts, 1+len(verdictNames), v.letters, t.now, deadletter.MaxCrashes); err != nil {
		return err
	}
	if err := t.many(`INSERT INTO unindexed (letter) VALUES rows ON CONFLICT DO NOTHING`, 1, v.ids); err != nil {
		return err
	}
	if err := t.many(`DELETE FROM added WHERE letter IN (VALUES rows)`, 1, v.ids); err != nil {
		return err
	}
	for _, on := range v.list {
		if err := t.addFields(on.record.id, on.Added); err != nil {
			return err
		}
		if on.Unwrapped != nil {
			if err := t.addRevision(on.record, on.Unwrapped); err != nil {
				return err
			}
		}
	}
	return t.many(`INSERT INTO events (letter, at, kind, actor, detail) VALUES rows`, 5, v.events)
}

// recordVerdict adds a verdict to "rows", unless its letter is no longer in the state "received".
func (t *tx) recordVerdict(
	c *deadletter.Classified, records map[deadletter.ID]*record, groups map[[32]byte]*grouped, rows *verdictRows,
) error {
	r := records[c.Letter]
	if r == nil {
		return fmt.Errorf("letter %s: %w", c.Letter, sql.ErrNoRows)
	}
	to, ok := r.state.On(c.To)
	if !ok {
		return nil
	}
	serial := r.id
	origin, err := t.originID(c.Origin)
	if err == nil && origin == 0 {
		origin, err = t.unknownOriginOfLetter(serial)
	}
	if err != nil {
		return err
	}
	typ, err := t.typeID(c.Type)
	if err != nil {
		return err
	}
	g, err := t.join(c, groups, origin, typ, r.receivedAt)
	if err != nil {
		return err
	}
	group := g.id
	if at, died, err := t.diedAt(c, serial); err != nil {
		return err
	} else if died {
		g.died = append(g.died, at)
	}
	heldFrom := ""
	if to == deadletter.StateHeld {
		heldFrom = string(deadletter.StateReceived)
	}
	told, err := t.whenTold(c, r, to, group)
	if err != nil {
		return err
	}
	overdue := told.already && to == deadletter.StateScheduled
	t.changeRecord(r, func() {
		r.state, r.origin, r.typ, r.reading, r.reason = to, origin, typ, c.Reading, c.Reason
		r.group, r.severity, r.overdue = group, string(c.Severity), overdue
	})
	row, known := rowOf(c, to, group), keys{origin: origin, typ: typ}
	rows.list = append(rows.list, verdictOn{c, r})
	rows.letters = append(
		decidedColumns(&row, &known).values(append(rows.letters, serial)...), c.Rule, heldFrom, c.Unpublishable,
		c.Waiter, c.Wait.Milliseconds(), string(c.Reading), told.by, told.rest, overdue,
	)
	rows.ids = append(rows.ids, serial)
	rows.events = append(rows.events, serial, t.now, string(to), deadletter.Service.Name, c.Why)
	if c.Reading.Typed() {
		t.moves.learned[learned{origin, c.Origin.RoutingKey, typ}]++
		t.moves.runs[origin] = t.moves.runs[origin].afterLetter(typ)
	}
	if err := t.recordTrial(serial, c.Tried); err != nil {
		return err
	}
	if (to == deadletter.StateDead || to == deadletter.StateHeld) && !c.Imported && !told.already {
		g.deaths = append(g.deaths, t.deathOf(c))
	}
	return nil
}

// diedAt returns the time at which a letter died. The result "ok" is false if the group of the
// letter must not record this time as a death. The group must not record it for an imported letter.
// The same applies to a released letter about which the rules decide again, if the time of its
// death is unknown.
func (t *tx) diedAt(c *deadletter.Classified, serial int64) (at time.Time, ok bool, err error) {
	if c.Imported {
		return at, false, nil
	}
	released := false
	if c.DiedAt.IsZero() || c.Repeated {
		err = t.row(`SELECT unguarded FROM letters WHERE id = $1`, []any{serial}, &released)
	}
	return t.deathOf(c).At, !released, err
}

// deathOf returns the death of a letter that needs people, in the form in which a group records
// deaths.
func (t *tx) deathOf(c *deadletter.Classified) deadletter.GroupDeath {
	d := deadletter.GroupDeath{At: c.DiedAt, Version: c.Version, Severity: c.Severity, Channels: c.Channels}
	if d.At.IsZero() || c.Repeated {
		d.At = time.UnixMilli(t.now)
	}
	return d
}

// grouped is a group that letters join in one transaction.
type grouped struct {
	id, first, last int64
	died            []time.Time             // times at which the letters of the group died
	deaths          []deadletter.GroupDeath // deaths of the letters that need people
	from            int64                   // the group in which the letters were before; 0 = none
	// no notice was sent yet about the group in which the letters were before, so this group needs
	// a notice of its own
	own bool
}

// join finds or creates the group in which a verdict puts a letter. The parameter "receivedAt" is
// the time at which the letter was received. A letter that dlo made for a trial joins no group.
func (t *tx) join(
	c *deadletter.Classified, groups map[[32]byte]*grouped, origin, typ, receivedAt int64,
) (*grouped, error) {
	if c.Tried {
		return &grouped{}, nil
	}
	g := groups[c.GroupKey]
	if g == nil {
		id, err := t.groupID(c, origin, typ, receivedAt)
		if err != nil {
			return nil, err
		}
		g = &grouped{id: id, first: receivedAt, last: receivedAt}
		groups[c.GroupKey] = g
	}
	g.first, g.last = min(g.first, receivedAt), max(g.last, receivedAt)
	return g, nil
}

// growGroup extends a group's time range to include the letters that joined the group. It also
// records the deaths of those letters that need people.
func (t *tx) growGroup(g *grouped) error {
	if err := t.recordPulse(g); err != nil {
		return err
	}
	return t.recordDeaths(g.id, g.deaths)
}

// groupID returns the id of the group whose key is in a verdict. It creates the group if necessary.
func (t *tx) groupID(c *deadletter.Classified, origin, typ, receivedAt int64) (int64, error) {
	var id, was int64
	var text, reason string
	err := t.row(
		`SELECT id, error, type, reason FROM groups WHERE key = $1`, []any{c.GroupKey[:]}, &id, &text, &was, &reason,
	)
	// the group was created by a version in which the type names of frameworks did not count as
	// types
	if err == nil && was == 0 && typ != 0 {
		named := text == "" && c.Error == "" // without error texts, all letters of the group have this type
		if _, err = t.exec(`UPDATE groups SET type = $2, mixed = CASE WHEN $4 THEN mixed ELSE 1 END, title = CASE
			WHEN $4 THEN $3 ELSE title END WHERE id = $1`, id, typ, c.GroupTitle, named); err == nil {
			was = typ
		}
	}
	if err == nil && text == "" && c.Error != "" { // all earlier letters of the group were purged
		_, err = t.exec(`UPDATE groups SET title = $2, error = $3 WHERE id = $1`, id, c.GroupTitle, c.Error)
	}
	// a rule put letters of different types or reasons into the group
	if err == nil && (was != typ || reason != c.Reason) {
		_, err = t.exec(`UPDATE groups SET mixed = 1 WHERE id = $1 AND mixed = 0`, id)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if err := t.row(`INSERT INTO groups (key, version, title,
		origin, type, reason, error, severity, status, cause, first_at, last_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'new', $9, $10, 0) RETURNING id`,
		[]any{
			c.GroupKey[:], c.GroupVersion, c.GroupTitle, origin, typ, c.Reason, c.Error, string(c.Severity),
			nonNil(c.GroupCause), receivedAt,
		}, &id); err != nil {
		return 0, err
	}
	return id, nil
}
