package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/deadletteroffice/dlo/internal/query"
)

// plan is a query that is prepared for SQL on the table letters, which has the alias l. Its field
// "dims" contains the conditions on the columns by which letters are counted. These conditions can
// be used for letters and for counters.
type plan struct {
	dims     []clause
	fields   []query.Field // query field of each condition in dims
	rest     []clause      // conditions on columns by which letters are not counted
	match    string        // expression that the search tokens of a letter must match; "" = no condition
	ids      *clause       // condition on the letter ids in the query
	op       *clause       // condition on operation_letters ol, if the query names one operation
	from, to int64         // range of serials; it includes from, but not to
	grouped  bool          // whether a condition in dims concerns another field than the state
	empty    bool          // no letter can match the query
}

// countersSuffice reports whether the counters alone can answer the query.
func (p *plan) countersSuffice() bool {
	return len(p.rest) == 0 && p.match == "" && p.ids == nil && p.op == nil && p.from == 0 && p.to == math.MaxInt64
}

// plan converts a query to a plan, from which lists and counts are made. If the query is not valid,
// plan returns an error that wraps ErrInvalid.
func (s *Store) plan(ctx context.Context, q query.Query) (*plan, error) {
	p := &plan{to: math.MaxInt64}
	var match, unmatch []string // expressions for the full-text index
	// conditions in dims as search tokens; they are added to the expression if the full-text index
	// is needed anyway
	var also, alsoNot []string
	if c, limited, err := s.readableClause(ctx, q); err != nil {
		return nil, err
	} else if limited {
		p.dims, p.fields, p.grouped = append(p.dims, c), append(p.fields, query.Queue), true
	}
	for _, t := range q.Terms {
		if t.Field == query.Sort {
			continue // a sort term changes the order of the list, but not which letters match
		}
		if t.Field == query.ID && len(t.Values[0].Raw) == shortID {
			// the search index contains short ids under a field name that no header can have
			t.Field, t.Name = query.Header, ""
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
			c = operationClause(t.Values[0])
			p.op = &c
			continue
		case t.Not:
			c = negated(c)
		}
		if dim {
			if len(tokens) > 0 && len(tokens) <= maxTokens && t.Not {
				alsoNot = append(alsoNot, tokens...)
			} else if len(tokens) > 0 && len(tokens) <= maxTokens {
				also = append(also, "("+strings.Join(tokens, " OR ")+")")
			}
			p.dims, p.fields, p.grouped = append(p.dims, c), append(
				p.fields, t.Field,
			), p.grouped || t.Field != query.State
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

// narrow converts a term with one time to a bound on the serials. This is possible because a serial
// begins with the time of receipt. It returns false for any other term.
func (p *plan) narrow(t query.Term) bool {
	if t.Field != query.Since && t.Field != query.Before && t.Field != query.Age {
		return false
	}
	from, to := serialRange(t.Field, t.Values[0])
	p.from, p.to = max(p.from, from), min(p.to, to)
	return true
}

// reader runs queries. It is either the store's pool of read connections or one connection of this
// pool that holds a snapshot.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// source is a part of the letters of a plan. One index returns these letters in the order of their
// serials.
type source struct {
	from  string // FROM clause of the SELECT, in which the letters have the alias l
	key   string // column that contains the serial
	where clause // condition that the index looks up
}

// maxBranches is the maximum number of ranges of the group index that are merged into one list.
// Each range takes some 10 us. If the letters of a query are spread over more ranges, dlo reads the
// index by state instead.
const maxBranches = 2000

// sources divides the letters of the plan p among sources. Together, the sources contain every
// letter exactly once. If no source uses the search index, the function adds the condition on
// search tokens to the plan.
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
	few, err := s.fewMatch(ctx, db, p)
	if err != nil || !few {
		return []source{
			{
				"words CROSS JOIN letters l ON l.id = words.rowid",
				"words.rowid",
				clause{"words MATCH ?", []any{p.match}},
			},
		}, err
	}
	p.probe()
	return branches(ctx, db, p, fewBranches)
}

// branches returns sources for those parts of an index that contain matching letters, according to
// the counters. Each part contains the letters of one state, or those of one state and one group.
// If there are too many parts by state and group, branches uses the parts by state.
func branches(ctx context.Context, db reader, p *plan, most int) ([]source, error) {
	dims := allOf(p.dims...)
	for byGroup := p.grouped; ; byGroup = false {
		column := "0"
		if byGroup {
			column = "l.grp"
		}
		rows, err := db.QueryContext(
			ctx,
			numberPlaceholders(
				`SELECT DISTINCT l.state, `+column+` FROM counters l WHERE l.n > 0 AND `+dims.text+
					fmt.Sprintf(` LIMIT %d`, most+1),
			),
			dims.args...,
		)
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
				list = append(list, source{
					"letters l INDEXED BY letters_state",
					"l.id",
					clause{"l.state = ?", []any{state}},
				})
			case group == 0: // only letters that are received or undecided have no group, so these are few
				list = append(list, source{
					"letters l INDEXED BY letters_state",
					"l.id",
					clause{"l.state = ? AND l.grp = 0", []any{state}},
				})
			default:
				list = append(list, source{
					"letters l INDEXED BY letters_group",
					"l.id",
					clause{"l.grp = ? AND l.grp > 0 AND l.state = ?", []any{group, state}},
				})
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

// fewMatch reports whether only a few letters match the terms of the query that the counters can
// answer. In that case, a list does not begin with the search index. It reads these few letters by
// state or by group, and checks each of them with the search index.
func (s *Store) fewMatch(ctx context.Context, db reader, p *plan) (bool, error) {
	if len(p.dims) == 0 {
		return false, nil
	}
	dims := allOf(p.dims...)
	var n, parts int
	err := db.QueryRowContext(ctx, numberPlaceholders(`SELECT coalesce(sum(l.n),
		0), count(DISTINCT l.grp * 10 + length(l.state)) FROM counters l
		WHERE `+dims.text), dims.args...).Scan(&n, &parts)
	return n <= fewLetters && parts <= fewBranches, err
}

const (
	fewLetters  = 5000
	fewBranches = 16
)

// probe changes how the plan uses the search index. Without probe, a list begins with the letters
// from the index. With probe, it begins with other conditions, and the search tokens are looked up
// in a subquery. The plan selects the same letters in both cases.
func (p *plan) probe() {
	if p.match != "" {
		p.rest = append(p.rest, clause{"l.id IN (SELECT words.rowid FROM words WHERE words MATCH ?)", []any{p.match}})
	}
}

// filter returns the complete SQL condition of the plan for the letters of one source.
func (p *plan) filter(src source) clause {
	all := append([]clause{src.where}, p.dims...)
	all = append(all, p.rest...)
	if p.from > 0 {
		all = append(all, clause{src.key + " >= ?", []any{p.from}})
	}
	if p.to < math.MaxInt64 {
		all = append(all, clause{src.key + " < ?", []any{p.to}})
	}
	return allOf(all...)
}
