package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// place is a queue with the names of its vhost and of its broker.
type place struct{ Broker, VHost, Queue string }

// origin converts a place to an origin.
func (p place) origin() deadletter.Origin {
	return deadletter.Origin{Broker: p.Broker, VHost: p.VHost, Queue: p.Queue}
}

// names caches the small tables of names in memory. It maps names to ids and ids to names. At the
// end of each transaction, the caller must call the method "commit" or the method "rollback".
type names struct {
	mu      sync.RWMutex
	origins table[place]
	types   table[string]
	inboxes table[place]
	commits int            // number of transactions that added names
	damaged map[int64]bool // origins whose names are not those that dlo stored; set when the store is opened
	altered []string       // all rows of which this is true, with the names in them
}

// table maps values to row ids, and row ids to values.
type table[T comparable] struct {
	ids    map[T]int64
	values map[int64]T
	added  map[int64]bool // rows that the running transaction has added
}

// put adds a row.
func (t *table[T]) put(id int64, v T) {
	t.remember(id, v)
	t.ids[v] = id
}

// remember adds a row that can be looked up by its id, but not by its value.
func (t *table[T]) remember(id int64, v T) {
	if t.values == nil {
		t.ids, t.values, t.added = map[T]int64{}, map[int64]T{}, map[int64]bool{}
	}
	t.values[id] = v
}

// undo removes the rows that the running transaction has added.
func (t *table[T]) undo() {
	for id := range t.added {
		if v := t.values[id]; t.ids[v] == id {
			delete(t.ids, v)
		}
		delete(t.values, id)
	}
	clear(t.added)
}

// load reads the tables of names. If "fill" is true, it stores the checksums that are missing.
func (n *names) load(ctx context.Context, db *sql.Conn, fill bool) error {
	n.damaged = map[int64]bool{}
	for _, places := range []struct {
		into  *table[place]
		table string
	}{{&n.origins, "origins"}, {&n.inboxes, "inboxes"}} {
		rows, err := db.QueryContext(ctx, `SELECT id, broker, vhost, queue, checksum FROM `+places.table)
		if err != nil {
			return err
		}
		missing := map[int64]int64{}
		if err := scan(rows, func() error {
			var id int64
			var p place
			var sum sql.NullInt64
			err := rows.Scan(&id, &p.Broker, &p.VHost, &p.Queue, &sum)
			n.verify(missing, places.table, id, sum, p.Broker, p.VHost, p.Queue)
			if id < 0 {
				places.into.remember(id, place{})
			} else {
				places.into.put(id, p)
			}
			return err
		}); err != nil {
			return err
		}
		if fill {
			if err := storeChecksums(ctx, db, places.table, missing); err != nil {
				return err
			}
		}
	}
	rows, err := db.QueryContext(ctx, `SELECT id, name, checksum FROM types`)
	if err != nil {
		return err
	}
	missing := map[int64]int64{}
	if err := scan(rows, func() error {
		var id int64
		var name string
		var sum sql.NullInt64
		err := rows.Scan(&id, &name, &sum)
		n.types.put(id, name)
		n.verify(missing, "types", id, sum, name)
		return err
	}); err != nil || !fill {
		return err
	}
	return storeChecksums(ctx, db, "types", missing)
}

// verify compares the names in a row with their checksum, and remembers if they differ. If an older
// dlo has stored the row, it adds the checksum to "missing".
func (n *names) verify(missing map[int64]int64, table string, id int64, sum sql.NullInt64, names ...string) {
	if now := nameChecksum(names...); !sum.Valid {
		missing[id] = now
	} else if sum.Int64 != now {
		n.altered = append(n.altered, fmt.Sprintf("%s %d: %q", table, id, names))
		n.damaged[id] = n.damaged[id] || table == "origins"
	}
}

// commit makes the names that a transaction has added available to idsWhere.
func (n *names) commit() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.origins.added)+len(n.types.added)+len(n.inboxes.added) > 0 {
		n.commits++
	}
	clear(n.origins.added)
	clear(n.types.added)
	clear(n.inboxes.added)
}

func (n *names) rollback() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.origins.undo()
	n.types.undo()
	n.inboxes.undo()
}

func (n *names) origin(id int64) place {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.origins.values[id]
}

// isDamaged reports whether the names of an origin are not those that dlo stored. An origin that is
// not known may be an inbox, whose names are only shown.
func (n *names) isDamaged(origin int64) bool { return n.damaged[origin] }

func (n *names) typeName(id int64) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.types.values[id]
}

func (n *names) inbox(id int64) place {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.inboxes.values[id]
}

// findOrigin returns the row id of an origin. The second result is false if the store does not know
// this origin.
func (n *names) findOrigin(o deadletter.Origin) (int64, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	id, ok := n.origins.ids[place{o.Broker, o.VHost, o.Queue}]
	return id, ok
}

// originsWhere returns the ids of the origins that match. Letters without an origin have the id 0,
// for which all names are empty. The result contains 0 if empty names match.
func (n *names) originsWhere(match func(place) bool) []any {
	return idsWhere(n, &n.origins, match)
}

// generation returns a number that grows whenever a transaction adds names. If the number is still
// the same, idsWhere returns the same ids as before.
func (n *names) generation() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.commits
}

// A letter of unknown origin has the origin 0 until dlo has decided what to do with the letter.
// After that, its origin is the negative id of its inbox. Such an origin has no names.

func unknownOrigin(origin int64) bool { return origin <= 0 }

func unknownOriginIn(inbox int64) int64 { return -inbox }

// placeOf returns the place to which letters belong, as deadletter.Letter.Place does. The parameter
// "inbox" is used only if the origin is 0.
func (n *names) placeOf(origin, inbox int64) place {
	switch {
	case origin > 0:
		return n.origin(origin)
	case origin < 0:
		return n.inbox(-origin)
	}
	return n.inbox(inbox)
}

// unknownOriginsWhere returns the ids of the unknown origins of all inboxes that match.
func (n *names) unknownOriginsWhere(match func(place) bool) []any {
	ids := idsWhere(n, &n.inboxes, match)
	for i := range ids {
		ids[i] = unknownOriginIn(ids[i].(int64))
	}
	return ids
}

// typesWhere returns the ids of the types whose names match. Letters without a type have the empty
// name.
func (n *names) typesWhere(match func(string) bool) []any {
	return idsWhere(n, &n.types, match)
}

// idsWhere returns the ids of the rows that match. It leaves out rows that the running transaction
// has added. If this transaction is rolled back, the id of such a row can get another value before
// the caller uses it.
func idsWhere[T comparable](n *names, known *table[T], match func(T) bool) []any {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var ids []any
	for id, v := range known.values {
		if !known.added[id] && match(v) {
			ids = append(ids, id)
		}
	}
	return ids
}

// originID returns the row id of an origin. It creates the row if necessary. It returns 0 if the
// queue is unknown.
func (t *tx) originID(o deadletter.Origin) (int64, error) {
	if o.Queue == "" {
		return 0, nil
	}
	p := place{o.Broker, o.VHost, o.Queue}
	return intern(t, &t.s.names.origins, p, `INSERT INTO origins (broker, vhost, queue, checksum)
		VALUES ($1, $2, $3, $4) RETURNING id`, p.Broker, p.VHost, p.Queue)
}

func (t *tx) inboxID(broker, vhost, queue string) (int64, error) {
	p := place{broker, vhost, queue}
	id, err := intern(t, &t.s.names.inboxes, p, `INSERT INTO inboxes (broker, vhost, queue, checksum)
		VALUES ($1, $2, $3, $4) RETURNING id`, p.Broker, p.VHost, p.Queue)
	if err != nil {
		return 0, err
	}
	return id, t.unknownOriginOf(id)
}

// unknownOriginOf creates the row for letters of unknown origin in an inbox, if the row does not
// exist yet. The row contains the id of the inbox in place of a vhost, so that each inbox has a row
// of its own.
func (t *tx) unknownOriginOf(inbox int64) error {
	n, id := &t.s.names, unknownOriginIn(inbox)
	n.mu.RLock()
	_, ok := n.origins.values[id]
	n.mu.RUnlock()
	if ok {
		return nil
	}
	vhost := strconv.FormatInt(id, 10)
	if _, err := t.exec(`INSERT INTO origins (id, broker, vhost, queue, checksum)
		VALUES ($1, '', $2, '', $3)`, id, vhost, nameChecksum("", vhost, "")); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.origins.remember(id, place{})
	n.origins.added[id] = true
	return nil
}

// unknownOriginOfLetter returns the id of the unknown origin that belongs to a letter's inbox.
func (t *tx) unknownOriginOfLetter(serial int64) (origin int64, err error) {
	var inbox int64
	err = t.row(`SELECT inbox FROM letters WHERE id = $1`, []any{serial}, &inbox)
	return unknownOriginIn(inbox), err
}

func (t *tx) typeID(name string) (int64, error) {
	return intern(t, &t.s.names.types, name, `INSERT INTO types (name, checksum) VALUES ($1, $2) RETURNING id`, name)
}

// intern returns the row id of a value. If there is no row yet, it creates it with the statement
// "insert", whose arguments are the names and their checksum.
func intern[T comparable](t *tx, known *table[T], v T, insert string, names ...string) (int64, error) {
	n := &t.s.names
	n.mu.RLock()
	id, ok := known.ids[v]
	n.mu.RUnlock()
	if ok {
		return id, nil
	}
	var args []any
	for _, name := range names {
		args = append(args, name)
	}
	if err := t.row(insert, append(args, nameChecksum(names...)), &id); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known.put(id, v)
	known.added[id] = true
	return id, nil
}

// scan calls fn for each row. It closes rows, and it returns the first error.
func scan(rows *sql.Rows, fn func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := fn(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// collect returns one value for each row. The function "into" returns the places in a value for the
// columns. It closes rows.
func collect[T any](rows *sql.Rows, into func(*T) []any) (list []T, err error) {
	err = scan(rows, func() error {
		var value T
		err := rows.Scan(into(&value)...)
		list = append(list, value)
		return err
	})
	return list, err
}

// values returns the values of a query with one column. It takes the two results of the query.
func values[T any](rows *sql.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return collect(rows, func(value *T) []any { return []any{value} })
}
