package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// snapshot calls fn with a reading connection on which every query sees the store at the same
// moment.
func (s *Store) snapshot(ctx context.Context, fn func(db *sql.Conn) error) error {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN DEFERRED`); err != nil {
		return err
	}
	err = fn(conn)
	conn.ExecContext(context.WithoutCancel(ctx), `COMMIT`)
	return err
}

// chosen is a selection that is prepared for SQL. It consists of sources and of a condition that
// applies to all of them.
type chosen struct {
	plan    *plan
	sources []source
	except  map[int64]bool
	// letters that changed at this time or later are left out, in Unix milliseconds; 0 = none are
	// left out
	stale int64
}

// choose prepares a selection for SQL. It returns ErrNotFound if a letter that the selection names
// does not exist.
func (s *Store) choose(ctx context.Context, db reader, sel query.Selection) ([]chosen, error) {
	except := map[int64]bool{}
	for _, id := range sel.Except {
		serial, _, ok := id.Split()
		if !ok {
			return nil, deadletter.NoSuch("letter %s", id)
		}
		except[serial] = true
	}
	if sel.Query != nil {
		p, err := s.plan(ctx, *sel.Query)
		if err != nil {
			return nil, err
		}
		c := chosen{plan: p, except: except}
		if !sel.Until.IsZero() {
			c.stale = sel.Until.UnixMilli()
		}
		c.sources, err = s.sources(ctx, db, p)
		return []chosen{c}, err
	}
	var list []chosen
	for ids := range slices.Chunk(sel.IDs, 500) {
		serials := make([]any, len(ids))
		named := map[int64]int64{}
		for i, id := range ids {
			serial, random, ok := id.Split()
			if !ok {
				return nil, deadletter.NoSuch("letter %s", id)
			}
			serials[i], named[serial] = serial, random
		}
		rows, err := db.QueryContext(
			ctx, `SELECT id, random FROM letters WHERE id IN (`+placeholders(1, len(serials))+`)`, serials...,
		)
		if err != nil {
			return nil, err
		}
		if err := scan(rows, func() error {
			var serial, random int64
			err := rows.Scan(&serial, &random)
			if named[serial] == random {
				delete(named, serial)
			}
			return err
		}); err != nil {
			return nil, err
		}
		for serial, random := range named {
			return nil, deadletter.NoSuch("letter %s", deadletter.NewID(serial, uint64(random)))
		}
		where := inList("l.id", serials)
		p := &plan{ids: &where, to: math.MaxInt64}
		list = append(list, chosen{plan: p, sources: []source{{"letters l", "l.id", where}}, except: except})
	}
	return list, nil
}

// each selects columns of the chosen letters and calls fn for every row. The parameter "tail" is
// SQL that follows the WHERE clause.
func (c *chosen) each(
	ctx context.Context, db reader, columns, joins, tail string, and clause, fn func(rows *sql.Rows) error,
) error {
	for _, src := range c.sources {
		where := allOf(c.plan.filter(src), and)
		rows, err := db.QueryContext(
			ctx, numberPlaceholders(`SELECT `+columns+` FROM `+src.from+joins+` WHERE `+where.text+tail), where.args...,
		)
		if err != nil {
			return err
		}
		if err := scan(rows, func() error { return fn(rows) }); err != nil {
			return err
		}
	}
	return nil
}

const maxExamples = 5

// Survey divides the letters of a selection into shares. An operation treats all letters of a share
// in the same way. The result "changed" is the number of letters that are in no share, because they
// changed after sel.Until. Letters with a body of more than maxBody bytes have shares of their own,
// because they cannot be published.
func (s *Store) Survey(
	ctx context.Context, sel query.Selection, maxBody int,
) (shares []deadletter.Share, changed int, err error) {
	type kind struct {
		origin, inbox int64
		state         deadletter.State
		owner         int64
		unpublishable string
		oversize      bool
		back          int64
		doubt         bool
		waits         bool
		heldFrom      deadletter.State
		restored      bool
	}
	byKind, examples := map[kind]*deadletter.Share{}, map[*deadletter.Share][]int64{}
	err = s.snapshot(ctx, func(db *sql.Conn) error {
		parts, err := s.choose(ctx, db, sel)
		if err != nil {
			return err
		}
		for _, c := range parts {
			fresh := clause{}
			if c.stale > 0 {
				fresh = clause{"l.changed_at < ?", []any{c.stale}}
				if err := c.each(
					ctx, db, `count(*)`, ``, ``, clause{"l.changed_at >= ?", []any{c.stale}},
					func(rows *sql.Rows) error {
						var n int
						err := rows.Scan(&n)
						changed += n
						return err
					},
				); err != nil {
					return err
				}
			}
			if len(c.except) > 0 {
				var out []any
				for serial := range c.except {
					out = append(out, serial)
				}
				fresh = allOf(fresh, negated(inList("l.id", out)))
			}
			columns := fmt.Sprintf(`l.origin, CASE WHEN l.origin = 0 THEN l.inbox ELSE 0 END, l.state,
				coalesce(own.operation, 0), l.unpublishable, `+sentSize+` > %d,
				CASE WHEN l.tries > 0 THEN coalesce((SELECT max(a.operation) FROM attempts a WHERE a.letter = l.id
				AND a.outcome = 'came back'), 0) ELSE 0 END,
				CASE WHEN l.tries > 0 THEN EXISTS (SELECT 1 FROM attempts a WHERE a.letter = l.id AND a.n = l.tries
				AND a.outcome = 'in doubt') ELSE 0 END, l.waits_in IS NOT NULL AND l.due_at > %d,
				CASE WHEN l.state = 'held' THEN l.held_from ELSE '' END,
				l.suspect = 3, l.grp, count(*), min(l.id), max(l.id)`,
				maxBody, s.now().Add(-deadletter.Overdue).UnixMilli())
			if err := c.each(ctx, db, columns, ` LEFT JOIN operation_letters own
				INDEXED BY operation_owner ON own.letter = l.id AND own.result IN ('pending', 'released')`,
				` GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12`, fresh, func(rows *sql.Rows) error {
					var k kind
					var n int
					var group, first, last int64
					if err := rows.Scan(
						&k.origin, &k.inbox, &k.state, &k.owner, &k.unpublishable, &k.oversize, &k.back, &k.doubt,
						&k.waits, &k.heldFrom, &k.restored, &group, &n, &first, &last,
					); err != nil {
						return err
					}
					share := byKind[k]
					if share == nil {
						p, inbox := s.names.placeOf(k.origin, k.inbox), ""
						if unknownOrigin(k.origin) {
							inbox, p.Queue = p.Queue, ""
						}
						share = &deadletter.Share{
							Origin:        p.origin(),
							Inbox:         inbox,
							State:         k.state,
							Owner:         deadletter.OperationID(k.owner),
							Unpublishable: k.unpublishable,
							Oversize:      k.oversize,
							CameBack:      deadletter.OperationID(k.back),
							InDoubt:       k.doubt,
							InBroker:      k.waits,
							HeldFrom:      k.heldFrom,
							Restored:      k.restored,
						}
						byKind[k] = share
					}
					share.Letters += n
					if cause := s.families.headOf(group); group > 0 && !slices.Contains(share.Causes, cause) {
						share.Causes = append(share.Causes, cause)
					}
					if len(examples[share]) < maxExamples {
						examples[share] = append(examples[share], slices.Compact([]int64{first, last})...)
					}
					return nil
				}); err != nil {
				return err
			}
		}
		for share, serials := range examples {
			for _, serial := range serials[:min(len(serials), maxExamples)] {
				var random int64
				if err := db.QueryRowContext(
					ctx, `SELECT random FROM letters WHERE id = $1`, serial,
				).Scan(&random); err != nil {
					return err
				}
				share.Examples = append(share.Examples, deadletter.NewID(serial, uint64(random)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("look at a selection: %w", err)
	}
	for _, share := range byKind {
		shares = append(shares, *share)
	}
	return shares, changed, nil
}

// MaxSelection is the maximum number of letters in one operation. It is limited because all their
// ids are in memory while the selection is frozen.
const MaxSelection = 2_000_000

// picked is a letter of a frozen selection. The field inbox is set only if the letter's origin is
// 0.
type picked struct{ serial, origin, group, inbox int64 }

// pick returns the letters of a selection, sorted by serial. It reads all of them from the same
// state of the database.
func (s *Store) pick(
	ctx context.Context, sel query.Selection, first int, newest bool,
) (list []picked, changed int, err error) {
	err = s.snapshot(ctx, func(db *sql.Conn) error {
		parts, err := s.choose(ctx, db, sel)
		if err != nil {
			return err
		}
		for _, c := range parts {
			if err := c.each(
				ctx, db, `l.id, l.origin, l.grp, CASE WHEN l.origin = 0 THEN l.inbox ELSE 0 END, l.changed_at`, ``, ``,
				clause{}, func(rows *sql.Rows) error {
					var p picked
					var at int64
					if err := rows.Scan(&p.serial, &p.origin, &p.group, &p.inbox, &at); err != nil {
						return err
					}
					switch {
					case c.except[p.serial]:
					case c.stale > 0 && at >= c.stale:
						changed++
					case len(list) == MaxSelection:
						return fmt.Errorf(
							"%w: an operation has at most %d letters; narrow the query with since: and before:, for example",
							deadletter.ErrInvalid, MaxSelection,
						)
					default:
						list = append(list, p)
					}
					return nil
				},
			); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b picked) int {
		if a.serial < b.serial {
			return -1
		}
		return 1
	})
	list = slices.CompactFunc(list, func(a, b picked) bool { return a.serial == b.serial })
	if first > 0 && first < len(list) {
		if newest {
			list = list[len(list)-first:]
		} else {
			list = list[:first]
		}
	}
	return list, changed, err
}

// encodePicked encodes letters as pairs of varints. The first number of a pair is the difference
// from the previous serial. The second number is the origin.
func encodePicked(list []picked) []byte {
	var b []byte
	var before int64
	for _, p := range list {
		b = binary.AppendUvarint(b, uint64(p.serial-before))
		b = binary.AppendUvarint(b, uint64(p.origin))
		before = p.serial
	}
	return b
}

func decodePicked(b []byte) ([]picked, error) {
	var list []picked
	var before int64
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errors.New("a frozen selection is damaged")
		}
		origin, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return nil, errors.New("a frozen selection is damaged")
		}
		b = b[n+m:]
		before += int64(step)
		list = append(list, picked{serial: before, origin: int64(origin)})
	}
	return list, nil
}
