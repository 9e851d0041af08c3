package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// Lists is what the list of letters needs of the store.
type Lists interface {
	// Letters returns a page, without bodies, and the cursors of its neighbours, "" at the ends.
	Letters(ctx context.Context, q query.Query, p deadletter.Page) (rows []deadletter.Row, newer, older string, err error)
	Count(ctx context.Context, q query.Query) (int, error)
	// Facets returns the values of each field, most letters first; a field's own terms do not narrow it.
	Facets(ctx context.Context, q query.Query) (map[query.Field][]deadletter.FacetValue, error)
}

const (
	pageRows    = 50
	facetValues = 8 // of one facet; those that are chosen are always among them
)

// letters is GET /letters?q=&after=&before=. Without q it shows what needs a person; add is one more term, as the query box sends it.
func (w *Web) letters(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	if !form.Has("q") && !form.Has("add") {
		return nil, movedError{view.LettersURL("state:"+string(deadletter.StateDead), "", "")}
	}
	if add := strings.TrimSpace(form.Get("add")); add != "" || form.Has("add") {
		return nil, movedError{view.LettersURL(strings.TrimSpace(form.Get("q")+" "+add), "", "")}
	}
	p := view.LettersPage{Shell: w.shell(r, "Letters", view.SectionLetters), Query: form.Get("q"), InStore: -1, Exact: true}
	q, err := query.Parse(p.Query)
	var mistake *query.Error
	if errors.As(err, &mistake) {
		p.QueryError = &view.QueryError{Pos: mistake.Pos, Want: mistake.Want}
		return view.Letters(p), err
	}
	ctx := r.Context()
	if p.InStore, err = w.Store.Count(ctx, query.Query{}); err != nil {
		return nil, err
	}
	if p.InStore == 0 {
		p.FirstRun = &view.FirstRun{Exchange: w.Setup.Exchange, Inbox: w.Setup.Inbox, VHost: w.Setup.VHost, Types: w.types()}
	}
	if p.Total, err = w.Store.Count(ctx, q); err != nil {
		return nil, err
	}
	p.Rows, p.Newer, p.Older, err = w.Store.Letters(ctx, q, deadletter.Page{After: form.Get("after"), Before: form.Get("before"), Limit: pageRows, Order: deadletter.OrderReceived})
	if err != nil {
		return nil, err
	}
	w.hideRows(p.Rows)
	facets, err := w.Store.Facets(ctx, q)
	if err != nil {
		return nil, err
	}
	p.Tokens, p.States, p.Facets = tokens(q), states(q), facetsOf(q, facets)
	return view.Letters(p), nil
}

// types counts the protobuf types that are known.
func (w *Web) types() int {
	if registry := w.Decoder().Types; registry != nil {
		return len(registry.Types())
	}
	return 0
}

// tokens is one link per term that leads to the query without it.
func tokens(q query.Query) []view.Token {
	var out []view.Token
	for i, t := range q.Terms {
		rest := query.Query{Terms: slices.Delete(slices.Clone(q.Terms), i, i+1)}
		out = append(out, view.Token{Text: query.Query{Terms: []query.Term{t}}.String(), Remove: view.LettersURL(rest.String(), "", "")})
	}
	return out
}

func states(q query.Query) []deadletter.State {
	var out []deadletter.State
	for _, s := range q.Values(query.State) {
		out = append(out, deadletter.State(s))
	}
	return out
}

// facetsOf turns counts into links that switch one value each.
func facetsOf(q query.Query, counts map[query.Field][]deadletter.FacetValue) []view.Facet {
	var out []view.Facet
	for _, f := range []struct {
		field query.Field
		title string
	}{{query.State, "State"}, {query.Queue, "Queue"}, {query.Type, "Type"}, {query.Reason, "Reason"}} {
		chosen := q.Values(f.field)
		values := counts[f.field]
		if f.field == query.State {
			values = inOrder(values)
		}
		facet := view.Facet{Title: f.title}
		for _, v := range values {
			on := slices.Contains(chosen, v.Value)
			if len(facet.Values) >= facetValues && !on && f.field != query.State {
				facet.More++
				continue
			}
			facet.Values = append(facet.Values, facetValue(q, f.field, v, chosen))
		}
		for _, c := range chosen { // chosen, but no letter has it
			if !slices.ContainsFunc(values, func(v deadletter.FacetValue) bool { return v.Value == c }) {
				facet.Values = append(facet.Values, facetValue(q, f.field, deadletter.FacetValue{Value: c}, chosen))
			}
		}
		out = append(out, facet)
	}
	return out
}

func facetValue(q query.Query, f query.Field, v deadletter.FacetValue, chosen []string) view.FacetValue {
	on := slices.Contains(chosen, v.Value)
	next := append(slices.Clone(chosen), v.Value)
	if on {
		next = slices.DeleteFunc(slices.Clone(chosen), func(c string) bool { return c == v.Value })
	}
	return view.FacetValue{Label: facetLabel(f, v.Value), Count: v.Count, On: on, Link: view.LettersURL(q.With(f, next...).String(), "", "")}
}

func facetLabel(f query.Field, value string) string {
	switch {
	case f == query.State:
		return view.StateWord(deadletter.State(value))
	case f == query.Type && value == query.NoType:
		return "no type"
	case f == query.Type:
		return value[strings.LastIndexByte(value, '.')+1:]
	case value == "":
		return "unknown"
	}
	return value
}

// inOrder sorts states as a letter goes through them.
func inOrder(values []deadletter.FacetValue) []deadletter.FacetValue {
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b deadletter.FacetValue) int {
		return slices.Index(deadletter.States, deadletter.State(a.Value)) - slices.Index(deadletter.States, deadletter.State(b.Value))
	})
	return values
}

// jump is GET /jump?to=: a letter's id, a group, an operation, or a query.
func (w *Web) jump(r *http.Request) (string, error) {
	to := strings.TrimSpace(r.URL.Query().Get("to"))
	if id, err := deadletter.ParseID(to); err == nil {
		return view.LetterURL(id, "", ""), nil
	}
	switch upper := strings.ToUpper(to); {
	case strings.HasPrefix(upper, "O-"):
		if id, err := deadletter.ParseOperationID(to); err == nil {
			return view.OperationURL(id), nil
		}
	case strings.HasPrefix(upper, "G-"):
		if id, err := deadletter.ParseGroupID(to); err == nil {
			return view.GroupURL(id), nil
		}
	}
	return view.LettersURL(to, "", ""), nil
}
