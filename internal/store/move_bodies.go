package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
)

// moveBodies moves the messages of a store from before schema 37 from the table bodies into
// segments, and computes the checksums that are missing. It goes on where an earlier process ended.
// The pages of what was moved are used again at once, so the file grows little.
func (s *Store) moveBodies(ctx context.Context) error {
	var all, moved int
	var exists bool
	ask := func(query string, into any) error { return s.conn.QueryRowContext(ctx, query).Scan(into) }
	err := ask(`SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'bodies')`, &exists)
	if err == nil && exists {
		err = ask(`SELECT count(*) FROM bodies`, &all)
	}
	if err != nil || !exists {
		return err
	}
	said := time.Now()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.tx(ctx, bulk, func(t *tx) error {
			n, err := t.moveSome()
			moved, more = moved+n, n > 0
			return err
		}); err != nil {
			return err
		}
		if more && time.Since(said) > 5*time.Second {
			said = time.Now()
			s.log.Info("the messages of letters are moved into segments", "letters", moved, "of", all)
		}
	}
	return s.tx(ctx, bulk, func(t *tx) error {
		if err := t.sumRevisions(); err != nil {
			return err
		}
		_, err := t.exec(`DROP TABLE bodies`)
		return err
	})
}

const (
	movedLetters = 2000    // how many letters one transaction moves
	movedBytes   = 4 << 20 // after how many bytes of bodies it ends
)

// moveSome moves the messages of some letters and returns how many.
func (t *tx) moveSome() (int, error) {
	type row struct {
		serial int64
		purged bool
		sum    sql.NullInt64
		segment.Message
	}
	var list []row
	bytes := 0
	rows, err := t.query(`SELECT l.id, l.state = $1, l.checksum, b.exchange, b.routing_key, b.properties, b.body
		FROM bodies b JOIN letters l ON l.id = b.letter ORDER BY b.letter LIMIT $2`,
		string(deadletter.StatePurged), movedLetters)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for bytes < movedBytes && rows.Next() {
		var r row
		if err := rows.Scan(
			&r.serial, &r.purged, &r.sum, &r.Exchange, &r.RoutingKey, &r.Properties, &r.Body,
		); err != nil {
			return 0, err
		}
		list, bytes = append(list, r), bytes+len(r.Body)
	}
	if err := rows.Close(); err != nil || len(list) == 0 {
		return 0, err
	}
	for _, r := range list {
		var in any
		if !r.purged {
			if in, err = t.keep(r.serial, r.Message); err != nil {
				return 0, err
			}
		}
		if !r.sum.Valid {
			r.sum.Int64 = checksum(r.Properties, r.Body)
		}
		if _, err := t.exec(
			`UPDATE letters SET segment = $2, checksum = $3 WHERE id = $1`, r.serial, in, r.sum.Int64,
		); err != nil {
			return 0, err
		}
	}
	_, err = t.exec(`DELETE FROM bodies WHERE letter <= $1`, list[len(list)-1].serial)
	return len(list), err
}

// sumRevisions computes the checksums of the revisions that have none.
func (t *tx) sumRevisions() error {
	for {
		var letter, n int64
		var properties, body []byte
		rows, err := t.query(`SELECT letter, n, properties, body FROM revisions WHERE checksum IS NULL LIMIT 1`)
		if err != nil {
			return err
		}
		found := false
		if err := scan(rows, func() error {
			found = true
			return rows.Scan(&letter, &n, &properties, &body)
		}); err != nil || !found {
			return err
		}
		if _, err := t.exec(`UPDATE revisions SET checksum = $3 WHERE letter = $1 AND n = $2`, letter, n,
			checksum(properties, body)); err != nil {
			return err
		}
	}
}
