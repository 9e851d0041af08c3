package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ErrNames means that two brokers claim the same letters. The configuration gives a broker a name
// under which the store has the letters of another broker.
var ErrNames = errors.New("two brokers claim the same letters")

// calledKey returns the key under which the table meta stores the last name of a broker: the name
// that the broker had at the last start. The value is stored only if this name was not the first
// name of the broker. The parameter "firstName" is the broker's first name.
func calledKey(firstName string) string { return "broker " + firstName }

// takeOver gives configured brokers the data that is stored under their earlier names. In the store
// file, a broker has its first name: the earliest of its names that the file contains. If the
// configuration did not mention this first name for some time, the file also contains data under a
// later name. In that case, takeOver moves the data to the first name.
func (s *Store) takeOver(ctx context.Context) error {
	var moved int64
	err := s.tx(ctx, bulk, func(t *tx) error {
		for i := range s.known.list {
			b := &s.known.list[i]
			if err := t.identify(b); err != nil {
				return err
			}
			for _, alias := range s.known.names(b.Name) {
				n, err := t.unite(alias, s.known.firstName(b.Name), b.Name)
				if err != nil {
					return fmt.Errorf("give broker %s what came in for broker %s: %w", b.Name, alias, err)
				}
				moved += n
			}
		}
		return nil
	})
	if moved > 0 {
		s.log.Info(
			"letters of renamed brokers belong to them again; their groups are found again in the background",
			"letters", moved,
		)
	}
	return err
}

// identify finds out under which name the store file contains a broker's letters, and records the
// broker's present name. At the last start, these letters may have belonged to another broker of
// the configuration. In that case, identify returns an error that wraps ErrNames, because they
// still belong to that other broker.
func (t *tx) identify(b *Broker) error {
	known := &t.s.known
	first := b.Name
	if len(b.Was) > 0 {
		args := []any{}
		for _, name := range known.names(b.Name) {
			args = append(args, name)
		}
		in := placeholders(1, len(args))
		err := t.row(`SELECT broker FROM (SELECT broker, 0 AS later, id FROM origins WHERE id > 0 AND broker IN (`+in+`)
			UNION ALL SELECT broker, 1, id FROM inboxes WHERE broker IN (`+in+`)) ORDER BY later, id LIMIT 1`, args, &first)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		known.setFirstName(b, first)
	}
	called, err := t.lastName(first)
	if err != nil {
		return err
	}
	if _, other := known.all[called]; other && called != b.Name {
		return fmt.Errorf("%w: the letters of broker %s are stored under %s, the first name of that broker, but broker %s of the configuration claims this name: add was: [%s] to the entry of broker %s, and give the other broker a name that no broker has had",
			ErrNames, called, first, b.Name, first, called)
	}
	detail := fmt.Sprintf("broker %s has the letters of broker %s", b.Name, first)
	switch {
	case first == b.Name && called != "":
		detail = fmt.Sprintf("broker %s, which was called %s, has its first name again", b.Name, called)
		_, err = t.exec(`DELETE FROM meta WHERE key = $1`, calledKey(first))
	case first != b.Name && called != b.Name:
		_, err = t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
			SET value = excluded.value`, calledKey(first), b.Name)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return t.audit(deadletter.Once(deadletter.ActBrokerRenamed, deadletter.Service.Name, detail, deadletter.Target{
		Kind: deadletter.TargetBroker,
		Name: b.Name,
	}))
}

// lastName returns the name that a broker had at the last start. The parameter "firstName" is the
// first name that this broker ever had. If the broker had its first name at the last start,
// lastName returns "". It also returns "" if there is no broker with this first name.
func (t *tx) lastName(firstName string) (called string, err error) {
	err = t.row(`SELECT value FROM meta WHERE key = $1`, []any{calledKey(firstName)}, &called)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return called, err
}

// unite moves everything that is stored under an alias of a broker to the broker's first name. It
// returns the number of moved letters. The origins of the alias keep their rows in the table, but
// nothing belongs to them any more.
func (t *tx) unite(alias, first, present string) (int64, error) {
	if alias == first {
		return 0, nil
	}
	if err := t.uniteInboxes(alias, first); err != nil {
		return 0, err
	}
	// The temporary table "became" contains those origins of the alias that have data, each with
	// its new origin. The new origin is the one of the same queue under the broker's first name. If
	// there is no such origin, the origin of the alias is mapped to itself, and later its row gets
	// the first name.
	for _, text := range []string{
		`CREATE TEMP TABLE IF NOT EXISTS became (was INTEGER PRIMARY KEY, is_now INTEGER NOT NULL)`,
		`DELETE FROM became`,
	} {
		if _, err := t.exec(text); err != nil {
			return 0, err
		}
	}
	done, err := t.exec(`INSERT INTO became (was, is_now) SELECT o.id, coalesce(f.id, o.id) FROM origins o
		LEFT JOIN origins f ON f.broker = $2 AND f.vhost = o.vhost AND f.queue = o.queue
		WHERE o.broker = $1 AND o.id > 0 AND (f.id IS NULL OR EXISTS (SELECT 1 FROM counters c WHERE c.origin = o.id
		AND c.n <> 0) OR EXISTS (SELECT 1 FROM groups g WHERE g.origin = o.id)
			OR EXISTS (SELECT 1 FROM overrides r WHERE r.origin = o.id) OR EXISTS (SELECT 1 FROM pauses p
			WHERE p.origin = o.id) OR EXISTS (SELECT 1 FROM breakers b WHERE b.origin = o.id))`, alias, first)
	if err != nil {
		return 0, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	letters, err := t.regroup(present, alias)
	if err != nil {
		return 0, err
	}
	if _, err := t.exec(`UPDATE origins SET broker = $1, checksum = NULL WHERE id IN (SELECT was FROM became
		WHERE was = is_now)`, first); err != nil {
		return 0, err
	}
	if _, err := t.exec(`DELETE FROM became WHERE was = is_now`); err != nil {
		return 0, err
	}
	for _, text := range uniteSQL {
		if _, err := t.exec(text); err != nil {
			return 0, err
		}
	}
	return letters, t.uniteSelections()
}

// regroup ensures that letters are put into groups under the broker's first name. It does this for
// the letters of all origins in the temporary table "became", by adding them to the lists of
// letters that are read again and indexed again. When a letter is read again, it gets the new
// group.
func (t *tx) regroup(present, alias string) (int64, error) {
	const theirs = `SELECT id FROM letters WHERE origin IN (SELECT was FROM became)
		AND state NOT IN ('received', 'purged')`
	done, err := t.exec(`INSERT INTO unread (letter) ` + theirs + ` ON CONFLICT DO NOTHING`)
	if err != nil {
		return 0, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, err
	}
	if _, err := t.exec(`INSERT INTO unindexed (letter) ` + theirs + ` ON CONFLICT DO NOTHING`); err != nil {
		return 0, err
	}
	// The key of a group contains the name of its broker, so the letters get new groups. Version 1
	// marks the old groups as groups of an older version of the grouping. For such groups, repick
	// copies the types that people picked to the new groups.
	if _, err := t.exec(`UPDATE groups SET version = 1 WHERE origin IN (SELECT was FROM became)`); err != nil {
		return 0, err
	}
	_, err = t.exec(`INSERT INTO rereads (why, at, listed, total)
		VALUES ($1, $2, 1, $3)`, fmt.Sprintf("broker %s, which was %s as well", present, alias), t.now, n)
	return n, err
}

// uniteSQL contains the SQL that moves data from the origins of an alias to the origins of the
// broker's first name. Numbers are added up. If both names have a pause or a breaker for a queue,
// the one of the first name stays. If both names have a redirect for a queue, the later redirect
// stays.
var uniteSQL = slices.Concat(
	[]string{`UPDATE letters SET origin = coalesce((SELECT is_now FROM became
		WHERE was = letters.origin), origin), target = coalesce((SELECT is_now FROM became
		WHERE was = letters.target), target)
		WHERE origin IN (SELECT was FROM became) OR target IN (SELECT was FROM became)`},
	unitedSum("counters", "state, %s, type, reason, grp, severity"), unitedSum("readings", "%s, type, reading"),
	unitedSum("learned", "%s, key, type"), unitedSum("operation_counts", "operation, %s, result"),
	unitedRows("pauses", "%s, grp, reason, by, at"), unitedRows("breakers", "%s, grp, state, why, since, until, wait"),
	unitedRows("resumed", "%s, grp, at"),
	[]string{
		`DELETE FROM runs WHERE origin IN (SELECT was FROM became UNION SELECT is_now FROM became)`,
		`DELETE FROM overrides WHERE id IN (SELECT min(o.id) FROM overrides o LEFT JOIN became b ON b.was = o.origin
			GROUP BY coalesce(b.is_now, o.origin) HAVING count(*) > 1)`,
		`UPDATE overrides SET origin = (SELECT is_now FROM became WHERE was = overrides.origin) WHERE origin IN
			(SELECT was FROM became)`,
		`UPDATE operation_letters SET origin = (SELECT is_now FROM became WHERE was = operation_letters.origin)
			WHERE origin IN (SELECT was FROM became)`,
		`UPDATE groups SET origin = (SELECT is_now FROM became WHERE was = groups.origin) WHERE origin IN (SELECT was
			FROM became)`,
	},
)

// unitedSum returns the SQL statements that move the rows of a table from the origins of an alias
// to the origins of the broker's first name. If the table already has a row with the same key
// there, the numbers in column n are added up.
func unitedSum(table, key string) []string {
	return []string{
		`INSERT INTO ` + table + ` (` + fmt.Sprintf(key, "origin") + `, n) SELECT ` + fmt.Sprintf(key, "b.is_now") +
			`, n FROM ` + table + ` t JOIN became b ON b.was = t.origin WHERE true ON CONFLICT DO UPDATE
				SET n = n + excluded.n`,
		`DELETE FROM ` + table + ` WHERE origin IN (SELECT was FROM became)`,
	}
}

// unitedRows returns the SQL statements that move the rows of a table from the origins of an alias
// to the origins of the broker's first name. If the table already has a row with the same key
// there, that row stays, and the row of the alias is deleted.
func unitedRows(table, columns string) []string {
	return []string{
		`INSERT INTO ` + table + ` (` + fmt.Sprintf(columns, "origin") + `) SELECT ` +
			fmt.Sprintf(columns, "b.is_now") + ` FROM ` + table + ` t JOIN became b ON b.was = t.origin WHERE true
				ON CONFLICT DO NOTHING`,
		`DELETE FROM ` + table + ` WHERE origin IN (SELECT was FROM became)`,
	}
}

// uniteSelections changes frozen selections: it replaces the origins of an alias by those of the
// broker's first name. A frozen selection contains the letters for which an operation has no rows
// yet.
func (t *tx) uniteSelections() error {
	type part struct {
		operation, part int64
		letters         []byte
	}
	became, parts := map[int64]int64{}, []part{}
	rows, err := t.query(`SELECT was, is_now FROM became`)
	if err != nil {
		return err
	}
	if err := scan(rows, func() error {
		var was, now int64
		err := rows.Scan(&was, &now)
		became[was] = now
		return err
	}); err != nil {
		return err
	}
	if rows, err = t.query(`SELECT operation, part, letters FROM operation_selections`); err != nil {
		return err
	}
	if err := scan(rows, func() error {
		var p part
		err := rows.Scan(&p.operation, &p.part, &p.letters)
		parts = append(parts, p)
		return err
	}); err != nil {
		return err
	}
	for _, p := range parts {
		list, err := decodePicked(p.letters)
		if err != nil {
			return err
		}
		for i := range list {
			if now, ok := became[list[i].origin]; ok {
				list[i].origin = now
			}
		}
		if _, err := t.exec(`UPDATE operation_selections SET letters = $3 WHERE operation = $1
			AND part = $2`, p.operation, p.part, encodePicked(list)); err != nil {
			return err
		}
	}
	return nil
}

// uniteInboxes moves the inboxes of an alias to the broker's first name. If both names have
// sessions of one inbox, the state of the newer session is kept, and the window that the older
// session left open is closed.
func (t *tx) uniteInboxes(alias, first string) error {
	type pair struct{ was, now sql.NullInt64 }
	var pairs []pair
	rows, err := t.query(`SELECT a.id, f.id FROM inboxes a LEFT JOIN inboxes f ON f.broker = $2 AND f.vhost = a.vhost
		AND f.queue = a.queue
		WHERE a.broker = $1 AND (f.id IS NULL OR a.session > 0)`, alias, first)
	if err != nil {
		return err
	}
	if err := scan(rows, func() error {
		var p pair
		err := rows.Scan(&p.was, &p.now)
		pairs = append(pairs, p)
		return err
	}); err != nil {
		return err
	}
	for _, p := range pairs {
		if !p.now.Valid {
			if _, err := t.exec(`UPDATE inboxes SET broker = $2, checksum = NULL
				WHERE id = $1`, p.was, first); err != nil {
				return err
			}
			continue
		}
		for _, text := range []string{
			`UPDATE windows SET settled_at = committed_at WHERE inbox IN ($1, $2) AND settled_at IS NULL AND id <
				(SELECT max(id) FROM windows WHERE inbox IN ($1, $2) AND settled_at IS NULL)`,
			`UPDATE inboxes SET (marker, restarted_at, prefetch, at_stake) =
				(SELECT marker, restarted_at, prefetch, at_stake FROM inboxes WHERE id = $1)
				WHERE id = $2 AND (SELECT coalesce(max(id), 0) FROM windows WHERE inbox = $1) >=
				(SELECT coalesce(max(id), 0) FROM windows WHERE inbox = $2)`,
			`UPDATE inboxes SET session = max(session, (SELECT session FROM inboxes WHERE id = $1)) WHERE id = $2`,
			`UPDATE windows SET inbox = $2 WHERE inbox = $1`,
			`UPDATE letters SET inbox = $2 WHERE inbox = $1`,
			`UPDATE inboxes SET session = 0, marker = '', restarted_at = NULL, prefetch = 0, at_stake = 0 WHERE id = $1
				AND id <> $2`,
		} {
			if _, err := t.exec(text, p.was, p.now); err != nil {
				return err
			}
		}
	}
	return nil
}
