package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	countedTo  = 10_000
	pageRows   = 50
	histogram  = 48  // the number of bars in the chart
	linkedTo   = 200 // bytes; if the query is longer, the bars of the histogram are not links
	facetTaken = 40  // number of values of a facet; values in the query are always included
)

// needy selects the letters that wait for a decision of a person.
var needy = (query.Query{}).With(query.State, string(deadletter.StateDead), string(deadletter.StateHeld))

// letters handles GET /letters?q=&after=&before=. Without q, it shows the letters that wait for a
// decision of a person, or all letters if there are none. Other parameters change q. They are
// described at the function "narrow".
func (w *Web) letters(r *http.Request) (templ.Component, error) {
	form := r.URL.Query()
	if to, found, err := w.pageOf(r.Context(), form.Get("add")); err != nil {
		return nil, err
	} else if found {
		return nil, movedError{to}
	}
	waiting, _, err := w.Store.Count(r.Context(), needy, 0)
	if err != nil {
		return nil, err
	}
	if !form.Has("q") && !form.Has("add") {
		to := query.Query{}
		if waiting > 0 {
			to = needy
		}
		return nil, movedError{view.LettersURL(to.String(), "", "")}
	}
	if to, moved := w.narrow(form); moved {
		return nil, movedError{view.LettersURL(to, "", "")}
	}
	until := w.Store.AsOf(w.Now())
	p := view.LettersPage{
		Shell:   w.shell(r, "Letters", view.SectionLetters),
		Query:   form.Get("q"),
		InStore: -1,
		Exact:   true,
	}
	ctx := r.Context()
	if p.Views, err = w.Store.Views(ctx, principal(r.Context()).Name); err != nil {
		return nil, err
	}
	q, err := query.Parse(p.Query, w.lookOptions())
	if errors.As(err, &p.QueryError) {
		return view.Letters(p), err
	}
	if p.InStore, _, err = w.Store.Count(ctx, query.Query{}, 0); err != nil {
		return nil, err
	}
	if p.InStore == 0 {
		p.FirstRun = w.firstRun()
	}
	if p.Needy = q.String() == needy.String(); len(q.Terms) == 0 && waiting == 0 && p.InStore > 0 {
		in, err := w.inRetry(ctx)
		if err != nil {
			return nil, err
		}
		p.InRetry = &in
	}
	p.Tokens, p.Range = tokens(q), rangeOf(q)
	if indexed, terms := q.Split(w.indexedPath); len(terms) > 0 {
		return w.lookedFor(ctx, p, indexed, terms, form.Get("after"))
	}
	if p.Total, p.Exact, err = w.Store.Count(ctx, q, countedTo); err != nil {
		return nil, err
	}
	p.Rows, p.Newer, p.Older, err = w.Store.Letters(ctx, q, deadletter.Page{
		After:  form.Get("after"),
		Before: form.Get("before"),
		Limit:  pageRows,
		Order:  orderOf(q),
	})
	if err != nil {
		return nil, err
	}
	w.hideRows(p.Rows)
	if p.Retries, err = w.groupGuard(ctx, q, p.Rows); err != nil {
		return nil, err
	}
	p.Doubts = q.Values(query.Doubt)
	p.Order, p.Sorts = orderOf(q), sorts(q)
	p.States, p.All = states(q), allOf(q, until)
	if p.Widen = withoutTime(q); len(p.Rows) == 0 && p.Total > 0 {
		p.Widen = ""
	}
	if r.Header.Get("Dlo-Live") != "" { // an open page takes only its live parts, which the rest is not
		return view.Letters(p), nil
	}
	facets, err := w.Store.Facets(ctx, q, w.facetedPaths(q)...)
	if err != nil {
		return nil, err
	}
	p.Facets = facetsOf(q, facets)
	if len(p.Rows) > 0 {
		if p.Histogram, err = w.histogram(ctx, q, p.Range); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(q.Terms, func(t query.Term) bool { return t.Field.Indexed() }) {
		if p.Unindexed, err = w.Store.Unindexed(ctx); err != nil {
			return nil, err
		}
	}
	return view.Letters(p), nil
}

func (w *Web) firstRun() *view.FirstRun {
	return &view.FirstRun{
		Setup:  w.Setup,
		Types:  len(w.Decoder().Types.Types()),
		Trial:  w.Trials.Newest(),
		Unable: w.Trials.Unable(w.Setup.Broker),
	}
}

// tokens returns a link for each term of a query. The link leads to the query without that term.
func tokens(q query.Query) []view.Token {
	var out []view.Token
	for i, t := range q.Terms {
		out = append(out, view.Token{
			Text:   t.String(),
			Not:    t.Not,
			Remove: view.LettersURL(q.Without(i).String(), "", ""),
		})
	}
	return out
}

func states(q query.Query) []deadletter.State {
	return each(q.Values(query.State), func(s string) deadletter.State { return deadletter.State(s) })
}

// orderOf returns the order of a list. If q sets no order, scheduled letters are sorted by due
// time, earliest first. Other lists are sorted by the time of receipt, newest first.
func orderOf(q query.Query) deadletter.Order {
	if order := q.Order(); order != "" {
		return order
	}
	if s := states(q); len(s) == 1 && s[0] == deadletter.StateScheduled {
		return deadletter.OrderDue
	}
	return deadletter.OrderReceived
}

// sorts returns the possible orders of a list, each with a link.
func sorts(q query.Query) []view.Sort {
	plain, now := q.With(query.Sort), orderOf(q)
	var out []view.Sort
	for _, order := range deadletter.Orders {
		to := plain
		if order != orderOf(plain) {
			to = q.With(query.Sort, string(order))
		}
		out = append(out, view.Sort{Order: order, Link: view.LettersURL(to.String(), "", ""), On: order == now})
	}
	return out
}

// allOf describes the letters that "all that match" means on a list: the query with fixed times,
// and the time "shownAt", at which the page is shown. Letters that arrive later are not among them.
func allOf(q query.Query, shownAt time.Time) view.All {
	fixed := q.Fixed()
	all := view.All{Query: fixed.String(), Until: shownAt}
	if !slices.ContainsFunc(fixed.Terms, func(t query.Term) bool { return t.Field == query.Before && !t.Not }) {
		fixed = fixed.With(query.Before, queryTime(shownAt))
	}
	all.Typed = fixed.String()
	return all
}

// queryTime returns a time as queries contain it.
func queryTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// rangeOf returns the range of receipt times in a query. It sets Preset only if the start is one of
// view.Presets and the range has no end.
func rangeOf(q query.Query) view.Range {
	var r view.Range
	for _, t := range q.Terms {
		if t.Not || t.Field != query.Since && t.Field != query.Before {
			continue
		}
		v := t.Values[0]
		if t.Field == query.Before {
			r.To = v.Time
			continue
		}
		r.From = v.Time
		if slices.ContainsFunc(view.Presets, func(p view.Preset) bool { return p.Value == v.Raw }) {
			r.Preset = v.Raw
		}
	}
	if !r.To.IsZero() {
		r.Preset = ""
	}
	return r
}

// withoutTime returns the link to the query without its terms about time. It returns "" if the
// query has no such terms.
func withoutTime(q query.Query) string {
	wide := q.With(query.Since).With(query.Before).With(query.Age)
	if len(wide.Terms) == len(q.Terms) {
		return ""
	}
	return view.LettersURL(wide.String(), "", "")
}

// histogram counts the letters of a list by time. Each bar links to the letters that it counts.
func (w *Web) histogram(ctx context.Context, q query.Query, r view.Range) (*view.Histogram, error) {
	to := r.To
	if to.IsZero() {
		to = w.Now()
	}
	counted, err := w.Store.Histogram(ctx, q, r.From, to, histogram)
	if err != nil {
		return nil, err
	}
	h := &view.Histogram{Histogram: counted}
	if len(q.String()) <= linkedTo {
		for i, b := range counted.Bars {
			end := counted.To
			if i+1 < len(counted.Bars) {
				end = counted.Bars[i+1].At
			}
			h.Links = append(h.Links, view.LettersURL(withReceived(q, b.At, end).String(), "", ""))
		}
	}
	return h, nil
}

// withReceived adds a range of receipt times to the query q.
func withReceived(q query.Query, from, to time.Time) query.Query {
	q = q.With(query.Since).With(query.Before)
	if !from.IsZero() {
		q = q.With(query.Since, queryTime(from))
	}
	if !to.IsZero() {
		q = q.With(query.Before, queryTime(to))
	}
	return q
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
			Looked:  &how,
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
