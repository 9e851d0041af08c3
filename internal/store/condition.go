package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// span returns the range of serials of the letters that a term on the time of receipt selects. The
// range includes "from" but not "to".
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

// maxTokens is the maximum number of values of one counted column for which the search index is
// queried.
const maxTokens = 100

// condition compiles one term, without its negation. The result dim is true if the term concerns
// columns by which letters are counted. In this case, tokens contains the search tokens of the
// term's values, or is nil if the values contain patterns.
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

// matches returns true if a name equals one of the values or matches a value with stars.
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

// expression returns a full-text expression for a term, without the term's negation. If the term is
// true of a letter, the letter's search tokens match the expression.
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
