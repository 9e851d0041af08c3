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

// The calls in the section below return letters as JSON. A time is RFC 3339 in UTC, and it is
// absent if it is unknown. Bytes are base64.

func groupName(g deadletter.GroupID) string {
	if g == 0 {
		return ""
	}
	return g.String()
}

func apiRowOf(r deadletter.Row) api.Row {
	return api.Row{
		ID:         r.ID,
		State:      r.State,
		WaitsIn:    r.WaitsIn,
		Broker:     r.Broker,
		VHost:      r.VHost,
		Queue:      r.Queue,
		Reason:     r.Reason,
		Type:       r.Type,
		Group:      groupName(r.Group),
		Attempts:   r.Attempts,
		Exchange:   r.Exchange,
		RoutingKey: r.RoutingKey,
		ReceivedAt: api.At(r.ReceivedAt),
		DiedAt:     api.IfKnown(r.DiedAt),
		DueAt:      api.At(r.DueAt),
		Size:       r.Size,
		Summary:    r.Summary,
		Error:      r.Error,
	}
}

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

// apiLetters handles GET /letters?q=&order=&limit=&after=. If the query has a condition for which
// the store has no index, dlo reads the letters one by one to check it.
func (w *Web) apiLetters(r *http.Request) (any, error) {
	form, err := parameters(r, "q", "order", "limit", "after")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.lookOptions())
	if err != nil {
		return nil, err
	}
	p := deadletter.Page{After: form.Get("after")}
	if p.Limit, err = limitOf(form); err != nil {
		return nil, err
	}
	if p.Order, err = orderAsked(form.Get("order"), q); err != nil {
		return nil, err
	}
	if indexed, terms := q.Split(w.indexedPath); len(terms) > 0 {
		if p.Order != deadletter.OrderReceived {
			return nil, errLookOrder(terms[0])
		}
		rows, how, next, err := w.look(r.Context(), indexed, terms, p.After, p.Limit)
		return api.Letters{
			Letters: each(w.hideRows(rows), apiRowOf),
			Next:    next,
			Looked:  &api.Looked{Letters: how.Letters, Back: api.At(how.Back), All: how.All},
		}, err
	}
	rows, _, older, err := w.Store.Letters(r.Context(), q, p)
	if err != nil {
		return nil, err
	}
	return api.Letters{Letters: each(w.hideRows(rows), apiRowOf), Next: older}, nil
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

// apiCount handles GET /letters/count?q=&exact=.
func (w *Web) apiCount(r *http.Request) (any, error) {
	form, err := parameters(r, "q", "exact")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	limit := countedTo
	switch form.Get("exact") {
	case "", "0":
	case "1":
		limit = 0
	default:
		return nil, invalid("exact is 1, or absent")
	}
	n, exact, err := w.Store.Count(r.Context(), q, limit)
	return api.Count{Count: n, Exact: exact}, err
}

// apiFacets handles GET /letters/facets?q=.
func (w *Web) apiFacets(r *http.Request) (any, error) {
	form, err := parameters(r, "q")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	facets, err := w.Store.Facets(r.Context(), q, w.facetedPaths(q)...)
	if err != nil {
		return nil, err
	}
	out := api.Facets{Facets: map[string][]api.FacetValue{}, Sampled: facets.Sampled}
	for _, f := range facets.Fields {
		out.Facets[f.Field] = each(f.Values, func(v deadletter.FacetValue) api.FacetValue { return api.FacetValue(v) })
	}
	return out, nil
}

// Histograms counts letters by the time at which they were received.
type Histograms interface {
	Histogram(ctx context.Context, q query.Query, from, to time.Time, bars int) (deadletter.Histogram, error)
}

const (
	defaultBars = 60
	maxBars     = 500
)

// apiHistogram handles GET /letters/histogram?q=&from=&to=&bars=. It counts letters by the time at
// which they were received, and by what has become of them.
func (w *Web) apiHistogram(r *http.Request) (any, error) {
	form, err := parameters(r, "q", "from", "to", "bars")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	from, err := instant(form, "from")
	if err != nil {
		return nil, err
	}
	to, err := instant(form, "to")
	if err != nil {
		return nil, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return nil, invalid("from must be before to")
	}
	bars := defaultBars
	if text := form.Get("bars"); text != "" {
		if bars, err = strconv.Atoi(text); err != nil || bars < 1 || bars > maxBars {
			return nil, invalid("bars is a number from 1 to %d", maxBars)
		}
	}
	h, err := w.Store.Histogram(r.Context(), q, from, to, bars)
	if err != nil {
		return nil, err
	}
	bar := func(b deadletter.Bar) api.Bar {
		return api.Bar{
			At:        api.At(b.At),
			Waiting:   b.Waiting,
			Recovered: b.Recovered,
			Dead:      b.Dead,
			Discarded: b.Discarded,
		}
	}
	return api.Histogram{
		From:    api.At(h.From),
		To:      api.At(h.To),
		Step:    api.Duration(h.Step),
		Sampled: h.Sampled,
		Bars:    each(h.Bars, bar),
	}, nil
}

func propertiesOf(p deadletter.Properties) api.Properties {
	return api.Properties{
		ContentType:     p.ContentType,
		ContentEncoding: p.ContentEncoding,
		DeliveryMode:    p.DeliveryMode,
		Priority:        p.Priority,
		CorrelationID:   p.CorrelationID,
		ReplyTo:         p.ReplyTo,
		Expiration:      p.Expiration,
		MessageID:       p.MessageID,
		Timestamp:       api.At(p.Timestamp),
		Type:            p.Type,
		UserID:          p.UserID,
		AppID:           p.AppID,
	}
}

func typed(t deadletter.Table) map[string]deadletter.Typed {
	out := make(map[string]deadletter.Typed, len(t))
	for name, value := range t {
		out[name] = deadletter.Typed{Value: value}
	}
	return out
}

func operationName(o deadletter.OperationID) string {
	if o == 0 {
		return ""
	}
	return o.String()
}

// apiLetter handles GET /letters/{id}?reveal=. It returns the complete letter.
func (w *Web) apiLetter(r *http.Request) (any, error) {
	form, err := parameters(r, "reveal")
	if err != nil {
		return nil, err
	}
	reveal, err := parseReveal(form.Get("reveal"))
	if err != nil {
		return nil, err
	}
	l, err := w.readLetter(r)
	if err != nil {
		return nil, err
	}
	return w.wholeLetter(r, l, reveal)
}

// wholeLetter returns the complete letter. If the parameter "reveal" is true, it includes masked
// values and records the access.
func (w *Web) wholeLetter(r *http.Request, l deadletter.Letter, reveal bool) (out api.Letter, err error) {
	ctx := r.Context()
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
	siblings, err := w.Store.Siblings(r.Context(), &l)
	if err != nil {
		return out, err
	}
	steps, err := letterSteps(ctx, w, &l, apiStep)
	if err != nil {
		return out, err
	}
	plain := l
	masked := w.hide(&l) || w.bytesMasked(doc)
	if reveal && masked {
		if err := w.record(r, &l, "the whole letter"); err != nil {
			return out, err
		}
		l.Properties, l.Arrived, l.Annotation = plain.Properties, plain.Arrived, plain.Annotation
		if doc, err = w.decodeBy(ctx, w.Decoder().Revealed(), &plain); err != nil {
			return out, err
		}
	}
	out = api.Letter{
		Row:          apiRowOf(l.Row()),
		AttemptsUsed: l.Attempts,
		Inbox:        l.Inbox,
		Severity:     l.Severity,
		Rule:         l.Rule,
		Why:          l.Why,
		Twin:         l.Twin,
		Unverified:   l.Unverified,
		Damaged:      l.Damage,
		Unchecked:    l.Unchecked,
		Operation:    operationName(l.Operation),
		ChangedAt:    api.At(l.ChangedAt),
		Properties:   propertiesOf(l.Properties),
		Headers:      typed(l.Properties.Headers),
		Arrived:      api.Arrived{Properties: propertiesOf(l.Arrived), Headers: typed(l.Arrived.Headers)},
		Withheld:     l.Withheld,
		Body:         &l.Body,
		Decoded:      decodedOf(doc),
		Failure:      failureOf(l.Annotation),
		Revisions:    each(revisions, apiRevisionOf),
		Siblings:     each(siblings, func(s deadletter.Row) deadletter.ID { return s.ID }),
		Candidates:   each(doc.Ranking.Matches, matchOf),
		Matching:     matchingOf(doc.Ranking),
		History: each(history, func(e deadletter.Event) api.Event {
			return api.Event{
				At:        api.At(e.At),
				Kind:      e.Kind,
				Actor:     e.Actor,
				Detail:    e.Detail,
				Operation: operationName(e.Operation),
			}
		}),
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
	deaths, _ := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.NoOrigin)
	out.Deaths = each(deaths, func(d deadletter.Death) api.Death {
		return api.Death{
			Queue:       d.Queue,
			Exchange:    d.Exchange,
			RoutingKeys: append([]string{}, d.RoutingKeys...),
			Reason:      d.Reason,
			Count:       d.Count,
			FirstAt:     api.IfKnown(d.FirstAt),
		}
	})
	out.Attempts = each(attempts, func(a deadletter.Attempt) api.Attempt {
		v := api.Attempt{
			Number:    a.Number,
			Queue:     a.Queue,
			Operation: operationName(a.Operation),
			Sends:     a.Sends,
			Outcome:   a.Outcome,
			Detail:    a.Detail,
			Revision:  a.Revision,
			At:        api.At(a.At),
			ClosedAt:  api.At(a.ClosedAt),
			WaitsIn:   a.WaitsIn,
			WaitUntil: api.At(a.WaitUntil),
		}
		if b := a.Back; b != nil {
			v.Back = &api.Return{At: api.At(b.At), Queue: b.Queue, Reason: b.Reason, Copies: b.Copies}
		}
		return v
	})
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
