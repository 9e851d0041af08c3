package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	wordsOf     = 5  // values of one facet among the completions of a page
	completions = 20 // of one answer
)

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

// words completes the first word of a query: the fields, and the values that most letters have.
func words(counted deadletter.Facets) []view.Word {
	out := helpWords()
	for _, f := range counted.Fields {
		for _, v := range f.Values[:min(len(f.Values), wordsOf)] {
			out = append(out, view.Word{Text: (query.Query{}).With(query.Field(f.Field), v.Value).String(), Label: view.LetterCount(v.Count)})
		}
	}
	return out
}

// complete is GET /letters/complete?q=&at=: what can stand in the place of the word that ends at
// byte at, each with the text before it. Values come from the facets, which masking does not touch:
// they are what letters are listed by.
func (w *Web) complete(r *http.Request) (any, error) {
	text := r.URL.Query().Get("q")
	if at, err := strconv.Atoi(r.URL.Query().Get("at")); err == nil && at >= 0 && at < len(text) {
		text = text[:at]
	}
	before, word := lastWord(text)
	not := ""
	if rest, ok := strings.CutPrefix(word, "-"); ok {
		not, word = "-", rest
	}
	out := []view.Word{}
	name, value, has := strings.Cut(word, ":")
	if !has {
		for _, h := range helpWords() {
			if strings.HasPrefix(h.Text, strings.ToLower(name)) {
				out = append(out, view.Word{Text: before + not + h.Text, Label: h.Label})
			}
		}
		return out, nil
	}
	earlier := ""
	if comma := strings.LastIndexByte(value, ','); comma >= 0 {
		earlier, value = value[:comma+1], value[comma+1:]
	}
	value = strings.ToLower(strings.Trim(value, `"`))
	field := query.Field(strings.ToLower(name))
	offer := func(term, label string) {
		if len(out) < completions {
			_, written, _ := strings.Cut(term, ":")
			out = append(out, view.Word{Text: before + not + name + ":" + earlier + written, Label: label})
		}
	}
	seen := map[string]bool{}
	counted, err := w.Store.Facets(r.Context(), query.Query{})
	if err != nil {
		return nil, err
	}
	for _, f := range counted.Fields {
		for _, v := range f.Values {
			if query.Field(f.Field) == field && strings.Contains(strings.ToLower(v.Value), value) {
				seen[v.Value] = true
				offer((query.Query{}).With(field, v.Value).String(), view.LetterCount(v.Count))
			}
		}
	}
	for _, h := range query.Help() {
		for _, v := range h.Values {
			if h.Field == field && !seen[v] && strings.HasPrefix(v, value) {
				offer(":"+v, "")
			}
		}
	}
	return out, nil
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
