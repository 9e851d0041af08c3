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

const completions = 20 // maximum number of completions in a response

// fieldWords returns the field names that complete what has been typed in the search box.
func fieldWords(help []query.FieldHelp, before, name string) []view.Word {
	out := []view.Word{}
	for _, h := range help {
		if text := fieldPrefix(h.Field); strings.HasPrefix(text, name) && text != name {
			out = append(out, view.Word{Text: before + text, Label: h.Help})
		}
	}
	return out
}

// fieldPrefix returns the name of a field, with the colon or the dot that follows it in a query.
func fieldPrefix(f query.Field) string {
	if f == query.Header || f == query.Body {
		return string(f) + "."
	}
	return string(f) + ":"
}

// complete handles GET /letters/complete?q=&at=. It returns completions of the word that ends at
// the byte offset "at" of the query. Each completion includes the text before the word.
//
// Completions of values come from the facets. The facets are not masked, because people select
// letters by the real values. Completions for headers and body fields come from the newest letters,
// and masks are applied to them.
func (w *Web) complete(r *http.Request) (any, error) {
	before, word := wordAt(r)
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

// completeAct handles GET /audit/complete?q=&at=. It returns completions of a query for the audit.
func (w *Web) completeAct(r *http.Request) (any, error) {
	before, word := wordAt(r)
	name, value, has := strings.Cut(word, ":")
	if !has {
		return fieldWords(query.ActHelp(), before, strings.ToLower(name)), nil
	}
	field := strings.ToLower(name)
	v := newValues(before+name+":", value)
	switch query.Field(field) {
	case query.Who:
		people, err := w.Store.People(r.Context())
		if err != nil {
			return nil, err
		}
		for _, name := range append(people, deadletter.Service.Name) {
			v.offer(name, "")
		}
	case query.Target:
		targets, err := w.Store.Targets(r.Context(), v.part, completions)
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			v.offer(t.Name, string(t.Kind))
		}
	}
	v.offerHelp(query.ActHelp(), field)
	return v.out, nil
}

// wordAt returns the word that ends at the byte offset "at" of the query "q" of a request, without
// a leading minus. It also returns the text before the word.
func wordAt(r *http.Request) (before, word string) {
	text := r.URL.Query().Get("q")
	if at, err := strconv.Atoi(r.URL.Query().Get("at")); err == nil && at >= 0 && at < len(text) {
		text = text[:at]
	}
	before, word = lastWord(text)
	if rest, ok := strings.CutPrefix(word, "-"); ok {
		before, word = before+"-", rest
	}
	return before, word
}

// completeField returns the completions of the name of a field, including headers and body fields.
func (w *Web) completeField(before, begun string, names map[string][]string) []view.Word {
	out := fieldWords(query.Help(), before, begun)
	plain := func(name string) string { return strings.ToLower(deadletter.JSONName(name)) }
	for _, name := range slices.Sorted(maps.Keys(names)) {
		head, _, _ := strings.Cut(name, ".")
		if strings.HasPrefix(begun, head+".") && strings.HasPrefix(plain(name), plain(begun)) &&
			len(out) < completions {
			out = append(out, view.Word{Text: before + fieldText(name), Label: "e.g. " + names[name][0]})
		}
	}
	return out
}

// fieldText returns the part of a query term before the value, for a header or a body field.
func fieldText(name string) string {
	text, _, _ := strings.Cut((query.Query{}).With(query.Field(name), "x").String(), ":x")
	return text + ":"
}

// completeValue returns the values that complete what has been typed after "field:" in the search
// box. The parameter "prefix" is the query up to and including the colon of that field.
func (w *Web) completeValue(
	prefix, name, value string, counted deadletter.Facets, names map[string][]string,
) []view.Word {
	words := newValues(prefix, value)
	field := strings.ToLower(name)
	if head, rest, dotted := strings.Cut(name, "."); dotted {
		field = strings.ToLower(head) + "." + strings.Trim(rest, `"`)
	}
	for _, f := range counted.Fields {
		for _, v := range f.Values {
			if deadletter.SameName(f.Field, field) {
				words.offer(v.Value, view.LetterCount(v.Count))
			}
		}
	}
	words.offerHelp(query.Help(), field)
	for _, known := range slices.Sorted(maps.Keys(names)) {
		if deadletter.SameName(known, field) {
			for _, v := range names[known] {
				words.offer(v, "")
			}
		}
	}
	return words.out
}

// valueWords collects completions of a value.
type valueWords struct {
	before, part string
	out          []view.Word
	seen         map[string]bool
}

// newValues returns a list of completions for the value of a field. The list is empty at first, and
// the method "offer" adds to it. The parameter "prefix" is the query up to and including the colon
// of the field. If the value is a list, only its last element is completed.
func newValues(prefix, value string) *valueWords {
	if comma := strings.LastIndexByte(value, ','); comma >= 0 {
		prefix, value = prefix+value[:comma+1], value[comma+1:]
	}
	return &valueWords{
		before: prefix,
		part:   strings.ToLower(strings.Trim(value, `"`)),
		out:    []view.Word{},
		seen:   map[string]bool{},
	}
}

// offer adds v as a completion if v contains the text that was typed.
func (w *valueWords) offer(v, label string) {
	if strings.Contains(strings.ToLower(v), w.part) {
		w.add(v, label)
	}
}

// offerHelp offers values from the help text of a field, if they begin with the text that was
// typed.
func (w *valueWords) offerHelp(help []query.FieldHelp, field string) {
	for _, h := range help {
		for _, v := range h.Values {
			if string(h.Field) == field && strings.HasPrefix(v, w.part) {
				w.add(v, "")
			}
		}
	}
}

func (w *valueWords) add(v, label string) {
	if len(w.out) < completions && !w.seen[v] {
		w.seen[v] = true
		_, written, _ := strings.Cut((query.Query{}).With(query.Queue, v).String(), ":") // in quotes, if necessary
		w.out = append(w.out, view.Word{Text: w.before + written, Label: label})
	}
}

// lastWord splits a query into its last word and the text before it. A space inside quotes does not
// end a word.
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
