package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
)

// operationNow returns the current state of an operation, with the details that lists omit.
func (w *Web) operationNow(ctx context.Context, id deadletter.OperationID) (api.Operation, error) {
	o, err := w.Store.Operation(ctx, id)
	if err != nil {
		return api.Operation{}, err
	}
	v := api.NewOperation(o)
	var n api.NewFailures
	n.Count, n.Exact, err = w.Store.NewFailures(ctx, id)
	v.NewFailures = &n
	return v, err
}

// listOperations returns a page of operations, newest first. The next page follows the cursor in
// next.
func (w *Web) listOperations(ctx context.Context, in *Paging) (*reply[api.Operations], error) {
	var before deadletter.OperationID
	var err error
	if in.After != "" {
		if before, err = deadletter.ParseOperationID(in.After); err != nil {
			return nil, err
		}
	}
	all, err := w.Store.Operations(ctx, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(all) > in.Limit {
		all = all[:in.Limit]
		next = all[in.Limit-1].ID.String()
	}
	return &reply[api.Operations]{api.Operations{Operations: each(all, api.NewOperation), Next: next}}, nil
}

// twice is a word that a request can send as the parameter "result". It selects the letters that
// may have been sent twice, whatever their result is.
const twice = "twice"

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
	list := w.Store.TwiceLetters
	if in.Result != twice {
		wanted, err := wantedResults(in.Result)
		if err != nil {
			return nil, err
		}
		list = func(
			ctx context.Context, id deadletter.OperationID, after string, limit int,
		) ([]deadletter.OperationLetter, string, error) {
			return w.Store.OperationLetters(ctx, id, wanted, after, limit)
		}
	}
	o, err := w.operationNow(ctx, id)
	if err != nil {
		return nil, err
	}
	letters, next, err := w.operationLetters(list(ctx, id, in.After, in.Limit))
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
	if text == "" {
		return lookedAt, nil
	}
	names := each(deadletter.Results, api.ResultName)
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
