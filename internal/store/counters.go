package store

import (
	"database/sql"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// dims contains the values by which a letter is counted, such as its state and its group. There is
// one counter for each combination of these values.
type dims struct {
	state    deadletter.State
	origin   int64
	typ      int64
	reason   string
	group    int64
	severity string
}

const rollupMillis = 15 * 60 * 1000

type rollup struct {
	bucket int64 // time of receipt in milliseconds, divided by rollupMillis
	group  int64
	state  deadletter.State
}

type share struct {
	operation deadletter.OperationID
	origin    int64
	result    deadletter.Result
}

// moves collects the changes that a transaction makes to the counters. Each counter is written only
// once, at the end of the same transaction.
type moves struct {
	letters map[dims]int64
	rollups map[rollup]int64
	shares  map[share]int64
	read    map[reading]int64
	learned map[learned]int64
	runs    map[int64]run   // runs by the id of the origin
	overdue map[int64]int64 // change in the number of overdue letters, by the id of the group
}

// reading is the key of a counter of letters that still have a body. There is one counter for each
// combination of origin, type and the way in which the body was read.
type reading struct {
	origin, typ int64
	reading     deadletter.Reading
}

func newMoves() moves {
	return moves{
		map[dims]int64{},
		map[rollup]int64{},
		map[share]int64{},
		map[reading]int64{},
		map[learned]int64{},
		map[int64]run{},
		map[int64]int64{},
	}
}

func (m *moves) letter(r *record, n int64) {
	m.letters[dims{r.state, r.origin, r.typ, r.reason, r.group, r.severity}] += n
	m.rollups[rollup{r.receivedAt / rollupMillis, r.group, r.state}] += n
	if r.state != deadletter.StateReceived && r.state != deadletter.StatePurged {
		m.read[reading{r.origin, r.typ, r.reading}] += n
	}
	if r.overdue && r.state == deadletter.StateScheduled {
		m.overdue[r.group] += n
	}
}

func (m *moves) share(op deadletter.OperationID, origin int64, from, to deadletter.Result) {
	if from != "" {
		m.shares[share{op, origin, from}]--
	}
	m.shares[share{op, origin, to}]++
}

func (m *moves) flush(t *tx) error {
	for d, n := range m.letters {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO counters (state, origin, type, reason, grp, severity, n)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT DO UPDATE SET n = n + excluded.n`,
			d.state, d.origin, d.typ, d.reason, d.group, d.severity, n); err != nil {
			return err
		}
		if n < 0 {
			if _, err := t.exec(`DELETE FROM counters WHERE state = $1 AND origin = $2 AND type = $3 AND reason = $4
				AND grp = $5 AND severity = $6 AND n = 0`,
				d.state, d.origin, d.typ, d.reason, d.group, d.severity); err != nil {
				return err
			}
		}
	}
	for r, n := range m.rollups {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO rollups (bucket, grp, state, n) VALUES ($1, $2, $3, $4) ON CONFLICT DO UPDATE
			SET n = n + excluded.n`,
			r.bucket, r.group, r.state, n); err != nil {
			return err
		}
		if n < 0 {
			if _, err := t.exec(`DELETE FROM rollups WHERE bucket = $1 AND grp = $2 AND state = $3
				AND n = 0`, r.bucket, r.group, r.state); err != nil {
				return err
			}
		}
	}
	for k, n := range m.read {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO readings (origin, type, reading, n) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO UPDATE SET n = n + excluded.n`,
			k.origin, k.typ, string(k.reading), n); err != nil {
			return err
		}
		if n < 0 {
			if _, err := t.exec(`DELETE FROM readings WHERE origin = $1 AND type = $2 AND reading = $3
				AND n = 0`, k.origin, k.typ, string(k.reading)); err != nil {
				return err
			}
		}
	}
	for group, n := range m.overdue {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO overdue (grp, n) VALUES ($1, $2) ON CONFLICT DO UPDATE
			SET n = n + excluded.n`, group, n); err != nil {
			return err
		}
		if n < 0 {
			if _, err := t.exec(`DELETE FROM overdue WHERE grp = $1 AND n = 0`, group); err != nil {
				return err
			}
		}
	}
	if err := m.writeRuns(t); err != nil {
		return err
	}
	if err := m.writeLearned(t); err != nil {
		return err
	}
	for c, n := range m.shares {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO operation_counts (operation, origin, result, n) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO UPDATE SET n = n + excluded.n`,
			int64(c.operation), c.origin, string(c.result), n); err != nil {
			return err
		}
	}
	return nil
}

// record is a letter in the form that the write methods of this package use. It contains the
// current state of the letter and the values by which the letter is counted.
type record struct {
	id         int64
	state      deadletter.State
	origin     int64
	typ        int64
	reading    deadletter.Reading
	revision   int
	reason     string
	group      int64
	severity   string
	receivedAt int64
	attempts   int
	publishes  int // number of publishes so far; equal to the column n of the newest attempt
	operation  sql.NullInt64
	nacks      int
	random     int64
	dueAt      sql.NullInt64
	epoch      sql.NullInt64
	heldFrom   deadletter.State // state of a held letter before it was held
	target     sql.NullInt64    // origin to which the letter was last sent, if it is not the letter's own origin
	changedAt  int64
	rule       string
	waiter     string // waiter of the broker in which the letter is to wait for its retry
	wait       int64  // planned wait in the broker, in milliseconds
	waitsIn    sql.NullString
	toldBy     sql.NullInt64 // time at which people are notified if the letter still waits
	overdue    bool          // people were notified that the letter still waits
	suspect    int           // reason for doubt as a position in deadletter.Doubts, counted from 1; 0 = no doubt
}

const recordColumns = `l.id, l.state, l.origin, l.type, l.reason, l.grp, l.severity, l.received_at, l.attempts,
	l.tries, l.operation, l.nacks, l.random, l.due_at, l.epoch, l.held_from, l.target, l.changed_at, l.rule, l.waiter,
	l.wait, l.waits_in, l.reading, l.revision, l.told_by, l.overdue, l.suspect`

func (r *record) dest() []any {
	return []any{
		&r.id, &r.state, &r.origin, &r.typ, &r.reason, &r.group, &r.severity, &r.receivedAt, &r.attempts, &r.publishes,
		&r.operation, &r.nacks, &r.random, &r.dueAt, &r.epoch, &r.heldFrom, &r.target,
		&r.changedAt, &r.rule, &r.waiter, &r.wait, &r.waitsIn, &r.reading, &r.revision, &r.toldBy, &r.overdue,
		&r.suspect,
	}
}

// waitsInBroker reports whether the letter waits in the broker for its retry. Nobody can act on
// such a letter.
func (r *record) waitsInBroker(now int64) bool {
	return r.waitsIn.Valid && now < r.dueAt.Int64+deadletter.Overdue.Milliseconds()
}

// outsideStore reports whether the newest copy of the letter is in the broker or on its way there.
// It returns true in three cases: while dlo is sending the letter, after dlo has sent the letter to
// its target queue, and while the letter waits for its retry in the broker.
func (r *record) outsideStore() bool {
	return r.state == deadletter.StatePublishing || r.state == deadletter.StateRequeued || r.waitsIn.Valid
}

// record reads a letter from the database. It returns sql.ErrNoRows if the letter does not exist.
func (t *tx) record(id int64) (*record, error) {
	var r record
	err := t.row(`SELECT `+recordColumns+` FROM letters l WHERE l.id = $1`, []any{id}, r.dest()...)
	return &r, err
}

// changeRecord calls the function "change", which changes the letter r, and updates the counters.
// Every change to a value by which letters are counted must be made in this way.
func (t *tx) changeRecord(r *record, change func()) {
	t.moves.letter(r, -1)
	change()
	t.moves.letter(r, 1)
}

// records reads letters with a query that selects recordColumns.
func (t *tx) records(query string, args ...any) ([]*record, error) {
	rows, err := t.query(query, args...)
	if err != nil {
		return nil, err
	}
	var records []*record
	return records, scan(rows, func() error {
		records = append(records, &record{})
		return rows.Scan(records[len(records)-1].dest()...)
	})
}
