package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// learned records that letters with a routing key were read as a type.
type learned struct {
	origin int64
	key    string
	typ    int64
}

const (
	// maximum number of routing keys for which dlo learns types, per queue; a queue may have one
	// routing key per customer
	maxKeys = 200
	// minimum number of letters with a routing key from which the shares of that key are used
	// instead of those of the queue
	minKeyLetters = 3
)

// bySchema is an SQL condition that selects letters, or counts of letters, that a schema decodes. A
// type alone does not prove this, because a letter that no schema decodes can have the type that
// its framework names. Therefore the condition also checks how the letter was read. Older versions
// did not store this, but they did not use the types of frameworks either.
var bySchema = func() string {
	list := []string{"''"}
	for _, r := range deadletter.Readings {
		if r.Typed() {
			list = append(list, "'"+string(r)+"'")
		}
	}
	return "(type > 0 AND reading IN (" + strings.Join(list, ", ") + "))"
}()

// writeLearned writes the changed counts of learned types to the database.
func (m *moves) writeLearned(t *tx) error {
	for k, n := range m.learned {
		done, err := t.exec(`UPDATE learned SET n = max(0, n + $4) WHERE origin = $1 AND key = $2
			AND type = $3`, k.origin, k.key, k.typ, n)
		if err != nil {
			return err
		}
		if known, _ := done.RowsAffected(); known > 0 || n < 0 {
			continue
		}
		if _, err := t.exec(`INSERT INTO learned (origin, key, type, n) SELECT $1, $2, $3, $4 WHERE (SELECT count(*)
			FROM learned WHERE origin = $1) < $5
			OR EXISTS (SELECT 1 FROM learned WHERE origin = $1 AND key = $2)`,
			k.origin, k.key, k.typ, n, maxKeys); err != nil {
			return err
		}
	}
	return nil
}

// relearn updates the learned types of a routing key. It is called when a letter is read as a
// different type or gets a different origin.
func (t *tx) relearn(r *record, origin, typ int64, reading deadletter.Reading) error {
	var key string
	if err := t.row(`SELECT routing_key FROM letters WHERE id = $1`, []any{r.id}, &key); err != nil {
		return err
	}
	if r.typ > 0 && (r.reading.Typed() || r.reading == "") {
		t.moves.learned[learned{r.origin, key, r.typ}]--
	}
	if reading.Typed() {
		t.moves.learned[learned{origin, key, typ}]++
	}
	return nil
}

// Priors returns the share of each type, from 0 to 1, among the letters with a routing key. It
// counts only letters that were read as some type. If there are too few of them, it returns the
// shares among all letters of the queue.
func (s *Store) Priors(ctx context.Context, o deadletter.Origin) (map[string]float64, error) {
	id, ok := s.names.findOrigin(o)
	if !ok {
		return nil, nil
	}
	shares, total, err := s.shares(ctx, `SELECT type, n FROM learned WHERE origin = $1 AND key = $2`, id, o.RoutingKey)
	if err == nil && total < minKeyLetters {
		shares, _, err = s.shares(
			ctx, `SELECT type, sum(n) FROM readings WHERE origin = $1 AND `+bySchema+` GROUP BY type`, id,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("priors of %s: %w", o.Queue, err)
	}
	return shares, nil
}

// NamesType reports whether anything names the given type for letters of a queue. The type may be
// named by the letters themselves, by a person, or by the configuration. A type that was only found
// because it matches the bodies does not count.
func (s *Store) NamesType(ctx context.Context, o deadletter.Origin, typ string) (bool, error) {
	id, ok := s.names.findOrigin(o)
	if !ok {
		return false, nil
	}
	types, err := values[int64](s.ask(ctx, `SELECT type FROM readings WHERE origin = $1 AND n > 0 AND reading != $2
		AND `+bySchema, id, string(deadletter.ReadByMatch)))
	if err != nil {
		return false, fmt.Errorf("what names %s on %s: %w", typ, o.Queue, err)
	}
	return slices.ContainsFunc(types, func(id int64) bool { return s.names.typeName(id) == typ }), nil
}

func (s *Store) shares(ctx context.Context, text string, args ...any) (map[string]float64, float64, error) {
	rows, err := s.ask(ctx, text, args...)
	if err != nil {
		return nil, 0, err
	}
	shares, total := map[string]float64{}, 0.0
	err = scan(rows, func() error {
		var typ int64
		var n float64
		err := rows.Scan(&typ, &n)
		shares[s.names.typeName(typ)] = n
		total += n
		return err
	})
	for name := range shares {
		shares[name] /= total
	}
	return shares, total, err
}

// Readings returns how letters were read, by queue. It counts only the letters that still have a
// body.
func (s *Store) Readings(ctx context.Context) ([]deadletter.ReadCount, error) {
	rows, err := s.ask(ctx, `SELECT origin, type, reading, n FROM readings WHERE n > 0`)
	if err != nil {
		return nil, fmt.Errorf("readings: %w", err)
	}
	var list []deadletter.ReadCount
	err = scan(rows, func() error {
		var origin, typ int64
		var c deadletter.ReadCount
		err := rows.Scan(&origin, &typ, &c.Reading, &c.Letters)
		p := s.names.origin(origin)
		c.Broker, c.VHost, c.Queue, c.Type = p.Broker, p.VHost, p.Queue, s.names.typeName(typ)
		list = append(list, c)
		return err
	})
	return list, err
}
