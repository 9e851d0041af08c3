package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// clause is an SQL condition. Its text has a ? for each argument.
type clause struct {
	text string
	args []any
}

// every joins conditions with AND.
func every(clauses ...clause) clause { return joined(" AND ", "1", clauses) }

// some joins conditions with OR.
func some(clauses ...clause) clause { return joined(" OR ", "0", clauses) }

func joined(with, none string, clauses []clause) clause {
	var texts []string
	var args []any
	for _, c := range clauses {
		if c.text != "" {
			texts, args = append(texts, c.text), append(args, c.args...)
		}
	}
	switch len(texts) {
	case 0:
		return clause{text: none}
	case 1:
		return clause{texts[0], args}
	}
	return clause{"(" + strings.Join(texts, with) + ")", args}
}

func not(c clause) clause { return clause{"NOT " + "(" + c.text + ")", c.args} }

// in returns column IN (values). Without values, the condition matches no row.
func in(column string, values []any) clause {
	if len(values) == 0 {
		return clause{text: "0"}
	}
	return clause{column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")", values}
}

// numbered replaces each ? with $1, $2, and so on. The text never contains values.
func numbered(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if r == '?' {
			n++
			fmt.Fprintf(&b, "$%d", n)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plan is a query prepared for SQL over letters l. dims are conditions on the columns by which
// letters are counted. These conditions apply to both letters and counters.
type plan struct {
	dims     []clause
	fields   []query.Field // field of each of dims
	rest     []clause      // conditions on other columns
	match    string        // expression that the tokens of a letter must match; "" = no condition
	ids      *clause       // condition on the ids that the query names
	op       *clause       // letters of one operation: condition on operation_letters ol
	from, to int64         // range of serials; from is included, to is not
	grouped  bool          // dims restrict more than the state
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
	var also, alsoNot []string  // dims as tokens, which help if the index is queried anyway
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
			t.Field, t.Name = query.Header, "" // the index of words holds short ids under a field name that no header can have
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

// narrow converts a term with a single time into a bound of the serials, which begin with the time
// of receipt.
func (p *plan) narrow(t query.Term) bool {
	if t.Field != query.Since && t.Field != query.Before && t.Field != query.Age {
		return false
	}
	from, to := span(t.Field, t.Values[0])
	p.from, p.to = max(p.from, from), min(p.to, to)
	return true
}

// span returns the range of serials that a time selects. from is included, to is not.
func span(f query.Field, v query.Value) (from, to int64) {
	at, after := deadletter.SerialAt(v.Time), deadletter.SerialAt(v.Time.Add(time.Millisecond))
	switch {
	case f == query.Since, v.Compare == query.AtMost:
		return at, math.MaxInt64
	case f == query.Before, v.Compare == query.More:
		return 0, at
	case v.Compare == query.AtLeast:
		return 0, after
	}
	return after, math.MaxInt64
}

// maxTokens is the maximum number of values of one dim with which the index of words is queried.
const maxTokens = 100

// condition compiles one term, without its negation. dim reports whether letters are counted by the
// columns of the term. If so, tokens are the tokens of the term's values, or nil if the values
// contain patterns.
func (s *Store) condition(ctx context.Context, t query.Term) (c clause, dim bool, tokens []string, err error) {
	ids := func(column string, prefix byte, ids []any) (clause, bool, []string, error) {
		for _, id := range ids {
			tokens = append(tokens, numberToken(prefix, id.(int64)))
		}
		return in(column, ids), true, tokens, nil
	}
	switch t.Field {
	case query.State:
		return text("l.state", t.Values), true, nil, nil
	case query.Severity, query.Reason:
		for _, v := range t.Values {
			if len(v.Pattern) > 1 {
				return text("l."+string(t.Field), t.Values), true, nil, nil
			}
			tokens = append(tokens, fieldToken(string(t.Field), v.Pattern[0]))
		}
		return text("l."+string(t.Field), t.Values), true, tokens, nil
	case query.Queue:
		return ids("l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool { return matches(t.Values, p.Queue) }))
	case query.VHost:
		return ids("l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool { return matches(t.Values, p.VHost) }))
	case query.Broker:
		return ids("l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool {
			return slices.ContainsFunc(s.known.names(p.Broker), func(name string) bool { return matches(t.Values, name) })
		}))
	case query.Type:
		none := slices.ContainsFunc(t.Values, func(v query.Value) bool { return v.Raw == query.NoType })
		return ids("l.type", tokenType, s.names.typesWhere(func(name string) bool {
			if name == "" {
				return none
			}
			return matches(t.Values, name)
		}))
	case query.Group:
		var groups []any
		for _, v := range t.Values {
			id, err := deadletter.ParseGroupID(v.Raw)
			if err != nil {
				return c, false, nil, err
			}
			family, err := s.family(ctx, int64(id))
			if err != nil {
				return c, false, nil, err
			}
			for _, id := range family {
				groups = append(groups, id)
			}
		}
		return ids("l.grp", tokenGroup, groups)
	case query.Owner, query.Status:
		if c = s.status(t.Values); t.Field == query.Owner {
			c = text("g.owner", t.Values)
		}
		return clause{"l.grp IN (SELECT m.id FROM groups m JOIN groups g ON g.id = coalesce(m.head, m.id) WHERE " + c.text + ")", c.args}, true, nil, nil
	case query.ErrorText:
		return text("l.error", t.Values), false, nil, nil
	case query.Attempts, query.Size:
		var list []clause
		for _, v := range t.Values {
			compare := string(v.Compare)
			if compare == "" {
				compare = "="
			}
			list = append(list, clause{"l." + string(t.Field) + " " + compare + " ?", []any{v.Number}})
		}
		return some(list...), false, nil, nil
	case query.Since, query.Before, query.Age:
		from, to := span(t.Field, t.Values[0])
		return clause{"l.id >= ? AND l.id < ?", []any{from, to}}, false, nil, nil
	case query.ID:
		var serials []any
		for _, v := range t.Values {
			id, err := deadletter.ParseID(v.Raw)
			if err != nil {
				return c, false, nil, fmt.Errorf("%w: id takes whole ids or short ones, not both in one term", deadletter.ErrInvalid)
			}
			if serial, _, ok := id.Split(); ok {
				serials = append(serials, serial)
			}
		}
		return in("l.id", serials), false, nil, nil
	case query.Doubt:
		var numbers []any
		for _, v := range t.Values {
			numbers = append(numbers, slices.Index(deadletter.Doubts, deadletter.Doubt(v.Raw))+1)
		}
		c = in("d.suspect", numbers)
		return clause{"l.id IN (SELECT d.id FROM letters d WHERE d.suspect > 0 AND " + c.text + ")", c.args}, false, nil, nil
	case query.Op:
		var list []clause
		for _, v := range t.Values {
			list = append(list, operation(v))
		}
		c = some(list...)
		return clause{"EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.letter = l.id AND " + c.text + ")", c.args}, false, nil, nil
	}
	return c, false, nil, fmt.Errorf("%w: the store knows no field %q", deadletter.ErrInvalid, t.Field)
}

// operation returns the condition on operation_letters ol.
func operation(v query.Value) clause {
	c := clause{"ol.operation = ?", []any{int64(v.Op)}}
	if v.Result != "" {
		c = every(c, clause{"ol.result = ?", []any{string(v.Result)}})
	}
	return c
}

// text returns the condition on a text column for exact values and for patterns with stars. SQLite
// ignores case in patterns.
func text(column string, values []query.Value) clause {
	var whole []any
	var list []clause
	for _, v := range values {
		if len(v.Pattern) == 1 {
			whole = append(whole, v.Pattern[0])
			continue
		}
		pieces := make([]string, len(v.Pattern))
		for i, piece := range v.Pattern {
			pieces[i] = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(piece)
		}
		list = append(list, clause{column + ` LIKE ? ESCAPE '\'`, []any{strings.Join(pieces, "%")}})
	}
	if len(whole) > 0 {
		list = append(list, in(column, whole))
	}
	return some(list...)
}

// matches reports whether a name equals one of the values or matches a value with stars.
func matches(values []query.Value, name string) bool {
	return slices.ContainsFunc(values, func(v query.Value) bool {
		last := len(v.Pattern) - 1
		if last == 0 {
			return name == v.Pattern[0]
		}
		rest, ok := strings.CutPrefix(name, v.Pattern[0])
		if !ok || len(rest) < len(v.Pattern[last]) || !strings.HasSuffix(rest, v.Pattern[last]) {
			return false
		}
		rest = rest[:len(rest)-len(v.Pattern[last])]
		for _, piece := range v.Pattern[1:last] {
			i := strings.Index(rest, piece)
			if i < 0 {
				return false
			}
			rest = rest[i+len(piece):]
		}
		return true
	})
}

const shortID = 8 // hex digits

// expression returns a full-text expression for a term, without the term's negation. The tokens of
// a letter match the expression if the term holds for the letter.
func expression(t query.Term) (string, error) {
	var alternatives []string
	for _, v := range t.Values {
		var all []string
		prefix := len(v.Pattern) == 2 && v.Pattern[1] == ""
		switch {
		case len(v.Pattern) > 1 && !prefix:
			return "", fmt.Errorf("%w: %s: a star can only stand at the end here", deadletter.ErrInvalid, t)
		case t.Field == query.Words:
			if all = wordTokens(v.Pattern[0]); len(all) == 0 {
				return "", fmt.Errorf("%w: %s has no word to search for", deadletter.ErrInvalid, t)
			}
		case prefix && len(v.Pattern[0]) > maxValue:
			return "", fmt.Errorf("%w: %s: a value is found by at most its first %d bytes", deadletter.ErrInvalid, t, maxValue)
		case prefix:
			all = []string{fieldPrefix(fieldName(t), v.Pattern[0])}
		case v.Pattern[0] == "":
			return "", fmt.Errorf("%w: %s: letters without it are found by -%s:*", deadletter.ErrInvalid, t, fieldName(t))
		default:
			all = []string{fieldToken(fieldName(t), v.Pattern[0])}
		}
		if last := len(all) - 1; prefix && t.Field == query.Words {
			all[last] = wordPrefix(all[last])
		} else if prefix {
			all[last] += "*"
		}
		alternatives = append(alternatives, "("+strings.Join(all, " AND ")+")")
	}
	return "(" + strings.Join(alternatives, " OR ") + ")", nil
}

// fieldName returns the name under which a field is indexed. The short id of a letter uses the
// empty header name, which no header can have.
func fieldName(t query.Term) string {
	switch {
	case t.Field == query.Header && t.Name == "":
		return string(query.ID)
	case t.Field == query.Header || t.Field == query.Body:
		return string(t.Field) + "." + t.Name
	}
	return string(t.Field)
}

// reader runs queries. It is either the pool of read connections of the store or one of these
// connections in a snapshot.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// source is a subset of the letters that one index returns in order of their serials.
type source struct {
	from  string // FROM of the SELECT; contains letters l
	key   string // the column of the serial
	where clause // the lookup in the index
}

// maxBranches is the maximum number of parts of the group index that one list merges. Each part
// takes some 10 us. A query that matches more groups is read by state instead.
const maxBranches = 2000

// sources returns sources that together contain everything a plan selects, without duplicates. If
// the sources do not come from the index of words, sources adds the condition on words to the plan.
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

// branches returns the parts of an index that contain matching letters according to the counters.
// The parts are those of the index by state, or of the index by group and state.
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
			case group == 0: // there are few such letters: they are received or undecided
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

// fewer reports whether so few letters match, according to the counters, that the list should read
// the parts of the index by state or group. The index of words is then read once for each part.
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

// probe adds the condition on the letters' tokens to the conditions on letters.
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
