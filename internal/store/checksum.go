package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SQLite does not notice if a bit of a stored value changes on the disk. Each letter, each revision
// and each row of names therefore has a checksum. It does not depend on how the contents are
// stored.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of contents, for example of the encoded properties and the body of a
// letter.
func checksum(contents ...[]byte) int64 {
	var sum uint32
	for _, part := range contents {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return int64(sum)
}

// nameChecksum returns the checksum of the names in a row.
func nameChecksum(names ...string) int64 { return checksum([]byte(strings.Join(names, "/"))) }

// storeChecksums stores the checksums of rows of names, by their ids.
func storeChecksums(ctx context.Context, db *sql.Conn, table string, sums map[int64]int64) error {
	if len(sums) == 0 {
		return nil
	}
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback()
	for id, sum := range sums {
		if _, err := t.ExecContext(ctx, `UPDATE `+table+` SET checksum = $2 WHERE id = $1`, id, sum); err != nil {
			return err
		}
	}
	return t.Commit()
}

// differs reports whether contents are not those from which a checksum was computed. Contents
// without a checksum never differ.
func differs(sum sql.NullInt64, contents ...[]byte) bool {
	return sum.Valid && sum.Int64 != checksum(contents...)
}

// What Letter.Damage can say.
const (
	damagedContents = "its body or its properties"
	damagedReceived = "the message that was received, which is not sent,"
	damagedRevision = "its newest revision"
	damagedName     = "the name of its queue"
)

// sentContents are the columns of what is sent of a letter l: its newest revision v, or its row b
// in bodies. The first column is the checksum of the others.
const sentContents = `CASE WHEN v.n IS NULL THEN l.checksum ELSE v.checksum END,
	coalesce(v.properties, b.properties), coalesce(v.body, b.body)`

// whyDamaged returns the error of an edit if the contents that would be edited are damaged.
func (t *tx) whyDamaged(letter int64) error {
	var sum sql.NullInt64
	var properties, body []byte
	if err := t.row(`SELECT `+sentContents+`
		FROM letters l JOIN bodies b ON b.letter = l.id LEFT JOIN revisions v ON v.letter = l.id AND v.n = l.revision
		WHERE l.id = $1`, []any{letter}, &sum, &properties, &body); err != nil {
		return err
	}
	if differs(sum, properties, body) {
		return fmt.Errorf("%w: %s", deadletter.ErrConflict, deadletter.WhyDamaged(damagedContents))
	}
	return nil
}

// fillBytes is the number of bytes of contents after which FillChecksums ends a transaction.
const fillBytes = 4 << 20

// FillChecksums computes the checksums of some letters and revisions that an older dlo has stored.
// It reports whether there may be more.
func (s *Store) FillChecksums(ctx context.Context) (more bool, err error) {
	if err := s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM letters l JOIN bodies b ON b.letter = l.id
		WHERE l.checksum IS NULL) OR EXISTS (SELECT 1 FROM revisions
		WHERE checksum IS NULL)`, nil, &more); err != nil || !more {
		return false, err
	}
	err = s.tx(ctx, bulk, func(t *tx) error {
		for _, table := range []struct{ query, update string }{
			{
				`SELECT l.id, 0, b.properties, b.body FROM letters l JOIN bodies b ON b.letter = l.id
					WHERE l.checksum IS NULL ORDER BY l.id LIMIT 200`,
				`UPDATE letters SET checksum = $3 WHERE id = $1 AND $2 = 0`,
			},
			{
				`SELECT letter, n, properties, body FROM revisions WHERE checksum IS NULL LIMIT 200`,
				`UPDATE revisions SET checksum = $3 WHERE letter = $1 AND n = $2`,
			},
		} {
			type row struct{ letter, n, sum int64 }
			var list []row
			bytes := 0
			rows, err := t.query(table.query)
			if err != nil {
				return err
			}
			defer rows.Close()
			for bytes < fillBytes && rows.Next() {
				var r row
				var properties, body []byte
				if err := rows.Scan(&r.letter, &r.n, &properties, &body); err != nil {
					return err
				}
				r.sum, bytes = checksum(properties, body), bytes+len(body)
				list = append(list, r)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return err
			}
			for _, r := range list {
				if _, err := t.exec(table.update, r.letter, r.n, r.sum); err != nil {
					return err
				}
			}
			if more = len(list) > 0; more {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("compute checksums: %w", err)
	}
	return more, nil
}
