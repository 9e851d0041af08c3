package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// request converts the JSON body of an API call to the request that the operation desk takes.
func (w *Web) request(in *api.OperationRequest, key string) (operation.Request, error) {
	var out operation.Request
	action, err := deadletter.ParseVerb(string(in.Action))
	if err != nil {
		return out, err
	}
	sel := query.Selection{Until: in.Until}
	if in.Q != nil {
		q, err := query.Parse(*in.Q, w.queryOptions())
		if err != nil {
			return out, err
		}
		sel.Query = &q
	}
	if sel.IDs, err = idsOf(in.IDs, deadletter.ParseID); err != nil {
		return out, err
	}
	if sel.Except, err = idsOf(in.Except, deadletter.ParseID); err != nil {
		return out, err
	}
	if in.Expect < 0 {
		return out, invalid("expect is a number of letters, not %d", in.Expect)
	}
	takes, err := idsOf(in.TakeOver, deadletter.ParseOperationID)
	if err == nil && in.Patch != nil {
		err = payload.CheckPatch(in.Patch)
	}
	if err != nil {
		return out, err
	}
	return operation.Request{
		Action:    action,
		Selection: sel,
		Expect:    in.Expect,
		First:     in.First,
		To:        in.To,
		DueAt:     in.DueAt,
		DueIn:     in.DueIn,
		Reset:     in.Reset,
		Restored:  in.Restored,
		TakesOver: takes,
		Patch:     in.Patch,
		Pace:      in.PaceAsked,
		Reason:    in.Reason,
		Key:       key,
	}, nil
}

// Keyed is the header Idempotency-Key of a request. A call that is repeated with the same key is
// the same call.
type Keyed struct {
	Key string `header:"Idempotency-Key"`
}

type startIn struct {
	Keyed
	Body api.OperationRequest
}

// startOperation requeues, holds, releases, discards, restores or purges letters, or edits them.
// The letters of a query or those with ids, as they are at until (now, when it is absent), are
// frozen first; what arrives or changes later is not acted on. With expect, and more letters than
// that, the answer is 409 and nothing was done. To start what a dry run showed, send its query as
// q, its until, and its total as expect.
//
// Requeue and purge, which nothing undoes, begin after hold; a requeue then sends canary letters,
// watches them for canary_wait, sends the rest at rate, and stops automatically when more than
// stop_at per cent came back. With dry_run, the answer is 200 with what the operation would do.
func (w *Web) startOperation(ctx context.Context, in *startIn) (*started, error) {
	request, err := w.request(&in.Body, in.Key)
	if err != nil {
		return nil, err
	}
	if in.Body.DryRun {
		plan, err := w.Desk.Plan(ctx, principal(ctx), request)
		return &started{Status: http.StatusOK, Body: apiPlanOf(plan, request.Selection.Query, w.label)}, err
	}
	id, err := w.Desk.Start(ctx, principal(ctx), request)
	if err != nil {
		return nil, err
	}
	o, err := w.operationNow(ctx, id)
	return &started{Status: http.StatusAccepted, Location: "/api/v1/operations/" + id.String(), Body: o}, err
}

// started is the response to the start of an operation: the operation, or the plan of a dry run.
type started struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

func apiPlanOf(p deadletter.Plan, q *query.Query, label func(broker string) string) api.Plan {
	v := api.Plan{Plan: p}
	if q != nil {
		v.Query = q.Fixed().String()
	}
	for _, q := range p.Queues {
		queue := api.PlanQueue{
			PlanQueue: q,
			Label:     label(q.Broker),
			Consumers: deadletter.Amount(q.Facts.Consumers),
			Ready:     deadletter.Amount(q.Facts.Ready),
			MaxLength: deadletter.Amount(q.Facts.MaxLength),
			MaxBytes:  deadletter.Amount(q.Facts.MaxBytes),
		}
		if q.Facts.DeadLetters != "" {
			queue.DeadLetters = &q.Facts.DeadLetters
		}
		if single, known := q.Facts.HasSingleActive(); known {
			queue.SingleActive = &single
		}
		if q.Facts.Known {
			queue.Exists = &q.Facts.Exists
		}
		v.Queues = append(v.Queues, queue)
	}
	return v
}

// readOperation reads the form on the page of a plan. Its mistakes are those of choiceIn, and a
// number of letters that has to be typed.
func (w *Web) readOperation(r *http.Request, in *startIn) error {
	c, err := choiceIn(r)
	if err != nil {
		return err
	}
	*in = c.call
	action := in.Body.Action
	if len(c.mistakes) == 0 && (view.MustType(action, 1) || view.MustType(action, view.TypedFrom+1)) {
		dry := *in
		dry.Body.DryRun = true
		out, err := w.startOperation(r.Context(), &dry)
		if err != nil {
			return err
		}
		plan := out.Body.(api.Plan)
		n := view.TakenOf(plan.Eligible, plan.First)
		if view.MustType(action, n) && !view.TypedCount(c.form.Get("count"), n) {
			c.mistakes["count"] = "Type " + view.Count(n) + " to " + string(action) + " " + view.LetterCount(n) + "."
		}
	}
	var refused deadletter.FieldErrors
	for name, why := range c.mistakes {
		refused = append(refused, deadletter.FieldError{Field: name, Why: why})
	}
	if refused != nil {
		return refused
	}
	return nil
}

// paceCookie has the name of the cookie with the options for sending that were used last, as fields
// of the form.
const paceCookie = "pace"

// showStarted goes to the page of a new operation. The browser remembers the options for sending.
func (w *Web) showStarted(r *http.Request, out *started) (templ.Component, error) {
	to := movedError{view.OperationFrom(out.Body.(api.Operation).ID, backTo(r, ""))}
	pace := url.Values{}
	for _, name := range paceFields {
		pace.Set(name, r.PostForm.Get(name))
	}
	if r.PostForm.Get("rate") == "" || r.PostForm.Get("try") != "" {
		return nil, to
	}
	return nil, cookieError{to, &http.Cookie{
		Name:     paceCookie,
		Value:    pace.Encode(),
		MaxAge:   365 * 24 * 60 * 60,
		Secure:   r.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	}}
}

// operationAgain shows the page of a plan again, with the mistakes in its form.
func (w *Web) operationAgain(r *http.Request, err error) (templ.Component, error) {
	c, broken := choiceIn(r)
	if broken != nil {
		return nil, broken
	}
	refused, marked := errors.AsType[deadletter.FieldErrors](err)
	for _, f := range refused {
		c.mistakes[f.Field] = f.Why
	}
	p, broken := w.confirmPage(r, c)
	if broken != nil {
		return nil, broken
	}
	p.Problem = "Nothing was " + p.Action.Past() + ": see the marked field."
	if !marked && len(p.Mistakes) == 0 {
		p.Problem = "Nothing was " + p.Action.Past() + ": " + sentence(err, statusOf(err)) + "."
	}
	if p.Key == "" || errors.Is(err, deadletter.ErrConflict) {
		p.Key = newKey() // more letters match than were shown, or the key belongs to another operation
	}
	return view.Confirm(p), nil
}
