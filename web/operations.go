package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	recentOperations = 5
	backGroups       = 10      // the maximum number of groups shown to which letters came back
	undoableCounted  = 100_000 // the maximum number of letters that are counted
)

// operation parses the id of an operation in the path of a request.
func (p OperationPath) operation() (deadletter.OperationID, error) {
	return pathAs(p.ID, "operation", deadletter.ParseOperationID)
}

// operationIn returns the path of a form or a page.
func operationIn(r *http.Request) OperationPath { return OperationPath{chi.URLParam(r, "id")} }

// operation handles GET /operations/{id}?result=&after=&from=&look=. Without the parameter
// "result", it lists the letters with the result that a person should look at first. The parameter
// "from" is the URL of the list from which the operation was started. With the parameter "look",
// the page reloads itself without scripts.
func (w *Web) operation(r *http.Request) (templ.Component, error) {
	p, err := w.operationPage(r, r.URL.Query().Get("result"), r.URL.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	return view.Operation(p), nil
}

func (w *Web) operationPage(r *http.Request, result, after string) (view.OperationPage, error) {
	id, err := operationIn(r).operation()
	if err != nil {
		return view.OperationPage{}, err
	}
	ctx := r.Context()
	op, err := w.Store.Operation(ctx, id)
	if err != nil {
		return view.OperationPage{}, err
	}
	if len(op.Patch) > 0 && w.Decoder().HidesAny() { // the patch may contain masked values
		op.Patch = nil
	}
	p := view.OperationPage{
		Shell:     w.shell(r, "Operation "+id.String(), view.SectionOperations),
		Operation: op,
		After:     after,
		Watch:     w.Watch,
		Result:    shownResult(op, result),
	}
	p.Operation.Away = w.awayOf(ctx, op)
	p.OnTheWay = op.Counts[deadletter.ResultReleased]
	if p.Operation.Away != "" && p.OnTheWay > 0 { // only what was published and has no confirm is on its way
		q := (query.Query{}).With(query.Op, id.String()+"/"+view.ResultWord(deadletter.ResultReleased))
		q = q.With(query.State, string(deadletter.StatePublishing))
		if p.OnTheWay, _, err = w.Store.Count(ctx, q, countedTo); err != nil {
			return p, err
		}
	}
	if from := r.URL.Query().Get("from"); from != "" && len(from) <= view.MaxFrom {
		p.From = localPath(from)
	}
	if p.Done, err = w.justDecided(r); err != nil {
		return p, err
	}
	if r.URL.Query().Get("look") != "" && op.State.Active() {
		p.Refresh = view.LookEvery
	}
	if p.Result != "" {
		shown := []deadletter.Result{p.Result}
		if p.Letters, p.Next, err = w.operationLetters(ctx, id, shown, after, pageRows); err != nil {
			return p, err
		}
	}
	if err := w.addOutcome(ctx, &p); err != nil {
		return p, err
	}
	if err := w.addTried(ctx, &p); err != nil {
		return p, err
	}
	if p.NewFailures, p.NewExact, err = w.Store.NewFailures(ctx, id); err != nil {
		return p, err
	}
	if p.Undoable, p.UndoExact, err = w.undoable(ctx, id, op.Action, undoableCounted); err != nil {
		return p, err
	}
	recent, _, err := w.operationsAfter(ctx, "", recentOperations+1)
	for _, o := range recent {
		if o.ID != id && len(p.Recent) < recentOperations {
			p.Recent = append(p.Recent, o)
		}
	}
	return p, err
}

// undoable returns the number of letters that are still in the state that an operation gave them.
// It stops counting at the given limit. If there are more letters, the result "exact" is false. If
// the action of the operation cannot be undone, undoable returns 0.
func (w *Web) undoable(
	ctx context.Context, id deadletter.OperationID, action deadletter.Verb, limit int,
) (n int, exact bool, err error) {
	left := map[deadletter.Verb]deadletter.State{
		deadletter.VerbDiscard: deadletter.StateDiscarded, deadletter.VerbHold: deadletter.StateHeld,
	}
	state, ok := left[action]
	if !ok {
		return 0, true, nil
	}
	q := (query.Query{}).With(
		query.Op, id.String()+"/"+view.ResultWord(deadletter.ResultChanged),
	).With(query.State, string(state))
	return w.Store.Count(ctx, q, limit)
}

// awayOf returns the reason why none of the letters that an operation has left can be sent now. If
// some can be sent, it returns "". If the brokers of several queues are disconnected, the reason
// names the broker of the queue with the most letters.
func (w *Web) awayOf(ctx context.Context, op deadletter.Operation) (why string) {
	if !op.Action.Sends() || !op.State.Active() {
		return ""
	}
	brokers := w.brokers(ctx)
	for _, q := range op.Queues {
		if q.Counts[deadletter.ResultPending]+q.Counts[deadletter.ResultReleased] == 0 {
			continue
		}
		away := deadletter.Away(brokers, deadletter.Origin{Broker: q.Broker, VHost: q.VHost})
		if away == "" {
			return ""
		}
		why = cmp.Or(why, away)
	}
	return why
}

// addOutcome adds two lists of groups to the page of an operation: the groups to which letters came
// back, and the groups for which the page suggests next steps.
func (w *Web) addOutcome(ctx context.Context, p *view.OperationPage) error {
	id := p.Operation.ID
	var err error
	if p.BackGroups, err = w.Store.BackGroups(ctx, id, backGroups); err != nil {
		return err
	}
	for i := range p.BackGroups {
		p.BackGroups[i].Title, _ = w.Header("", p.BackGroups[i].Title)
	}
	groups, err := w.Store.OperationGroups(ctx, id, view.NextGroups)
	if err != nil || len(groups) == 0 {
		return err
	}
	p.Groups, _, err = w.groups(
		ctx, (query.Query{}).With(query.Group, each(groups, deadletter.GroupID.String)...), deadletter.GroupPage{
			Tab:   deadletter.TabAll,
			Limit: view.NextGroups,
		},
	)
	return err
}

// shownResult returns the result whose letters the page lists. If the request names no result, it
// returns the first result that has letters.
func shownResult(op deadletter.Operation, asked string) deadletter.Result {
	for _, r := range view.ResultTabs {
		if view.ResultWord(r) == asked {
			return r
		}
	}
	for _, r := range view.ResultTabs {
		if op.Counts[r] > 0 || r == view.ResultTwice && op.Twice > 0 {
			return r
		}
	}
	return ""
}

// operationLetters returns one page of the letters of an operation that have one of the given
// results. It masks their values. view.ResultTwice stands for the letters that may have been sent
// twice, whatever their result is.
func (w *Web) operationLetters(
	ctx context.Context, id deadletter.OperationID, results []deadletter.Result, after string, limit int,
) (list []deadletter.OperationLetter, next string, err error) {
	if slices.Contains(results, view.ResultTwice) {
		list, next, err = w.Store.TwiceLetters(ctx, id, after, limit)
	} else {
		list, next, err = w.Store.OperationLetters(ctx, id, results, after, limit)
	}
	for i := range list {
		list[i].Error, _ = w.Header("", list[i].Error)
	}
	return list, next, err
}

// operationsAfter returns a page of operations, newest first. It begins after the operation with a
// given id, or with the newest operation if the id is "". The result "last" is the last operation
// of the page, or 0 if no others follow.
func (w *Web) operationsAfter(
	ctx context.Context, id string, limit int,
) (list []deadletter.Operation, last deadletter.OperationID, err error) {
	var before deadletter.OperationID
	if id != "" {
		if before, err = deadletter.ParseOperationID(id); err != nil {
			return nil, 0, err
		}
	}
	list, err = w.Store.Operations(ctx, before, limit+1)
	if len(list) > limit {
		list, last = list[:limit], list[limit-1].ID
	}
	for i := range list {
		list[i].Away = w.awayOf(ctx, list[i])
	}
	return list, last, err
}

// operations handles GET /operations?before=.
func (w *Web) operations(r *http.Request) (templ.Component, error) {
	before := r.URL.Query().Get("before")
	list, last, err := w.operationsAfter(r.Context(), before, pageRows)
	if err != nil {
		return nil, err
	}
	return view.Operations(view.OperationsPage{
		Shell:      w.shell(r, "Operations", view.SectionOperations),
		Operations: list,
		Older:      last,
		First:      before == "",
	}), nil
}

// rateAgain shows the page of an operation with a rate that was refused.
func (w *Web) rateAgain(r *http.Request, err error) (templ.Component, error) {
	p, broken := w.operationPage(r, "", "")
	p.RateTyped, p.RateMistake = r.PostForm.Get("rate"), sentence(err, statusOf(err))
	return view.Operation(p), broken
}

// operationNow returns the current state of an operation, with the details that lists omit.
func (w *Web) operationNow(ctx context.Context, id deadletter.OperationID) (api.Operation, error) {
	o, err := w.Store.Operation(ctx, id)
	if err != nil {
		return api.Operation{}, err
	}
	o.Away = w.awayOf(ctx, o)
	v := api.NewOperation(o)
	var n api.Count
	n.Count, n.Exact, err = w.Store.NewFailures(ctx, id)
	v.NewFailures = &n
	return v, err
}

// listOperations returns a page of operations, newest first. The next page follows the cursor in
// next.
func (w *Web) listOperations(ctx context.Context, in *Paging) (*reply[api.Operations], error) {
	list, last, err := w.operationsAfter(ctx, in.After, in.Limit)
	out := api.Operations{Operations: each(list, api.NewOperation)}
	if last != 0 {
		out.Next = last.String()
	}
	return answer(out, err)
}

// OperationPath is the id of an operation in the path of a request.
type OperationPath struct {
	ID string `path:"id"`
}

// getOperation returns one operation, and a page of its letters. It has the counts of its results,
// the pace, and, once it is over, the verdict. result is a list of results of the letters that are
// listed, with commas between, or twice: those that may have been sent twice. Without it, these are
// the letters that a person has to look at.
func (w *Web) getOperation(ctx context.Context, in *struct {
	OperationPath
	Result string `query:"result"`
	Paging
},
) (*reply[api.OperationLetters], error) {
	id, err := in.operation()
	if err != nil {
		return nil, err
	}
	results, err := wantedResults(in.Result)
	if err != nil {
		return nil, err
	}
	o, err := w.operationNow(ctx, id)
	if err != nil {
		return nil, err
	}
	letters, next, err := w.operationLetters(ctx, id, results, in.After, in.Limit)
	return answer(api.OperationLetters{Operation: o, Next: next, Letters: each(letters, apiOperationLetter)}, err)
}

func apiOperationLetter(l deadletter.OperationLetter) api.OperationLetter {
	out := api.OperationLetter{OperationLetter: l}
	if l.State != deadletter.StateScheduled {
		out.DueAt = time.Time{}
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
	switch text {
	case "":
		return lookedAt, nil
	case string(view.ResultTwice):
		return []deadletter.Result{view.ResultTwice}, nil
	}
	names := each(deadletter.Results, api.ResultName)
	var out []deadletter.Result
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, invalid("result is one or more of %s, or %s alone", strings.Join(names, ", "), view.ResultTwice)
		}
		out = append(out, deadletter.Results[i])
	}
	return out, nil
}

// changeOperation changes how fast an operation sends. The new rate applies from the next letter
// on.
func (w *Web) changeOperation(ctx context.Context, in *struct {
	OperationPath
	Body api.RateChange
},
) (*reply[api.Operation], error) {
	if in.Body.Rate == nil {
		return nil, invalid("a rate is a number of letters per second above 0, for example 50")
	}
	return w.steered(
		ctx, in.OperationPath,
		func(d *operation.Desk, ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
			return d.Rate(ctx, by, id, *in.Body.Rate)
		},
	)
}

// pauseOperation makes an operation send nothing more until it is resumed. 409 when the operation
// has nothing left to send.
func (w *Web) pauseOperation(ctx context.Context, in *OperationPath) (*reply[api.Operation], error) {
	return w.steered(ctx, *in, (*operation.Desk).Pause)
}

// resumeOperation lets a paused or stopped operation go on. One that stopped automatically begins
// with a canary again. 409 when it is neither.
func (w *Web) resumeOperation(ctx context.Context, in *OperationPath) (*reply[api.Operation], error) {
	return w.steered(ctx, *in, (*operation.Desk).Resume)
}

// cancelOperation cancels the rest of an operation. Letters that were not sent yet stay as they
// were. 409 when the operation is over.
func (w *Web) cancelOperation(ctx context.Context, in *OperationPath) (*reply[api.Operation], error) {
	return w.steered(ctx, *in, (*operation.Desk).Cancel)
}

// steering is a call that pauses, resumes or cancels an operation.
type steering = func(d *operation.Desk, ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error

// steered pauses, resumes or cancels an operation, and returns the operation.
func (w *Web) steered(ctx context.Context, in OperationPath, do steering) (*reply[api.Operation], error) {
	id, err := in.operation()
	if err != nil {
		return nil, err
	}
	if err := do(w.Desk, ctx, principal(ctx), id); err != nil {
		return nil, err
	}
	return answer(w.operationNow(ctx, id))
}

// addTried adds to the page of an operation what happened to the letter since it was requeued,
// second by second. This is done only for an operation that requeued a single letter. While the
// letter may still be in its queue, addTried asks the broker about the queue.
func (w *Web) addTried(ctx context.Context, p *view.OperationPage) error {
	if op := &p.Operation; op.Total != 1 || op.Action != deadletter.VerbRequeue {
		return nil
	}
	list, _, err := w.operationLetters(ctx, p.Operation.ID, deadletter.Results, "", 1)
	if err != nil || len(list) == 0 {
		return err
	}
	t := view.Tried{Letter: list[0], Facts: deadletter.UnknownQueue}
	attempts, err := w.Store.Attempts(ctx, t.Letter.Letter)
	if err != nil {
		return err
	}
	for i := range attempts {
		if attempts[i].Operation == p.Operation.ID {
			t.Attempt = &attempts[i]
		}
	}
	if t.Waits() {
		l, err := w.Store.Letter(ctx, t.Letter.Letter)
		if errors.Is(err, deadletter.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		l.Queue = t.Attempt.Queue
		t.Facts = w.Facts(ctx, l.Origin())
	}
	p.Tried = &t
	return nil
}
