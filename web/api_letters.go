package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

const (
	defaultLimit = 50
	maxLimit     = 500
)

// parameters reads the parameters of a call, and rejects unknown ones. If it ignored them, a filter
// with a misspelt name would have no effect.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the parameters cannot be read: a semicolon or a percent sign in a value must be escaped")
	}
	for name := range form {
		if !slices.Contains(names, name) {
			return nil, invalid("there is no parameter %q here", deadletter.Visible(deadletter.Cut(name, 40)))
		}
	}
	return form, nil
}

func limitOf(form url.Values) (int, error) {
	text := form.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, invalid("limit is a number from 1 to %d", maxLimit)
	}
	return n, nil
}

// Paging selects a page of a list: at most limit elements, from the cursor after on.
type Paging struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	After string `query:"after"`
}

// Queried is a query of letters.
type Queried struct {
	Q string `query:"q"`
}

// listLetters returns a page of letters, without bodies. The next page follows the cursor in next,
// which is empty on the last page. Letters that arrive meanwhile do not shift the pages. Without
// order, it is the order that the query asks for with sort:, or received. If the query has a
// condition for which the store has no index, dlo reads the letters one by one to check it.
func (w *Web) listLetters(ctx context.Context, in *struct {
	Queried
	Order string `query:"order" enum:"received,oldest,died,attempts,size,due"`
	Paging
},
) (*reply[api.Letters], error) {
	q, err := query.Parse(in.Q, w.lookOptions())
	if err != nil {
		return nil, err
	}
	p := deadletter.Page{After: in.After, Limit: in.Limit}
	if p.Order, err = orderAsked(in.Order, q); err != nil {
		return nil, err
	}
	if indexed, terms := q.Split(w.indexedPath); len(terms) > 0 {
		if p.Order != deadletter.OrderReceived {
			return nil, errLookOrder(terms[0])
		}
		rows, how, next, err := w.look(ctx, indexed, terms, p.After, p.Limit)
		return answer(api.Letters{
			Letters: w.hideRows(rows),
			Next:    next,
			Looked:  &api.Looked{Letters: how.Letters, Back: how.Back, All: how.All},
		}, err)
	}
	rows, _, older, err := w.Store.Letters(ctx, q, p)
	return answer(api.Letters{Letters: w.hideRows(rows), Next: older}, err)
}

// orderAsked returns the order of a list. The URL parameter "order" takes precedence over the order
// in the query.
func orderAsked(text string, q query.Query) (deadletter.Order, error) {
	order := cmp.Or(deadletter.Order(text), q.Order(), deadletter.OrderReceived)
	if !slices.Contains(deadletter.Orders, order) {
		return "", invalid("order is received, oldest, died, attempts, size or due")
	}
	return order, nil
}

// countLetters returns how many letters a query selects. Without exact=1, counting may stop at
// 10,000 letters; exact in the response says whether it did not.
func (w *Web) countLetters(ctx context.Context, in *struct {
	Queried
	Exact string `query:"exact" enum:"0,1"`
},
) (*reply[api.Count], error) {
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	limit := countedTo
	if in.Exact == "1" {
		limit = 0
	}
	n, exact, err := w.Store.Count(ctx, q, limit)
	return answer(api.Count{Count: n, Exact: exact}, err)
}

// listFacets returns the values of each field among the letters of a query. The terms of a field do
// not narrow its own values.
func (w *Web) listFacets(ctx context.Context, in *Queried) (*reply[api.Facets], error) {
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	facets, err := w.Store.Facets(ctx, q, w.facetedPaths(q)...)
	out := api.Facets{Facets: map[string][]deadletter.FacetValue{}, Sampled: facets.Sampled}
	for _, f := range facets.Fields {
		out.Facets[f.Field] = f.Values
	}
	return answer(out, err)
}

// getHistogram returns how many letters of a query were received when. The bars cover the time from
// from to to evenly, and count letters by the time they were received. Without from, they begin
// with the first letter.
func (w *Web) getHistogram(ctx context.Context, in *struct {
	Queried
	From time.Time `query:"from"`
	To   time.Time `query:"to"`
	Bars int       `query:"bars" minimum:"1" maximum:"500" default:"60"`
},
) (*reply[deadletter.Histogram], error) {
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	if !in.From.IsZero() && !in.To.IsZero() && !in.From.Before(in.To) {
		return nil, invalid("from must be before to")
	}
	return answer(w.Store.Histogram(ctx, q, in.From, in.To, in.Bars))
}

func typed(t deadletter.Table) map[string]deadletter.Typed {
	out := make(map[string]deadletter.Typed, len(t))
	for name, value := range t {
		out[name] = deadletter.Typed{Value: value}
	}
	return out
}

// getLetter returns one letter, all of it. It has the body, decoded where its type is known, the
// attempts, the history, and the result of every rule. Masked values are hidden unless reveal=1.
func (w *Web) getLetter(ctx context.Context, in *struct {
	LetterPath
	Reveal string `query:"reveal" enum:"0,1"`
},
) (*reply[api.Letter], error) {
	l, err := w.readLetter(ctx, in.LetterPath)
	if err != nil {
		return nil, err
	}
	return answer(w.wholeLetter(ctx, l, in.Reveal == "1"))
}

// wholeLetter returns the complete letter. If the parameter "reveal" is true, it includes masked
// values and records the access.
func (w *Web) wholeLetter(ctx context.Context, l deadletter.Letter, reveal bool) (out api.Letter, err error) {
	attempts, err := w.Store.Attempts(ctx, l.ID)
	if err != nil {
		return out, err
	}
	history, err := w.Store.History(ctx, l.ID)
	if err != nil {
		return out, err
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return out, err
	}
	revisions, err := w.Store.Revisions(ctx, l.ID)
	if err != nil {
		return out, err
	}
	siblings, err := w.Store.Siblings(ctx, &l)
	if err != nil {
		return out, err
	}
	steps, err := w.letterSteps(ctx, &l)
	if err != nil {
		return out, err
	}
	plain := l
	masked := w.hide(&l) || w.bytesMasked(doc)
	if reveal && masked {
		if err := w.record(ctx, &l, "the whole letter"); err != nil {
			return out, err
		}
		l.Properties, l.Arrived, l.Annotation = plain.Properties, plain.Arrived, plain.Annotation
		if doc, err = w.decodeBy(ctx, w.Decoder().Revealed(), &plain); err != nil {
			return out, err
		}
	}
	deaths, _ := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.NoOrigin)
	out = api.Letter{
		Row:          l.Row(),
		AttemptsUsed: l.Attempts,
		Inbox:        l.Inbox,
		Severity:     l.Severity,
		Rule:         l.Rule,
		Why:          l.Why,
		Twin:         l.Twin,
		Unverified:   l.Unverified,
		Damaged:      l.Damage,
		Unchecked:    l.Unchecked,
		Operation:    l.Operation,
		ChangedAt:    l.ChangedAt,
		Properties:   l.Properties,
		Headers:      typed(l.Properties.Headers),
		Arrived:      api.Arrived{Properties: l.Arrived, Headers: typed(l.Arrived.Headers)},
		Withheld:     l.Withheld,
		Body:         &l.Body,
		Decoded:      decodedOf(doc),
		Failure:      l.Annotation,
		Revisions:    each(revisions, api.NewRevision),
		Siblings:     each(siblings, func(s deadletter.Row) deadletter.ID { return s.ID }),
		Candidates:   doc.Ranking.Matches,
		Matching:     api.Matching{Tied: doc.Ranking.Tied, NotCompared: doc.Ranking.Left},
		History:      history,
		Attempts:     attempts,
		Deaths:       deaths,
	}
	if steps != nil {
		out.Rules = &steps
	}
	if out.Masked = masked; l.Withheld || !reveal && w.bytesMasked(doc) {
		out.Body = nil
	}
	for _, m := range doc.Ranking.Matches {
		if m.Type == doc.Type {
			out.Decoded.Score = m.Score
		}
	}
	return out, nil
}

// instant parses a parameter that is a time. If the parameter is absent, it returns the zero time.
func instant(form url.Values, name string) (time.Time, error) {
	text := form.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid("%s must be a time, for example 2026-11-20T14:00:00Z", name)
	}
	return at, nil
}
