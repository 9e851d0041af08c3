package store

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
)

// arrival is the row of a new letter.
type arrival struct {
	deadletter.Row
	keys
	twin     orNull
	doubt    deadletter.Doubt
	returned deadletter.ID // letter that the delivery joined

	changed, doubted, checksum, segment int64 // set when the row is stored
}

func (r *arrival) id() deadletter.ID { return deadletter.NewID(r.serial, uint64(r.random)) }

// columns adds to a set of columns those that all new letters have.
func (r *arrival) columns(set columns) columns {
	return append(set, columns{
		{`l.changed_at`, &r.changed},
		{`l.twin`, &r.twin},
		{`l.suspect`, &r.doubted},
		{`l.checksum`, &r.checksum},
		{`l.segment`, &r.segment},
	}...)
}

func (r *arrival) received() columns { return r.columns(receivedColumns(&r.Row, &r.keys)) }
func (r *arrival) imported() columns { return r.columns(importedColumns(&r.Row, &r.keys)) }

// orNull is the serial of another row; 0 = NULL.
type orNull int64

// Value implements driver.Valuer.
func (n orNull) Value() (driver.Value, error) { return positiveOrNull(int64(n)), nil }

// prepare keeps the message of a new letter in a segment and completes the row of the letter.
func (t *tx) prepare(row *arrival, by deadletter.Route, p deadletter.Properties, body []byte) error {
	properties, err := p.Encode()
	if err != nil {
		return err
	}
	row.State, row.Size, row.changed = deadletter.StateReceived, len(body), t.now
	row.doubted, row.checksum = int64(slices.Index(deadletter.Doubts, row.doubt)+1), checksum(properties, body)
	if row.segment, err = t.keep(row.serial, segment.Message{
		Exchange:   by.Exchange,
		RoutingKey: by.RoutingKey,
		Properties: properties,
		Body:       body,
	}); err != nil {
		return err
	}
	t.step.received++
	t.moves.letter(&record{
		state:      row.State,
		origin:     row.origin,
		reason:     row.Reason,
		receivedAt: row.ReceivedAt.UnixMilli(),
	}, 1)
	return nil
}

// newLetters are the rows that the next statement stores.
type newLetters struct {
	rows [manyRows]arrival
	args []any // of all rows, which are always the same variables
	n    int   // number of rows that wait
}

var insertReceived, insertImported = insertLetters(new(arrival).received()), insertLetters(new(arrival).imported())

// insertLetters returns the statement that inserts letters, for "many".
func insertLetters(c columns) string {
	return `INSERT INTO letters (` + strings.Join(c.names(), `, `) + `) VALUES rows`
}

// addRow stores the row of a letter that was received, now or with the rows that follow.
func (t *tx) addRow(row arrival) error {
	l := &t.s.letters
	if l.args == nil {
		for i := range l.rows {
			l.args = l.rows[i].received().values(l.args...)
		}
	}
	l.rows[l.n] = row
	if l.n++; l.n < len(l.rows) {
		return nil
	}
	return t.storeRows()
}

// storeRows stores the rows that wait.
func (t *tx) storeRows() error {
	l := &t.s.letters
	width := len(l.args) / len(l.rows)
	waiting := l.args[:l.n*width]
	l.n = 0
	return t.many(insertReceived, width, waiting)
}
