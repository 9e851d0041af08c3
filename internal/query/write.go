package query

import "strings"

// String returns the text of the query. If Parse parses this text with the same time Now, the
// result is an equal query. Free text comes last, and relative times stay relative.
func (q Query) String() string {
	var named, words []string
	for _, t := range q.Terms {
		if t.Field == Words {
			words = append(words, t.String())
		} else {
			named = append(named, t.String())
		}
	}
	return strings.Join(append(named, words...), " ")
}

// String returns the text of one term.
func (t Term) String() string {
	var b strings.Builder
	if t.Not {
		b.WriteByte('-')
	}
	if t.Field == Words {
		for _, v := range t.Values {
			b.WriteString(v.word())
		}
		return b.String()
	}
	b.WriteString(string(t.Field))
	if t.Field == Header || t.Field == Body {
		b.WriteByte('.')
		if strings.ContainsAny(t.Name, `:"*`+space) {
			b.WriteString(quote(t.Name))
		} else {
			b.WriteString(t.Name)
		}
	}
	for i, v := range t.Values {
		if i == 0 {
			b.WriteByte(':')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(v.write())
	}
	return b.String()
}

// write returns the text of a value in a term.
func (v Value) write() string {
	if v.Pattern == nil {
		return v.Raw
	}
	plain := pattern(v.Pattern)
	quoted := plain == "" || strings.ContainsAny(plain, `",`+space)
	for _, piece := range v.Pattern[:len(v.Pattern)-1] {
		// without quotes, this backslash would make the next star literal
		quoted = quoted || strings.HasSuffix(piece, `\`)
	}
	if !quoted {
		return plain
	}
	pieces := make([]string, len(v.Pattern))
	for i, piece := range v.Pattern {
		pieces[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`).Replace(piece)
	}
	return `"` + strings.Join(pieces, "*") + `"`
}

// word returns the text of a value in free text. It adds quotes only if the word could be mistaken
// for something else.
func (v Value) word() string {
	s := v.Pattern[0]
	if len(v.Pattern) > 1 {
		return pattern(v.Pattern)
	}
	if s == "" || s[0] == '-' || strings.ContainsAny(s, `"*:<>`+space) || s == "AND" || s == "OR" || s == "NOT" {
		return quote(s)
	}
	return s
}

// pattern returns the text of a value without quotes. There is a star between two pieces, and a
// backslash before each literal star.
func pattern(pieces []string) string {
	escaped := make([]string, len(pieces))
	for i, piece := range pieces {
		escaped[i] = strings.ReplaceAll(piece, "*", `\*`)
	}
	return strings.Join(escaped, "*")
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
