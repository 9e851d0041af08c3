package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

type apiOperation struct {
	ID         string                    `json:"id"`
	Action     deadletter.Verb           `json:"action"`
	State      deadletter.OperationState `json:"state"`
	By         string                    `json:"by"`
	Through    string                    `json:"through"`
	Reason     string                    `json:"reason"`
	CreatedAt  time.Time                 `json:"created_at"`
	FinishedAt time.Time                 `json:"finished_at,omitzero"`
	Total      int                       `json:"total"`
	Counts     map[string]int            `json:"counts"` // by result; the sum is total
	Queues     []apiOperationQueue       `json:"queues"`
}

type apiOperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Counts map[string]int `json:"counts"`
}

type apiOperationLetter struct {
	Letter deadletter.ID `json:"letter"`
	Queue  string        `json:"queue"`
	Result string        `json:"result"`
	Reason string        `json:"reason"`
}

// results are all results of an operation, so that counts always name each of them.
var results = []deadletter.Result{
	deadletter.ResultPending, deadletter.ResultReleased, deadletter.ResultConfirmed, deadletter.ResultCameBack, deadletter.ResultFailed, deadletter.ResultChanged, deadletter.ResultSkipped, deadletter.ResultCancelled,
}

// resultName writes a result as JSON has it: came_back.
func resultName(r deadletter.Result) string { return strings.ReplaceAll(string(r), " ", "_") }

func countsOf(counts map[deadletter.Result]int) map[string]int {
	out := make(map[string]int, len(results))
	for _, r := range results {
		out[resultName(r)] = counts[r]
	}
	return out
}

func apiOperationOf(o deadletter.Operation) apiOperation {
	v := apiOperation{
		ID: o.ID.String(), Action: o.Action, State: o.State, By: o.By, Through: o.Through, Reason: o.Reason, CreatedAt: o.CreatedAt.UTC(), FinishedAt: utc(o.FinishedAt), Total: o.Total,
		Counts: countsOf(o.Counts), Queues: []apiOperationQueue{},
	}
	for _, q := range o.Queues {
		v.Queues = append(v.Queues, apiOperationQueue{q.Broker, q.VHost, q.Queue, countsOf(q.Counts)})
	}
	return v
}

// apiOperations is GET /operations?limit=&after=, newest first.
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
	out := struct {
		Operations []apiOperation `json:"operations"`
		Next       string         `json:"next"`
	}{Operations: []apiOperation{}}
	if len(all) > limit {
		all = all[:limit]
		out.Next = all[limit-1].ID.String()
	}
	for _, o := range all {
		out.Operations = append(out.Operations, apiOperationOf(o))
	}
	return out, nil
}

// apiOperation is GET /operations/{id}?result=&limit=&after=: the operation, and a page of its letters that failed, were skipped or came back.
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
	wanted, err := wantedResults(form.Get("result"))
	if err != nil {
		return nil, err
	}
	o, err := w.Store.Operation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	letters, next, err := w.Store.OperationLetters(r.Context(), id, wanted, form.Get("after"), limit)
	if err != nil {
		return nil, err
	}
	out := struct {
		apiOperation
		Letters []apiOperationLetter `json:"letters"`
		Next    string               `json:"next"`
	}{apiOperationOf(o), []apiOperationLetter{}, next}
	for _, l := range letters {
		out.Letters = append(out.Letters, apiOperationLetter{l.Letter, l.Queue, resultName(l.Result), l.Reason})
	}
	return out, nil
}

// wantedResults reads results with commas between; "" means those that a person has to look at.
func wantedResults(text string) ([]deadletter.Result, error) {
	if text == "" {
		return troubled, nil
	}
	names := make([]string, len(results))
	byName := make(map[string]deadletter.Result, len(results))
	for i, r := range results {
		names[i] = resultName(r)
		byName[names[i]] = r
	}
	var out []deadletter.Result
	for name := range strings.SplitSeq(text, ",") {
		result, ok := byName[name]
		if !ok {
			return nil, invalid("result is one of %s", strings.Join(names, ", "))
		}
		out = append(out, result)
	}
	return out, nil
}

// operationRequest is the body of POST /operations.
type operationRequest struct {
	Action string   `json:"action"`
	IDs    []string `json:"ids"`
	Reason string   `json:"reason"`
	DryRun bool     `json:"dry_run"`
}

type apiPlan struct {
	Action   deadletter.Verb `json:"action"`
	Total    int             `json:"total"`
	Eligible int             `json:"eligible"`
	Queues   []apiPlanQueue  `json:"queues"`
	Skipped  []apiPlanSkip   `json:"skipped"`
}

type apiPlanQueue struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Letters   int    `json:"letters"`
	Exists    *bool  `json:"exists"`    // null: unknown
	Consumers *int   `json:"consumers"` // null: unknown
	Ready     *int   `json:"ready"`     // null: unknown
	Warning   string `json:"warning"`
}

type apiPlanSkip struct {
	Reason   string          `json:"reason"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

// apiStartOperation is POST /operations: 202 and the operation, or with dry_run the plan. The header Idempotency-Key makes a repeated call the same
// operation.
func (w *Web) apiStartOperation(r *http.Request) (any, error) {
	var in operationRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	action, err := deadletter.ParseVerb(in.Action)
	if err != nil {
		return nil, err
	}
	ids, err := parseIDs(in.IDs)
	if err != nil {
		return nil, err
	}
	sel := query.Selection{IDs: ids}
	if in.DryRun {
		plan, err := w.Desk.Plan(r.Context(), principal(r), action, sel)
		if err != nil {
			return nil, err
		}
		return planOf(plan), nil
	}
	if w.draining() {
		return nil, errStopping
	}
	id, err := w.Desk.Start(r.Context(), principal(r), operation.Request{Action: action, Selection: sel, Reason: in.Reason, Through: through(r), Key: r.Header.Get("Idempotency-Key")})
	if err != nil {
		return nil, err
	}
	o, err := w.Store.Operation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return accepted{apiOperationOf(o), "/api/v1/operations/" + id.String()}, nil
}

// through says by which way a call came: dlo's own command line names itself.
func through(r *http.Request) string {
	if strings.HasPrefix(r.UserAgent(), "dlo/") {
		return "cli"
	}
	return "api"
}

func planOf(p operation.Plan) apiPlan {
	v := apiPlan{Action: p.Action, Total: p.Total, Eligible: p.Eligible, Queues: []apiPlanQueue{}, Skipped: []apiPlanSkip{}}
	for _, q := range p.Queues {
		queue := apiPlanQueue{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue, Letters: q.Letters, Warning: q.Warning, Consumers: knownCount(q.Facts.Consumers), Ready: knownCount(q.Facts.Ready)}
		if q.Facts.Known {
			queue.Exists = &q.Facts.Exists
		}
		v.Queues = append(v.Queues, queue)
	}
	for _, s := range p.Skipped {
		v.Skipped = append(v.Skipped, apiPlanSkip(s))
	}
	return v
}

func knownCount(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// apiCancelOperation is POST /operations/{id}/cancel.
func (w *Web) apiCancelOperation(r *http.Request) (any, error) {
	id, err := pathOperation(r)
	if err != nil {
		return nil, err
	}
	if w.draining() {
		return nil, errStopping
	}
	if err := w.Desk.Cancel(r.Context(), principal(r), id); err != nil {
		return nil, err
	}
	o, err := w.Store.Operation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return apiOperationOf(o), nil
}

// readJSON reads one JSON value. Unknown keys are errors: one that this version does not obey must not be dropped in silence.
func readJSON(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return statusError(http.StatusUnsupportedMediaType)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return invalid("the JSON cannot be read: %s", deadletter.Visible(deadletter.Cut(strings.TrimPrefix(err.Error(), "json: "), 200)))
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("there is something after the JSON value")
	}
	return nil
}
