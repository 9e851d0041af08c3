package web

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const completions = 20 // of one answer

// helpWords completes the names of fields.
func helpWords() []view.Word {
	var out []view.Word
	for _, h := range query.Help() {
		out = append(out, view.Word{Text: begun(h.Field), Label: h.Help})
	}
	return out
}

// begun is a field with what stands behind its name.
func begun(f query.Field) string {
	if f == query.Header || f == query.Body {
		return string(f) + "."
	}
	return string(f) + ":"
}

// complete is GET /letters/complete?q=&at=: what can stand in the place of the word that ends at
// byte at, each with the text before it. Values come from the facets, which masking does not touch,
// as they are what letters are listed by; names and values of headers and of fields of the body
// come from the newest letters, under their masks.
func (w *Web) complete(r *http.Request) (any, error) {
	text := r.URL.Query().Get("q")
	if at, err := strconv.Atoi(r.URL.Query().Get("at")); err == nil && at >= 0 && at < len(text) {
		text = text[:at]
	}
	before, word := lastWord(text)
	if rest, ok := strings.CutPrefix(word, "-"); ok {
		before, word = before+"-", rest
	}
	counted, err := w.Store.Facets(r.Context(), query.Query{}, w.Fields...)
	if err != nil {
		return nil, err
	}
	names, err := w.fieldNamesNow(r.Context(), counted)
	if err != nil {
		return nil, err
	}
	name, value, has := strings.Cut(word, ":")
	if !has {
		return w.completeField(before, strings.ToLower(name), names), nil
	}
	return w.completeValue(before+name+":", name, value, counted, names), nil
}

// completeField completes the name of a field.
func (w *Web) completeField(before, begun string, names map[string][]string) []view.Word {
	out := []view.Word{}
	for _, h := range helpWords() {
		if strings.HasPrefix(h.Text, begun) && h.Text != begun {
			out = append(out, view.Word{Text: before + h.Text, Label: h.Label})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if head, _, _ := strings.Cut(name, "."); strings.HasPrefix(begun, head+".") && strings.HasPrefix(strings.ToLower(name), begun) && len(out) < completions {
			out = append(out, view.Word{Text: before + fieldText(name), Label: "e.g. " + names[name][0]})
		}
	}
	return out
}

// fieldText is a header or a field of the body as a query has it, up to its value.
func fieldText(name string) string {
	text, _, _ := strings.Cut((query.Query{}).With(query.Field(name), "x").String(), ":x")
	return text + ":"
}

// completeValue completes the value of a field behind a text that ends with its colon.
func (w *Web) completeValue(before, name, value string, counted deadletter.Facets, names map[string][]string) []view.Word {
	if comma := strings.LastIndexByte(value, ','); comma >= 0 {
		before, value = before+value[:comma+1], value[comma+1:]
	}
	value = strings.ToLower(strings.Trim(value, `"`))
	out, seen := []view.Word{}, map[string]bool{}
	offer := func(v, label string) {
		if len(out) < completions && !seen[v] {
			seen[v] = true
			_, written, _ := strings.Cut((query.Query{}).With(query.Queue, v).String(), ":") // quoted where it has to be
			out = append(out, view.Word{Text: before + written, Label: label})
		}
	}
	field := strings.ToLower(name)
	if head, rest, dotted := strings.Cut(name, "."); dotted {
		field = strings.ToLower(head) + "." + strings.Trim(rest, `"`)
	}
	for _, f := range counted.Fields {
		for _, v := range f.Values {
			if f.Field == field && strings.Contains(strings.ToLower(v.Value), value) {
				offer(v.Value, view.LetterCount(v.Count))
			}
		}
	}
	for _, h := range query.Help() {
		for _, v := range h.Values {
			if string(h.Field) == field && strings.HasPrefix(v, value) {
				offer(v, "")
			}
		}
	}
	for _, v := range names[field] {
		if strings.Contains(strings.ToLower(v), value) {
			offer(v, "")
		}
	}
	return out
}

// lastWord splits a query before its last word; blanks inside of quotes do not end one.
func lastWord(text string) (before, word string) {
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case strings.IndexByte(" \t\r\n", c) >= 0 && !quoted:
			start = i + 1
		}
	}
	return text[:start], text[start:]
}
