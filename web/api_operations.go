package web

import (
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	oldestFirst = "oldest"
	newestFirst = "newest"
)

func apiPaceOf(p deadletter.Pace) api.Pace {
	order := oldestFirst
	if p.Newest {
		order = newestFirst
	}
	return api.Pace{
		Rate:       p.Rate,
		Canary:     p.Canary,
		CanaryWait: api.Duration(p.CanaryWait),
		StopAt:     p.StopAt,
		MaxDepth:   p.MaxDepth,
		Order:      order,
		Hold:       api.Duration(p.Hold),
	}
}

// Verdicts contains the methods of the store that only the operations API needs.
type Verdicts interface {
	// NewFailures counts new letters in the groups of an operation. A letter counts if dlo received
	// it after the operation was requested. Letters of the operation that came back do not count.
	NewFailures(ctx context.Context, id deadletter.OperationID) (n int, exact bool, err error)
	// TwiceLetters returns the letters of an operation that may have been sent twice, beginning with
	// the letter that was received first. It also returns the cursor of the next page.
	TwiceLetters(
		ctx context.Context, id deadletter.OperationID, after string, limit int,
	) ([]deadletter.OperationLetter, string, error)
}

// resultName returns the name of a result in JSON, for example came_back.
func resultName(r deadletter.Result) string { return strings.ReplaceAll(string(r), " ", "_") }

func countsOf(counts map[deadletter.Result]int) map[string]int {
	out := make(map[string]int, len(deadletter.Results))
	for _, r := range deadletter.Results { // includes results with the count 0
		out[resultName(r)] = counts[r]
	}
	return out
}

func apiOperationOf(o deadletter.Operation) api.Operation {
	c := o.Counts
	return api.Operation{
		ID:         o.ID.String(),
		Action:     o.Action,
		State:      o.State,
		Phase:      o.Phase,
		PhaseUntil: api.At(o.PhaseUntil),
		Why:        o.Why,
		By:         o.By,
		Through:    string(o.Through),
		Reason:     o.Reason,
		Query:      o.Query,
		Except:     o.Except,
		Changed:    o.Changed,
		To:         o.To,
		DueAt:      api.At(o.DueAt),
		Reset:      o.Reset,
		Restored:   o.Restored,
		CreatedAt:  api.At(o.CreatedAt),
		SentAt:     api.At(o.SentAt),
		FinishedAt: api.At(o.FinishedAt),
		Total:      o.Total,
		Sent:       o.Sent(),
		Twice:      o.Twice,
		Rate:       o.Pace.Rate,
		Pace:       apiPaceOf(o.Pace),
		Counts:     countsOf(c),
		Verdict: api.Verdict{
			Final:      o.Phase == deadletter.PhaseOver,
			Quiet:      c[deadletter.ResultQuiet],
			Unverified: c[deadletter.ResultUnverified],
			CameBack:   c[deadletter.ResultCameBack],
			Returned:   c[deadletter.ResultReturned],
			Failed:     c[deadletter.ResultFailed],
			InDoubt:    c[deadletter.ResultInDoubt],
			Skipped:    c[deadletter.ResultSkipped],
			Watched:    c[deadletter.ResultConfirmed],
		},
		Queues: each(o.Queues, func(q deadletter.OperationQueue) api.OperationQueue {
			return api.OperationQueue{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue, Counts: countsOf(q.Counts)}
		}),
	}
}

// operationNow returns the current state of an operation, with the details that lists omit.
func (w *Web) operationNow(r *http.Request, id deadletter.OperationID) (api.Operation, error) {
	o, err := w.Store.Operation(r.Context(), id)
	if err != nil {
		return api.Operation{}, err
	}
	v := apiOperationOf(o)
	var n api.NewFailures
	n.Count, n.Exact, err = w.Store.NewFailures(r.Context(), id)
	v.NewFailures = &n
	return v, err
}

// apiOperations handles GET /operations?limit=&after=. It returns operations, newest first.
func (w *Web) apiOperations(r *http.Request) (any, error) {
	form, err := parameters(r, "limit", "after")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(form)
	if err != nil {
		return nil, err
	}
	var before deadletter.OperationID
	if after := form.Get("after"); after != "" {
		if before, err = deadletter.ParseOperationID(after); err != nil {
			return nil, err
		}
	}
	all, err := w.Store.Operations(r.Context(), before, limit+1)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(all) > limit {
		all = all[:limit]
		next = all[limit-1].ID.String()
	}
	return api.Operations{Operations: each(all, apiOperationOf), Next: next}, nil
}

// twice is a word that a request can send as the parameter "result". It selects the letters that
// may have been sent twice, whatever their result is.
const twice = "twice"

// apiOperation handles GET /operations/{id}?result=&limit=&after=. It returns the operation, and a
// page of its letters that have one of the given results. If no result is given, it returns the
// letters that a person has to look at.
func (w *Web) apiOperation(r *http.Request) (any, error) {
	id, err := pathOperation(r)
	if err != nil {
		return nil, err
	}
	form, err := parameters(r, "result", "limit", "after")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(form)
	if err != nil {
		return nil, err
	}
	list := w.Store.TwiceLetters
	if result := form.Get("result"); result != twice {
		wanted, err := wantedResults(result)
		if err != nil {
			return nil, err
		}
		list = func(
			ctx context.Context, id deadletter.OperationID, after string, limit int,
		) ([]deadletter.OperationLetter, string, error) {
			return w.Store.OperationLetters(ctx, id, wanted, after, limit)
		}
	}
	o, err := w.operationNow(r, id)
	if err != nil {
		return nil, err
	}
	letters, next, err := w.operationLetters(list(r.Context(), id, form.Get("after"), limit))
	if err != nil {
		return nil, err
	}
	return api.OperationLetters{Operation: o, Next: next, Letters: each(letters, apiOperationLetter)}, nil
}

func apiOperationLetter(l deadletter.OperationLetter) api.OperationLetter {
	out := api.OperationLetter{
		Letter: l.Letter,
		Queue:  l.Queue,
		Result: resultName(l.Result),
		Reason: l.Reason,
		Twice:  l.Twice,
		State:  l.State,
		Error:  l.Error,
	}
	if l.State == deadletter.StateScheduled {
		out.DueAt = api.IfKnown(l.DueAt)
	}
	if l.Group != 0 {
		out.Group = l.Group.String()
	}
	if same, known := l.SameError(); known && l.Result == deadletter.ResultCameBack {
		out.SameError = &same
	}
	return out
}

// lookedAt contains the results that a person has to look at.
var lookedAt = []deadletter.Result{
	deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt,
	deadletter.ResultUnverified, deadletter.ResultSkipped,
}

// wantedResults parses a list of results that are separated by commas. An empty list means the
// results that a person has to look at.
func wantedResults(text string) ([]deadletter.Result, error) {
	if text == "" {
		return lookedAt, nil
	}
	names := each(deadletter.Results, resultName)
	var out []deadletter.Result
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, invalid("result is one or more of %s, or %s alone", strings.Join(names, ", "), twice)
		}
		out = append(out, deadletter.Results[i])
	}
	return out, nil
}

// apiRateOperation handles PATCH /operations/{id} {rate}.
func (w *Web) apiRateOperation(r *http.Request, in api.RateChange) (any, error) {
	if in.Rate == nil {
		return nil, invalid("rate is missing: letters per second")
	}
	return w.apiSteer(
		r, func(d Control, ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
			return d.Rate(ctx, by, id, *in.Rate)
		},
	)
}

// apiControl returns the handler of POST /operations/{id}/cancel, /pause or /resume.
func (w *Web) apiControl(do steering) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) { return w.apiSteer(r, do) }
}

// steering is a call that pauses, resumes or cancels an operation.
type steering = func(d Control, ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error

// apiSteer pauses, resumes or cancels an operation, and returns the operation. The id of the
// operation is in the path of the request.
func (w *Web) apiSteer(r *http.Request, do steering) (any, error) {
	id, err := w.steer(r, do)
	if err != nil {
		return nil, err
	}
	return w.operationNow(r, id)
}

// steer pauses, resumes or cancels an operation. The id of the operation is in the path of the
// request.
func (w *Web) steer(r *http.Request, do steering) (deadletter.OperationID, error) {
	id, err := pathOperation(r)
	if err != nil {
		return 0, err
	}
	if w.draining() {
		return 0, errStopping
	}
	return id, do(w.Desk, r.Context(), principal(r), id)
}

// readJSON decodes the JSON body of a request.
func readJSON(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return statusError(http.StatusUnsupportedMediaType)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return invalidUnlessTooLarge(err, "the request broke off")
	}
	return api.UnmarshalStrict(body, into)
}
