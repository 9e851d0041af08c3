package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// The JSON of letters. Times are RFC 3339 in UTC and absent where they are not known; bytes are base64.

type apiRow struct {
	ID         deadletter.ID    `json:"id"`
	State      deadletter.State `json:"state"`
	WaitsIn    string           `json:"waits_in"`
	Broker     string           `json:"broker"`
	VHost      string           `json:"vhost"`
	Queue      string           `json:"queue"`
	Reason     string           `json:"reason"`
	Type       string           `json:"type"`
	Group      string           `json:"group"`
	Attempts   int              `json:"attempts"`
	Exchange   string           `json:"exchange"`
	RoutingKey string           `json:"routing_key"`
	ReceivedAt time.Time        `json:"received_at"`
	DiedAt     time.Time        `json:"died_at,omitzero"`
	DueAt      time.Time        `json:"due_at,omitzero"`
	Size       int              `json:"size"`
	Summary    string           `json:"summary"`
	Error      string           `json:"error"`
}

func groupName(g deadletter.GroupID) string {
	if g == 0 {
		return ""
	}
	return g.String()
}

func apiRowOf(r deadletter.Row) apiRow {
	return apiRow{
		ID: r.ID, State: r.State, WaitsIn: r.WaitsIn, Broker: r.Broker, VHost: r.VHost, Queue: r.Queue, Reason: r.Reason, Type: r.Type, Group: groupName(r.Group), Attempts: r.Attempts,
		Exchange: r.Exchange, RoutingKey: r.RoutingKey, ReceivedAt: r.ReceivedAt.UTC(), DiedAt: utc(r.DiedAt), DueAt: utc(r.DueAt), Size: r.Size, Summary: r.Summary, Error: r.Error,
	}
}

// utc keeps the zero time zero, and makes it of a time that RFC 3339 has no digits for: a header may hold any number of seconds.
func utc(t time.Time) time.Time {
	if y := t.UTC().Year(); t.IsZero() || y < 0 || y > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

const (
	defaultLimit = 50
	maxLimit     = 500
)

// parameters reads the parameters of a call and refuses those that it does not take: a misspelt filter must not widen an answer.
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

// apiLetters is GET /letters?q=&order=&limit=&after=.
func (w *Web) apiLetters(r *http.Request) (any, error) {
	form, err := parameters(r, "q", "order", "limit", "after")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	p := deadletter.Page{After: form.Get("after"), Order: deadletter.OrderReceived}
	if p.Limit, err = limitOf(form); err != nil {
		return nil, err
	}
	switch order := form.Get("order"); deadletter.Order(order) {
	case "", deadletter.OrderReceived:
	case deadletter.OrderDue:
		p.Order = deadletter.OrderDue
	default:
		return nil, invalid("order is received or due")
	}
	rows, _, older, err := w.Store.Letters(r.Context(), q, p)
	if err != nil {
		return nil, err
	}
	out := struct {
		Letters []apiRow `json:"letters"`
		Next    string   `json:"next"` // cursor of the next page; "" at the end
	}{Letters: []apiRow{}, Next: older}
	for _, row := range w.hideRows(rows) {
		out.Letters = append(out.Letters, apiRowOf(row))
	}
	return out, nil
}

// apiCount is GET /letters/count?q=&exact=.
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
	return struct {
		Count int  `json:"count"`
		Exact bool `json:"exact"`
	}{n, exact}, err
}

type apiFacetValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// apiFacets is GET /letters/facets?q=.
func (w *Web) apiFacets(r *http.Request) (any, error) {
	form, err := parameters(r, "q")
	if err != nil {
		return nil, err
	}
	q, err := query.Parse(form.Get("q"), w.queryOptions())
	if err != nil {
		return nil, err
	}
	facets, err := w.Store.Facets(r.Context(), q, w.Fields...)
	if err != nil {
		return nil, err
	}
	out := struct {
		Facets  map[query.Field][]apiFacetValue `json:"facets"`
		Sampled int                             `json:"sampled"` // the newest so many letters were counted; 0 = all
	}{map[query.Field][]apiFacetValue{}, facets.Sampled}
	for _, f := range facets.Fields {
		values := []apiFacetValue{}
		for _, v := range f.Values {
			values = append(values, apiFacetValue(v))
		}
		out.Facets[query.Field(f.Field)] = values
	}
	return out, nil
}

// Histograms says when letters were received.
type Histograms interface {
	Histogram(ctx context.Context, q query.Query, from, to time.Time, bars int) (deadletter.Histogram, error)
}

type apiBar struct {
	At        time.Time `json:"at"`
	Waiting   int       `json:"waiting"`
	Recovered int       `json:"recovered"`
	Dead      int       `json:"dead"`
	Discarded int       `json:"discarded"`
}

const (
	defaultBars = 60
	maxBars     = 500
)

// apiHistogram is GET /letters/histogram?q=&from=&to=&bars=: how many letters were received when, by what became of them.
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
		return nil, invalid("from is before to")
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
	out := struct {
		From    time.Time `json:"from,omitzero"`
		To      time.Time `json:"to,omitzero"`
		Step    float64   `json:"step"`    // seconds of one bar
		Sampled int       `json:"sampled"` // the newest so many letters were counted; 0 = all
		Bars    []apiBar  `json:"bars"`
	}{utc(h.From), utc(h.To), h.Step.Seconds(), h.Sampled, []apiBar{}}
	for _, b := range h.Bars {
		b.At = utc(b.At)
		out.Bars = append(out.Bars, apiBar(b))
	}
	return out, nil
}

type apiProperties struct {
	ContentType     string    `json:"content_type,omitempty"`
	ContentEncoding string    `json:"content_encoding,omitempty"`
	DeliveryMode    uint8     `json:"delivery_mode,omitempty"`
	Priority        uint8     `json:"priority,omitempty"`
	CorrelationID   string    `json:"correlation_id,omitempty"`
	ReplyTo         string    `json:"reply_to,omitempty"`
	Expiration      string    `json:"expiration,omitempty"`
	MessageID       string    `json:"message_id,omitempty"`
	Timestamp       time.Time `json:"timestamp,omitzero"`
	Type            string    `json:"type,omitempty"`
	UserID          string    `json:"user_id,omitempty"`
	AppID           string    `json:"app_id,omitempty"`
}

func propertiesOf(p deadletter.Properties) apiProperties {
	return apiProperties{p.ContentType, p.ContentEncoding, p.DeliveryMode, p.Priority, p.CorrelationID, p.ReplyTo, p.Expiration, p.MessageID, utc(p.Timestamp), p.Type, p.UserID, p.AppID}
}

func typed(t deadletter.Table) map[string]deadletter.Typed {
	out := make(map[string]deadletter.Typed, len(t))
	for name, value := range t {
		out[name] = deadletter.Typed{Value: value}
	}
	return out
}

type apiDeath struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	RoutingKeys []string  `json:"routing_keys"`
	Reason      string    `json:"reason"`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"first_at,omitzero"`
}

type apiAttempt struct {
	Number    int                    `json:"number"`
	Queue     string                 `json:"queue"`
	Operation string                 `json:"operation"`
	Sends     int                    `json:"sends"`
	Outcome   deadletter.OutcomeKind `json:"outcome"`
	Detail    string                 `json:"detail"`
	Revision  int                    `json:"revision,omitempty"` // that was sent; absent = as received
	At        time.Time              `json:"at"`
	ClosedAt  time.Time              `json:"closed_at,omitzero"`
	WaitsIn   string                 `json:"waits_in,omitempty"`
	WaitUntil time.Time              `json:"wait_until,omitzero"`
	Back      *apiReturn             `json:"came_back,omitempty"`
}

type apiReturn struct {
	At     time.Time `json:"at"`
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Copies int       `json:"further_copies"`
}

type apiEvent struct {
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Detail    string    `json:"detail"`
	Operation string    `json:"operation"`
}

type apiDecoded struct {
	Kind          string          `json:"kind"`
	Type          string          `json:"type"`
	Score         float64         `json:"score,omitempty"` // of a type that the body was matched as, 0 to 1
	Chosen        string          `json:"chosen"`
	Set           string          `json:"set"`
	JSON          json.RawMessage `json:"json"` // null where there is none
	UnknownFields int             `json:"unknown_fields"`
	Problem       string          `json:"problem"`
}

type apiLetterDetail struct {
	apiRow
	Failure      *apiFailure                 `json:"failure,omitempty"` // what its consumer said of its latest death
	Attempts     []apiAttempt                `json:"attempts"`          // instead of the number that lists have
	AttemptsUsed int                         `json:"attempts_used"`
	Inbox        string                      `json:"inbox"`
	Severity     deadletter.Severity         `json:"severity"`
	Rule         string                      `json:"rule"`  // that decided about it last
	Rules        []apiStep                   `json:"rules"` // the rules in use, asked about it now; null where they are not known
	Why          string                      `json:"why"`
	Twin         deadletter.ID               `json:"twin"`
	Siblings     []deadletter.ID             `json:"siblings"`
	Unverified   bool                        `json:"unverified"`
	Operation    string                      `json:"operation"`
	ChangedAt    time.Time                   `json:"changed_at,omitzero"`
	Properties   apiProperties               `json:"properties"` // as first received, and as it is requeued
	Headers      map[string]deadletter.Typed `json:"headers"`
	Arrived      apiArrived                  `json:"arrived"` // as it came last
	Deaths       []apiDeath                  `json:"deaths"`
	History      []apiEvent                  `json:"history"`
	Revisions    []apiRevision               `json:"revisions"` // oldest first; the newest is what decoded shows, and what a requeue sends
	Masked       bool                        `json:"masked"`    // something in it is masked; without reveal=1 a masked body is null
	Body         []byte                      `json:"body"`
	Decoded      apiDecoded                  `json:"decoded"`
	Candidates   []apiMatch                  `json:"candidates"` // types that read the body, best first, where nothing names one
}

type apiArrived struct {
	Properties apiProperties               `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
}

func operationName(o deadletter.OperationID) string {
	if o == 0 {
		return ""
	}
	return o.String()
}

// apiLetter is GET /letters/{id}?reveal=: all of it.
func (w *Web) apiLetter(r *http.Request) (any, error) {
	form, err := parameters(r, "reveal")
	if err != nil {
		return nil, err
	}
	reveal, err := revealing(r, form.Get("reveal"))
	if err != nil {
		return nil, err
	}
	l, err := w.readLetter(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	attempts, err := w.Store.Attempts(ctx, l.ID)
	if err != nil {
		return nil, err
	}
	history, err := w.Store.History(ctx, l.ID)
	if err != nil {
		return nil, err
	}
	doc, err := w.decode(ctx, &l)
	if err != nil {
		return nil, err
	}
	revisions, err := w.Store.Revisions(ctx, l.ID)
	if err != nil {
		return nil, err
	}
	siblings, err := w.Store.Siblings(r.Context(), &l)
	if err != nil {
		return nil, err
	}
	steps, err := w.letterSteps(ctx, &l)
	if err != nil {
		return nil, err
	}
	plain := l
	masked := w.hide(&l) || w.bytesMasked(doc)
	if reveal && masked {
		if err := w.record(r, &l, "the whole letter"); err != nil {
			return nil, err
		}
		l.Properties, l.Arrived, l.Annotation = plain.Properties, plain.Arrived, plain.Annotation
		if doc, err = w.decodeBy(ctx, w.Decoder().Revealed(), &plain); err != nil {
			return nil, err
		}
	}
	out := apiLetterDetail{
		apiRow: apiRow{
			ID: l.ID, State: l.State, WaitsIn: l.WaitsIn, Broker: l.Origin.Broker, VHost: l.Origin.VHost, Queue: l.Origin.Queue, Reason: l.Reason, Type: l.Type, Group: groupName(l.Group),
			Exchange: l.Origin.Exchange, RoutingKey: l.Origin.RoutingKey, ReceivedAt: l.ReceivedAt.UTC(), DiedAt: utc(l.DiedAt), DueAt: utc(l.DueAt), Size: l.Size, Summary: l.Summary, Error: l.Error,
		},
		Attempts: []apiAttempt{}, AttemptsUsed: l.Attempts, Inbox: l.Inbox, Severity: l.Severity, Rule: l.Rule, Rules: steps, Why: l.Why, Twin: l.Twin, Unverified: l.Unverified, Operation: operationName(l.Operation),
		ChangedAt: utc(l.ChangedAt), Properties: propertiesOf(l.Properties), Headers: typed(l.Properties.Headers), Arrived: apiArrived{propertiesOf(l.Arrived), typed(l.Arrived.Headers)},
		Deaths: []apiDeath{}, History: []apiEvent{}, Body: append([]byte{}, l.Body...),
		Decoded: apiDecoded{Kind: string(doc.Kind), Type: doc.Type, Chosen: doc.Chosen, Set: doc.Set, UnknownFields: doc.UnknownFields, Problem: doc.Problem},
	}
	out.Failure = failureOf(l.Annotation)
	out.Revisions = []apiRevision{}
	for i := range revisions {
		out.Revisions = append(out.Revisions, apiRevisionOf(&revisions[i]))
	}
	out.Siblings = []deadletter.ID{}
	for _, s := range siblings {
		out.Siblings = append(out.Siblings, s.ID)
	}
	if out.Masked = masked; !reveal && w.bytesMasked(doc) {
		out.Body = nil
	}
	if json.Valid([]byte(doc.JSON)) {
		out.Decoded.JSON = json.RawMessage(doc.JSON)
	}
	out.Candidates = []apiMatch{}
	for _, m := range doc.Ranking.Matches {
		if out.Candidates = append(out.Candidates, apiMatch{m.Type, m.Score, append([]string{}, m.Why...)}); m.Type == doc.Type {
			out.Decoded.Score = m.Score
		}
	}
	deaths, _ := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
	for _, d := range deaths {
		d.RoutingKeys = append([]string{}, d.RoutingKeys...)
		d.FirstAt = utc(d.FirstAt)
		out.Deaths = append(out.Deaths, apiDeath(d))
	}
	for _, a := range attempts {
		v := apiAttempt{Number: a.Number, Queue: a.Queue, Operation: operationName(a.Operation), Sends: a.Sends, Outcome: a.Outcome, Detail: a.Detail, Revision: a.Revision, At: a.At.UTC(), ClosedAt: utc(a.ClosedAt), WaitsIn: a.WaitsIn, WaitUntil: utc(a.WaitUntil)}
		if b := a.Back; b != nil {
			v.Back = &apiReturn{b.At.UTC(), b.Queue, b.Reason, b.Copies}
		}
		out.Attempts = append(out.Attempts, v)
	}
	for _, e := range history {
		out.History = append(out.History, apiEvent{e.At.UTC(), e.Kind, e.Actor, e.Detail, operationName(e.Operation)})
	}
	return out, nil
}
