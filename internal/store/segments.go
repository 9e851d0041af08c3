package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/segment"
)

// messages reads the messages of letters one after another. It unpacks a segment only once.
type messages struct {
	db    reader
	known map[int64]map[int64]segment.Message // by the numbers of the segments
}

func messagesFrom(db reader) messages { return messages{db, map[int64]map[int64]segment.Message{}} }

// of returns the message of a letter, which is in the given segment. If there is no segment, the
// letter is purged, and its message is empty. The result is false if the message is damaged.
func (r messages) of(ctx context.Context, letter int64, in sql.NullInt64) (segment.Message, bool, error) {
	if !in.Valid {
		return purged, true, nil
	}
	s, ok := r.known[in.Int64]
	if !ok {
		var err error
		if s, _, _, err = unpack(ctx, r.db, in.Int64); err != nil && !errors.Is(err, segment.ErrDamaged) {
			return segment.Message{}, false, err
		}
		r.known[in.Int64] = s
	}
	m, ok := s[letter]
	return m, ok, nil
}

// purged is the message of a letter that is purged.
var purged = func() segment.Message {
	properties, _ := deadletter.Properties{}.Encode() // only headers can be wrong
	return segment.Message{Properties: properties}
}()

// unpack reads a segment. If it is damaged or lost, the error wraps segment.ErrDamaged.
func unpack(ctx context.Context, db reader, id int64) (s map[int64]segment.Message, size, kept int, err error) {
	var data []byte
	err = db.QueryRowContext(ctx, `SELECT size, kept, data FROM segments WHERE id = $1`, id).Scan(&size, &kept, &data)
	if errors.Is(err, sql.ErrNoRows) {
		err = segment.ErrDamaged
	}
	if err == nil {
		s, err = segment.Unpack(data, size)
	}
	return s, size, kept, err
}

// filling is the segment to which a transaction adds the messages of new letters.
type filling struct {
	id  int64
	raw []byte
}

// keep adds the message of a new letter to a segment and returns the number of the segment.
func (t *tx) keep(serial int64, m segment.Message) (int64, error) {
	f := &t.filling
	if len(f.raw) > 0 && len(f.raw)+len(m.Properties)+len(m.Body) > segment.Size {
		if err := t.closeSegment(); err != nil {
			return 0, err
		}
	}
	if len(f.raw) == 0 {
		if t.s.segment == 0 {
			if err := t.row(`SELECT coalesce(max(id), 0) FROM segments`, nil, &t.s.segment); err != nil {
				return 0, err
			}
		}
		t.s.segment++
		f.id, f.raw = t.s.segment, t.s.raw[:0]
	}
	f.raw = segment.Append(f.raw, serial, m)
	return f.id, nil
}

// closeSegment stores the segment to which messages were added.
func (t *tx) closeSegment() error {
	f := &t.filling
	if len(f.raw) == 0 {
		return nil
	}
	size := len(f.raw)
	data := segment.Pack(f.raw)
	if size <= 2*segment.Size { // the memory of a large message is not kept
		t.s.raw = f.raw
	}
	f.raw = nil
	_, err := t.exec(`INSERT INTO segments (id, size, kept, data) VALUES ($1, $2, $2, $3)`, f.id, size, data)
	return err
}

// shrinking is a segment from which a transaction erases messages.
type shrinking struct {
	messages   map[int64]segment.Message // nil = the segment is damaged
	size, kept int
	now        bool // the erased bytes must leave the file with the transaction
}

// forget erases the message of a letter from the segment in which it is, and returns the message.
// If "now" is false, its bytes may stay until half of the segment is erased.
func (t *tx) forget(letter int64, in sql.NullInt64, now bool) (segment.Message, error) {
	if !in.Valid {
		return purged, nil
	}
	s := t.shrinking[in.Int64]
	if s == nil {
		s = &shrinking{}
		var err error
		s.messages, s.size, s.kept, err = unpack(t.ctx, t.s.conn, in.Int64)
		if err != nil && !errors.Is(err, segment.ErrDamaged) {
			return segment.Message{}, err
		}
		t.shrinking[in.Int64] = s
	}
	m := s.messages[letter]
	delete(s.messages, letter)
	s.kept -= m.Size
	s.now = s.now || now
	_, err := t.exec(`UPDATE letters SET segment = NULL WHERE id = $1`, letter)
	return m, err
}

// shrink stores the segments from which messages were erased.
func (t *tx) shrink() error {
	for id, s := range t.shrinking {
		var err error
		switch {
		case s.messages == nil: // people may still be able to recover some of it
		case s.kept <= 0:
			_, err = t.exec(`DELETE FROM segments WHERE id = $1`, id)
		case s.now || 2*s.kept < s.size:
			err = t.rewrite(id, s.messages)
		default:
			_, err = t.exec(`UPDATE segments SET kept = $2 WHERE id = $1`, id, s.kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite stores a segment again, with the messages that letters still have in it.
func (t *tx) rewrite(id int64, s map[int64]segment.Message) error {
	var raw []byte
	for _, letter := range slices.Sorted(maps.Keys(s)) {
		var has bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM letters WHERE id = $1 AND segment = $2)`, []any{letter, id},
			&has); err != nil {
			return err
		}
		if has {
			raw = segment.Append(raw, letter, s[letter])
		}
	}
	_, err := t.exec(`UPDATE segments SET size = $2, kept = $2, data = $3 WHERE id = $1`, id, len(raw),
		segment.Pack(raw))
	return err
}
