package store

import (
	"context"
	"database/sql"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
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

// sentContents are the columns from which "sent" reads what is sent of a letter l. It is a revision
// v, or the message of the letter.
const sentContents = `l.id, l.segment, CASE WHEN v.n IS NULL THEN l.checksum ELSE v.checksum END, v.properties, v.body`

// sent is what is sent of a letter.
type sent struct {
	serial           int64
	segment, sum     sql.NullInt64
	properties, body []byte
}

func (s *sent) into() []any { return []any{&s.serial, &s.segment, &s.sum, &s.properties, &s.body} }

// complete reads the message of the letter, unless a revision is sent. It returns false if the
// contents are damaged.
func (s *sent) complete(ctx context.Context, messages messages) (ok bool, err error) {
	ok = true
	if s.properties == nil {
		var m segment.Message
		if m, ok, err = messages.of(ctx, s.serial, s.segment); err != nil {
			return false, err
		}
		s.properties, s.body = m.Properties, m.Body
	}
	return ok && !differs(s.sum, s.properties, s.body), nil
}

// whyDamaged returns the error of an edit if the contents that would be edited are damaged.
func (t *tx) whyDamaged(letter int64) error {
	var s sent
	if err := t.row(`SELECT `+sentContents+`
		FROM letters l LEFT JOIN revisions v ON v.letter = l.id AND v.n = l.revision
		WHERE l.id = $1`, []any{letter}, s.into()...); err != nil {
		return err
	}
	if ok, err := s.complete(t.ctx, t.messages); err != nil {
		return err
	} else if !ok {
		return fmt.Errorf("%w: %s", deadletter.ErrConflict, deadletter.WhyDamaged(damagedContents))
	}
	return nil
}
