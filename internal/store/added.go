package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// recordAddedFields records which fields of a letter are not declared by the letter's type. It
// replaces the fields recorded before.
func (t *tx) recordAddedFields(letter int64, fields []deadletter.AddedField) error {
	if _, err := t.exec(`DELETE FROM added WHERE letter = $1`, letter); err != nil {
		return err
	}
	return t.addFields(letter, fields)
}

func (t *tx) addFields(letter int64, fields []deadletter.AddedField) error {
	for _, f := range fields {
		if _, err := t.exec(`INSERT INTO added (letter, number, wire)
			VALUES ($1, $2, $3)`, letter, f.Number, f.Wire); err != nil {
			return err
		}
	}
	return nil
}

// AddedFields returns fields that letters contain in their encoded form, but that their types do
// not declare. The fields that occur in the most letters come first. The parameter "limit" is the
// maximum number of fields.
func (s *Store) AddedFields(ctx context.Context, limit int) ([]deadletter.AddedCount, error) {
	rows, err := s.ask(ctx, `SELECT l.origin, l.type, a.number, a.wire, min(l.received_at), count(*) FROM added a
		JOIN letters l ON l.id = a.letter
		GROUP BY l.origin, l.type, a.number, a.wire ORDER BY count(*) DESC, l.origin, l.type, a.number LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("added fields: %w", err)
	}
	var list []deadletter.AddedCount
	err = scan(rows, func() error {
		var origin, typ int64
		var since sql.NullInt64
		var c deadletter.AddedCount
		err := rows.Scan(&origin, &typ, &c.Number, &c.Wire, &since, &c.Letters)
		o := s.names.origin(origin)
		c.Broker, c.VHost, c.Queue, c.Type, c.Since = o.Broker, o.VHost, o.Queue, s.names.typeName(typ), timeOf(since)
		list = append(list, c)
		return err
	})
	return list, err
}
