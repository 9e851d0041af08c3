package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// compared is one field of the two letters that are compared.
type compared struct {
	part string // fact, property, header or body
	payload.Comparison
}

// compare handles GET /letters/compare?a=&b=&q=. It shows two letters, field by field. A list sends
// the two ticked letters as two parameters with the name "id", and not as "a" and "b".
func (w *Web) compare(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	p := view.ComparePage{
		Shell: w.shell(r, "Compare letters", view.SectionLetters),
		Query: form.Get("q"),
		Typed: [2]string{form.Get("a"), form.Get("b")},
	}
	if _, err := query.Parse(p.Query, w.lookOptions()); err != nil {
		p.Query = ""
	}
	if ticked := form["id"]; len(ticked) > 0 {
		if len(ticked) != 2 {
			return nil, invalid(
				"tick exactly two letters to compare them; %s ticked", deadletter.Plural(len(ticked), "is", "are"),
			)
		}
		p.Typed = [2]string(ticked)
	}
	if p.Typed[0] == "" || p.Typed[1] == "" {
		return view.Compare(p), nil
	}
	a, b, list, err := w.compareLetters(r, p.Typed[0], p.Typed[1])
	if err != nil {
		return nil, err
	}
	p.A, p.B, p.Done, p.Edited = a, b, true, a.ID == b.ID
	for _, c := range list {
		p.Fields = append(p.Fields, view.ComparedField{
			Part:     c.part,
			Path:     c.Path,
			A:        c.A,
			B:        c.B,
			Sameness: view.Sameness(c.Sameness),
		})
	}
	return view.Compare(p), nil
}

// apiCompare handles GET /letters/compare?a=&b=.
func (w *Web) apiCompare(r *http.Request) (any, error) {
	form, err := parameters(r, "a", "b")
	if err != nil {
		return nil, err
	}
	if form.Get("a") == "" || form.Get("b") == "" {
		return nil, invalid("a and b name the letters to compare")
	}
	a, b, list, err := w.compareLetters(r, form.Get("a"), form.Get("b"))
	if err != nil {
		return nil, err
	}
	out := api.Comparison{A: apiRowOf(a), B: apiRowOf(b), Fields: []api.ComparedField{}}
	for _, c := range list {
		f := api.ComparedField{Part: c.part, Path: c.Path, A: &c.A, B: &c.B, Outcome: string(c.Sameness)}
		switch c.Sameness {
		case payload.Equal:
			out.Same++
		case payload.OnlyA:
			f.B = nil
		case payload.OnlyB:
			f.A = nil
		}
		out.Fields = append(out.Fields, f)
	}
	return out, nil
}

// compareLetters compares two letters that the reader may see. If both ids name the same edited
// letter, it compares the version that was received with the version that would be sent. Only
// readers who may reveal both letters learn whether masked values are equal.
func (w *Web) compareLetters(r *http.Request, first, second string) (a, b deadletter.Row, list []compared, err error) {
	ctx, by := r.Context(), principal(r)
	var letters [2]deadletter.Letter
	var docs [2]*payload.Document
	reveal := true
	for i, name := range []string{first, second} {
		if letters[i], err = w.letterNamed(r, strings.TrimSpace(name)); err == nil && letters[i].Withheld {
			err = deadletter.Allow(by, deadletter.VerbRead, letters[i].Place())
		}
		if err != nil {
			return a, b, nil, err
		}
	}
	if letters[0].ID == letters[1].ID {
		letters[0].Revision, letters[0].Revised = 0, nil
	}
	for i := range letters {
		if docs[i], err = w.decode(ctx, &letters[i]); err != nil {
			return a, b, nil, err
		}
		reveal = reveal && deadletter.Allow(by, deadletter.VerbReveal, letters[i].Place()) == nil
	}
	add := func(part string, of func(i int) []payload.Field) {
		for _, c := range payload.Compare(of(0), of(1), reveal) {
			list = append(list, compared{part, c})
		}
	}
	add("fact", func(i int) []payload.Field { return w.comparedFacts(&letters[i], docs[i]) })
	add("property", func(i int) []payload.Field { return w.comparedProperties(&letters[i]) })
	add("header", func(i int) []payload.Field { return w.comparedHeaders(&letters[i]) })
	add("body", func(i int) []payload.Field { return docs[i].Values(w.bytesMasked(docs[i])) })
	rows := w.hideRows([]deadletter.Row{letters[0].Row(), letters[1].Row()})
	return rows[0], rows[1], list, nil
}

// text returns a field of a letter, masked.
func (w *Web) text(name, mask, value string) payload.Field {
	f := payload.Field{Path: name, Shown: value}
	if f.Shown, f.Masked = w.maskedText(mask, value); f.Masked {
		f.Whole = value
	}
	return f
}

// texts returns fields for the comparison of letters. The parameter "pairs" contains the name of a
// field, then its value, then the next name, and so on. Fields with an empty value are left out.
func (w *Web) texts(pairs ...string) (list []payload.Field) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, w.text(pairs[i], "", pairs[i+1]))
		}
	}
	return list
}

// comparedFacts returns why a letter died, and other facts about it.
func (w *Web) comparedFacts(l *deadletter.Letter, doc *payload.Document) []payload.Field {
	list := w.texts("error", l.Error)
	if f := l.Annotation; f != nil {
		list = append(
			list,
			w.texts(
				"reported type", f.Type, "reported message", f.Message, "reported stack", f.Stack, "service", f.Service,
				"version", f.Version,
			)...,
		)
	}
	o := l.Origin
	for _, fact := range [][2]string{
		{"reason", l.Reason},
		{"queue", o.Queue},
		{"broker", o.Broker},
		{"vhost", o.VHost},
		{"exchange", o.Exchange},
		{"routing key", o.RoutingKey},
		{"rule", l.Rule},
		{"type", doc.Type},
		{"body", string(doc.Kind)},
	} {
		if fact[1] != "" { // lists can select letters by these values, so they need no mask
			list = append(list, payload.Field{Path: fact[0], Shown: fact[1]})
		}
	}
	return list
}

func (w *Web) comparedProperties(l *deadletter.Letter) (list []payload.Field) {
	p, _ := l.Current()
	for _, t := range textsOf(&p) {
		if *t.value != "" {
			list = append(list, w.text(t.name, t.name, *t.value))
		}
	}
	number := func(name string, n uint8) {
		if n != 0 {
			list = append(list, payload.Field{Path: name, Shown: strconv.Itoa(int(n))})
		}
	}
	number("delivery-mode", p.DeliveryMode)
	number("priority", p.Priority)
	if !p.Timestamp.IsZero() {
		list = append(list, payload.Field{Path: "timestamp", Shown: view.UTC(p.Timestamp)})
	}
	return list
}

// comparedHeaders returns the headers of a letter, without those that the broker and dlo have
// added.
func (w *Web) comparedHeaders(l *deadletter.Letter) (list []payload.Field) {
	p, _ := l.Current()
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		if deadletter.BrokerOwned(name) || name == deadletter.HeaderID || name == deadletter.HeaderToken ||
			name == deadletter.HeaderAttempt {
			continue
		}
		whole := headerText(p.Headers[name])
		shown, masked := w.hideTable(deadletter.Table{name: p.Headers[name]}, "")
		for path, value := range shown { // the map has one element
			f := payload.Field{Path: path, Shown: headerText(value), Masked: masked}
			if masked {
				f.Whole = whole
			}
			list = append(list, f)
		}
	}
	return list
}

// headerText returns the value of a header as text. The text shows the type, so that values of
// different types differ.
func headerText(v any) string {
	switch v := v.(type) {
	case nil:
		return "void"
	case string:
		return strconv.Quote(v)
	case bool, int8, uint8, int16, uint16, int32, uint32, int64, float32, float64:
		return fmt.Sprintf("%v (%T)", v, v)
	}
	b, err := json.Marshal(deadletter.Typed{Value: v})
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	return string(b)
}
