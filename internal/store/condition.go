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

// serialRange converts a term on the time of receipt to a range of letter serials. The range begins
// with the serial "from" and ends before the serial "to".
func serialRange(f query.Field, v query.Value) (from, to int64) {
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

// maxTokens limits how many values, such as names of queues, one query looks up in the search
// index. It applies only to the columns for which the store has counters of letters, such as the
// queue.
const maxTokens = 100

// condition converts one term of a query to an SQL condition. It ignores the negation of the term.
//
// The result "dim" is true if the store has counters for each value of the term's column, as it has
// for states and queues. In that case, the result "tokens" contains the search tokens for the
// values of the term. It is nil if a value contains a pattern.
func (s *Store) condition(ctx context.Context, t query.Term) (c clause, dim bool, tokens []string, err error) {
	ids := func(column string, prefix byte, ids []any) (clause, bool, []string, error) {
		for _, id := range ids {
			tokens = append(tokens, numberToken(prefix, id.(int64)))
		}
		return inList(column, ids), true, tokens, nil
	}
	switch t.Field {
	case query.State:
		states := make([]any, len(t.Values))
		for i, v := range t.Values {
			states[i] = deadletter.State(v.Raw)
		}
		return inList("l.state", states), true, nil, nil
	case query.Severity, query.Reason:
		for _, v := range t.Values {
			if len(v.Pattern) > 1 {
				return textClause("l."+string(t.Field), t.Values), true, nil, nil
			}
			tokens = append(tokens, fieldToken(string(t.Field), v.Pattern[0]))
		}
		return textClause("l."+string(t.Field), t.Values), true, tokens, nil
	case query.Queue:
		return ids(
			"l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool { return matchesAny(t.Values, p.Queue) }),
		)
	case query.VHost:
		return ids(
			"l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool { return matchesAny(t.Values, p.VHost) }),
		)
	case query.Broker:
		return ids(
			"l.origin", tokenOrigin, s.names.originsWhere(func(p place) bool { return matchesAny(t.Values, p.Broker) }),
		)
	case query.Type:
		none := slices.ContainsFunc(t.Values, func(v query.Value) bool { return v.Raw == query.NoType })
		return ids("l.type", tokenType, s.names.typesWhere(func(name string) bool {
			if name == "" {
				return none
			}
			return matchesAny(t.Values, name)
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
		if c = s.statusCondition(t.Values); t.Field == query.Owner {
			c = textClause("g.owner", t.Values)
		}
		return clause{
			"l.grp IN (SELECT m.id FROM groups m JOIN groups g ON g.id = coalesce(m.head, m.id) WHERE " + c.text + ")",
			c.args,
		}, true, nil, nil
	case query.ErrorText:
		return textClause("l.error", t.Values), false, nil, nil
	case query.Attempts, query.Size:
		var list []clause
		for _, v := range t.Values {
			compare := string(v.Compare)
			if compare == "" {
				compare = "="
			}
			list = append(list, clause{"l." + string(t.Field) + " " + compare + " ?", []any{v.Number}})
		}
		return anyOf(list...), false, nil, nil
	case query.Since, query.Before, query.Age:
		from, to := serialRange(t.Field, t.Values[0])
		return clause{"l.id >= ? AND l.id < ?", []any{from, to}}, false, nil, nil
	case query.ID:
		var serials []any
		for _, v := range t.Values {
			id, err := deadletter.ParseID(v.Raw)
			if err != nil {
				return c, false, nil, fmt.Errorf(
					"%w: id takes whole ids or short ones, not both in one term", deadletter.ErrInvalid,
				)
			}
			if serial, _, ok := id.Split(); ok {
				serials = append(serials, serial)
			}
		}
		return inList("l.id", serials), false, nil, nil
	case query.Doubt:
		var numbers []any
		for _, v := range t.Values {
			numbers = append(numbers, slices.Index(deadletter.Doubts, deadletter.Doubt(v.Raw))+1)
		}
		c = inList("d.suspect", numbers)
		return clause{
			"l.id IN (SELECT d.id FROM letters d WHERE d.suspect > 0 AND " + c.text + ")", c.args,
		}, false, nil, nil
	case query.Op:
		var list []clause
		for _, v := range t.Values {
			list = append(list, operationClause(v))
		}
		c = anyOf(list...)
		return clause{
			"EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.letter = l.id AND " + c.text + ")", c.args,
		}, false, nil, nil
	}
	return c, false, nil, fmt.Errorf("%w: the store knows no field %q", deadletter.ErrInvalid, t.Field)
}

// operationClause returns an SQL condition on the table operation_letters, which has the alias ol.
// It selects the letters of an operation. If the value names a result, it selects only letters with
// that result.
func operationClause(v query.Value) clause {
	c := clause{"ol.operation = ?", []any{int64(v.Op)}}
	if v.Result != "" {
		c = allOf(c, clause{"ol.result = ?", []any{string(v.Result)}})
	}
	return c
}

// textClause returns an SQL condition on a text column. A value without stars must equal the text,
// and a value with stars is a pattern. In patterns, SQLite ignores the case of letters.
func textClause(column string, values []query.Value) clause {
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
		list = append(list, inList(column, whole))
	}
	return anyOf(list...)
}

// matchesAny reports whether a name equals one of the values or matches a value with stars.
func matchesAny(values []query.Value, name string) bool {
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

const shortID = 8 // number of hex digits in the short id of a letter

// expression converts a term to an expression for the full-text index. It ignores the negation of
// the term. If the term is true of a letter, the expression matches the search tokens of that
// letter.
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
			return "", fmt.Errorf(
				"%w: %s: a value is found by at most its first %d bytes", deadletter.ErrInvalid, t, maxValue,
			)
		case prefix:
			all = []string{fieldPrefix(fieldName(t), v.Pattern[0])}
		case v.Pattern[0] == "":
			return "", fmt.Errorf(
				"%w: %s: letters without it are found by -%s:*", deadletter.ErrInvalid, t, fieldName(t),
			)
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

// fieldName returns the name under which a field is in the search index. The short id of a letter
// is indexed like a header with an empty name, because no real header can have this name.
func fieldName(t query.Term) string {
	switch {
	case t.Field == query.Header && t.Name == "":
		return string(query.ID)
	case t.Field == query.Header || t.Field == query.Body:
		return string(t.Field) + "." + t.Name
	}
	return string(t.Field)
}
