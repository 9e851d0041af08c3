package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
)

// hide masks the properties and headers of a letter at any depth, so that later code cannot show
// the masked values. It does not change the letter in the store. It reports whether anything was
// masked.
func (w *Web) hide(l *deadletter.Letter) bool {
	first, last := w.hideProperties(&l.Properties), w.hideProperties(&l.Arrived)
	// The store may contain texts of the letter that were written before a mask was configured.
	// Therefore they are masked here, when they are read.
	texts := w.hideTexts(&l.Row)
	return w.hideFailure(l) || first || last || texts
}

// hideTexts masks the texts of a letter that lists show. It reports whether anything was masked.
func (w *Web) hideTexts(row *deadletter.Row) bool {
	masked := false
	for _, text := range row.Texts() {
		var hidden bool
		*text, hidden = w.Header("", *text)
		masked = masked || hidden
	}
	return masked
}

// queryOptions returns settings for parsing queries. What a query means depends on its text and on
// these settings.
func (w *Web) queryOptions() query.Options {
	return query.Options{Now: w.Now(), Masked: w.maskedField, Body: w.indexedPath}
}

// lookOptions returns the queryOptions for lists. With these options, a query may contain terms
// that no index covers. A list finds the letters for such terms by reading them.
func (w *Web) lookOptions() query.Options {
	o := w.queryOptions()
	o.Look = true
	return o
}

// indexedPath reports whether the search index has a path of the body, in any of its spellings.
func (w *Web) indexedPath(path string) bool {
	return slices.Contains(deadletter.Spellings(w.Fields...), path)
}

// facetedPaths returns the paths of the body that get a facet beside the letters of a query. A path
// is spelled as the query spells it.
func (w *Web) facetedPaths(q query.Query) []string {
	return each(w.Fields, func(path string) string {
		for _, t := range q.Terms {
			listed := t.Field != query.Body || slices.Contains(w.Fields, t.Name)
			if !listed && slices.Contains(deadletter.Spellings(path), t.Name) {
				path = t.Name
			}
		}
		return path
	})
}

// maskedField reports whether queries must not use a field, because its values are always masked.
func (w *Web) maskedField(field string) bool {
	if path, ok := strings.CutPrefix(field, "body."); ok {
		return w.Masked(path)
	}
	name, header := strings.CutPrefix(field, "header.")
	property, ok := map[string]string{
		"message_id": "message-id", "correlation_id": "correlation-id", "app": "app-id",
	}[field]
	if ok {
		name = property
	}
	if !header && !ok {
		return false
	}
	_, hidden := w.Header(name, "")
	return hidden
}

// hideRows masks the values that a list of letters shows. It changes the given rows and returns
// them.
func (w *Web) hideRows(rows []deadletter.Row) []deadletter.Row {
	for i := range rows {
		w.hideTexts(&rows[i])
	}
	return rows
}

// bytesMasked reports whether the bytes of a body must be kept from the reader, because masks are
// configured.
func (w *Web) bytesMasked(doc *payload.Document) bool { return w.Decoder().BytesMasked(doc) }

func (w *Web) hideProperties(p *deadletter.Properties) bool {
	masked := false
	for _, property := range p.ShortStrings() {
		if text, hidden := w.maskedText(property.Dashed(), *property.Value); hidden {
			*property.Value, masked = text, true
		}
	}
	headers, hidden := w.hideTable(p.Headers, "")
	p.Headers = headers
	return masked || hidden
}

// hideTable returns a copy of a table of headers with its masked values replaced. It reports
// whether it replaced any. If the table is the value of a header, the parameter "inside" is the
// name of that header.
func (w *Web) hideTable(t deadletter.Table, inside string) (deadletter.Table, bool) {
	masked := false
	table := make(deadletter.Table, len(t))
	for key, value := range t {
		var shown any
		var hidden bool
		if inside != "" {
			shown, hidden = w.hideField(inside, value)
		}
		// the fields queue, exchange and time stay, because lists select letters by them
		if !hidden && !(deadletter.BrokerOwned(inside) && (key == "queue" || key == "exchange" || key == "time")) {
			shown, hidden = w.hideField(key, value)
		}
		if !hidden {
			shown = value
		}
		name, named := w.Header("", key)
		table[name], masked = shown, masked || hidden || named
	}
	return table, masked
}

// namesMasked reports whether the bytes of an unreadable header may contain the name of a masked
// header. It looks for names in the form that AMQP uses: a byte with the length comes before the
// name, and a byte with the type of the value follows it.
func (w *Web) namesMasked(field []byte) bool {
	for i, n := range field {
		end := i + 1 + int(n)
		if n == 0 || end >= len(field) || !strings.Contains("VtbBsuIilLfdDSxTAF", string(rune(field[end]))) {
			continue
		}
		if _, hidden := w.Header(string(field[i+1:end]), ""); hidden {
			return true
		}
	}
	return false
}

func (w *Web) hideField(name string, value any) (any, bool) {
	switch v := value.(type) {
	case string:
		return w.Header(name, v)
	case []byte:
		return w.Header(name, string(v))
	case deadletter.Unread:
		if text, hidden := w.Header(name, string(v.Field)); hidden {
			return text, true
		}
		if w.namesMasked(v.Field) {
			return payload.Masked, true
		}
		return v, false
	case []any:
		masked := false
		list := make([]any, len(v))
		for i, e := range v {
			shown, hidden := w.hideField(name, e)
			list[i], masked = shown, masked || hidden
		}
		return list, masked
	case deadletter.Table:
		return w.hideTable(v, name)
	case time.Time, nil:
		_, hidden := w.Header(name, "") // the header is masked whatever its value is
		return payload.Masked, hidden
	default: // the mask is compared with the number written as text
		return w.Header(name, fmt.Sprint(v))
	}
}
