package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/deadletteroffice/dlo/internal/query"
)

// plan is a query prepared for SQL over letters l. Its dims are conditions on the columns by which
// letters are counted. They apply to letters and to counters.
type plan struct {
	dims     []clause
	fields   []query.Field // field of each of dims
	rest     []clause      // conditions on other columns
	match    string        // expression that the tokens of a letter must match; "" = no condition
	ids      *clause       // condition on the ids that the query names
	op       *clause       // letters of one operation: condition on operation_letters ol
	from, to int64         // range of serials; from is included, to is not
	grouped  bool          // dims also restrict something other than the state
	empty    bool          // no letter can match
}

// counted reports whether the counters alone can answer the plan.
func (p *plan) counted() bool {
	return len(p.rest) == 0 && p.match == "" && p.ids == nil && p.op == nil && p.from == 0 && p.to == math.MaxInt64
}

// plan compiles a query. The error wraps ErrInvalid.
func (s *Store) plan(ctx context.Context, q query.Query) (*plan, error) {
	p := &plan{to: math.MaxInt64}
	var match, unmatch []string // expressions for the index of words
	var also, alsoNot []string  // dims as tokens; they are added to the expression if the search index is queried anyway
	if c, limited, err := s.readable(ctx, q); err != nil {
		return nil, err
	} else if limited {
		p.dims, p.fields, p.grouped = append(p.dims, c), append(p.fields, query.Queue), true
	}
	for _, t := range q.Terms {
		if t.Field == query.Sort {
			continue // sorting applies to the list, not to the letters
		}
		if t.Field == query.ID && len(t.Values[0].Raw) == shortID {
			t.Field, t.Name = query.Header, "" // the search index has short ids under a field name that no header can have
		}
		if t.Field.Indexed() {
			e, err := expression(t)
			if err != nil {
				return nil, err
			}
			if t.Not {
				unmatch = append(unmatch, e)
			} else {
				match = append(match, e)
			}
			continue
		}
		c, dim, tokens, err := s.condition(ctx, t)
		switch {
		case err != nil:
			return nil, err
		case !t.Not && c.text == "0":
			return &plan{empty: true, to: math.MaxInt64}, nil
		case !t.Not && p.narrow(t):
			continue
		case !t.Not && (t.Field == query.ID || t.Field == query.Doubt) && p.ids == nil:
			p.ids = &c
			continue
		case !t.Not && t.Field == query.Op && len(t.Values) == 1 && p.op == nil:
			c = operation(t.Values[0])
			p.op = &c
			continue
		case t.Not:
			c = not(c)
		}
		if dim {
			if len(tokens) > 0 && len(tokens) <= maxTokens && t.Not {
				alsoNot = append(alsoNot, tokens...)
			} else if len(tokens) > 0 && len(tokens) <= maxTokens {
				also = append(also, "("+strings.Join(tokens, " OR ")+")")
			}
			p.dims, p.fields, p.grouped = append(p.dims, c), append(p.fields, t.Field), p.grouped || t.Field != query.State
		} else {
			p.rest = append(p.rest, c)
		}
	}
	if len(match)+len(unmatch) > 0 {
		match, unmatch = append(match, also...), append(unmatch, alsoNot...)
		if len(match) == 0 {
			match = []string{tokenAll}
		}
		p.match = strings.Join(match, " AND ")
		if len(unmatch) > 0 {
			p.match = "(" + p.match + ") NOT (" + strings.Join(unmatch, " OR ") + ")"
		}
	}
	p.empty = p.from >= p.to
	return p, nil
}

// narrow turns a term with a single time into a limit on the serials, because a serial begins with
// the time of receipt.
func (p *plan) narrow(t query.Term) bool {
	if t.Field != query.Since && t.Field != query.Before && t.Field != query.Age {
		return false
	}
	from, to := span(t.Field, t.Values[0])
	p.from, p.to = max(p.from, from), min(p.to, to)
	return true
}

// reader runs queries. It is either the store's pool of read connections, or a single one of these
// connections that holds a snapshot.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// source is a subset of the letters. One index returns the letters of the subset in the order of
// their serials.
type source struct {
	from  string // FROM of the SELECT; contains letters l
	key   string // the column of the serial
	where clause // the lookup in the index
}

// maxBranches is the maximum number of parts of the group index that are merged into one list. Each
// part takes some 10 us. If a query matches more groups, the letters are read by state instead.
const maxBranches = 2000

// sources returns sources that together contain every letter of a plan, without duplicates. If the
// sources do not come from the search index, sources adds the condition on words to the plan.
func (s *Store) sources(ctx context.Context, db reader, p *plan) ([]source, error) {
	switch {
	case p.empty:
		return nil, nil
	case p.ids != nil:
		p.probe()
		return []source{{"letters l", "l.id", *p.ids}}, nil
	case p.op != nil:
		p.probe()
		return []source{{"operation_letters ol CROSS JOIN letters l ON l.id = ol.letter", "ol.letter", *p.op}}, nil
	case p.match == "":
		return branches(ctx, db, p, maxBranches)
	}
	few, err := s.fewer(ctx, db, p)
	if err != nil || !few {
		return []source{{"words CROSS JOIN letters l ON l.id = words.rowid", "words.rowid", clause{"words MATCH ?", []any{p.match}}}}, err
	}
	p.probe()
	return branches(ctx, db, p, fewBranches)
}

// branches returns the parts of an index that contain matching letters, according to the counters.
// It uses the index by state, or the index by group and state.
func branches(ctx context.Context, db reader, p *plan, most int) ([]source, error) {
	dims := every(p.dims...)
	for byGroup := p.grouped; ; byGroup = false {
		column := "0"
		if byGroup {
			column = "l.grp"
		}
		rows, err := db.QueryContext(ctx, numbered(`SELECT DISTINCT l.state, `+column+` FROM counters l WHERE l.n > 0 AND `+dims.text+fmt.Sprintf(` LIMIT %d`, most+1)), dims.args...)
		if err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		var list []source
		if err := scan(rows, func() error {
			var state string
			var group int64
			err := rows.Scan(&state, &group)
			switch {
			case !byGroup:
				list = append(list, source{"letters l INDEXED BY letters_state", "l.id", clause{"l.state = ?", []any{state}}})
			case group == 0: // few letters have no group: those that are received or undecided
				list = append(list, source{"letters l INDEXED BY letters_state", "l.id", clause{"l.state = ? AND l.grp = 0", []any{state}}})
			default:
				list = append(list, source{"letters l INDEXED BY letters_group", "l.id", clause{"l.grp = ? AND l.grp > 0 AND l.state = ?", []any{group, state}}})
			}
			return err
		}); err != nil {
			return nil, err
		}
		if len(list) <= most || !byGroup {
			return list, nil
		}
	}
}

// fewer reports whether only few letters match, according to the counters. The list should then
// read the parts of the index by state or by group, and query the search index once for each part.
func (s *Store) fewer(ctx context.Context, db reader, p *plan) (bool, error) {
	if len(p.dims) == 0 {
		return false, nil
	}
	dims := every(p.dims...)
	var n, parts int
	err := db.QueryRowContext(ctx, numbered(`SELECT coalesce(sum(l.n), 0), count(DISTINCT l.grp * 10 + length(l.state)) FROM counters l WHERE `+dims.text), dims.args...).Scan(&n, &parts)
	return n <= fewLetters && parts <= fewBranches, err
}

const (
	fewLetters  = 5000
	fewBranches = 16
)

// probe turns the condition on search tokens into a condition on letters.
func (p *plan) probe() {
	if p.match != "" {
		p.rest = append(p.rest, clause{"l.id IN (SELECT words.rowid FROM words WHERE words MATCH ?)", []any{p.match}})
	}
}

// filter returns the condition on the letters of a source.
func (p *plan) filter(src source) clause {
	all := append([]clause{src.where}, p.dims...)
	all = append(all, p.rest...)
	if p.from > 0 {
		all = append(all, clause{src.key + " >= ?", []any{p.from}})
	}
	if p.to < math.MaxInt64 {
		all = append(all, clause{src.key + " < ?", []any{p.to}})
	}
	return every(all...)
}
