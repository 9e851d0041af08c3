package web

import (
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// request converts the JSON body of an API call to the request that the operation desk takes.
func (w *Web) request(r *http.Request) (operation.Request, bool, error) {
	var in api.OperationRequest
	var out operation.Request
	if err := readJSON(r, &in); err != nil {
		return out, false, err
	}
	action, err := deadletter.ParseVerb(string(in.Action))
	if err != nil {
		return out, false, err
	}
	sel := query.Selection{Until: in.Until.Time}
	if in.Q != nil {
		q, err := query.Parse(*in.Q, w.queryOptions())
		if err != nil {
			return out, false, err
		}
		sel.Query = &q
	}
	if in.Q == nil || len(in.IDs) > 0 {
		if sel.IDs, err = parseIDs(in.IDs); err != nil {
			return out, false, err
		}
	}
	if len(in.Except) > 0 {
		if sel.Except, err = parseIDs(in.Except); err != nil {
			return out, false, err
		}
	}
	switch in.Order {
	case "", oldestFirst, newestFirst:
	default:
		return out, false, invalid("order is %s or %s: which letters go first", oldestFirst, newestFirst)
	}
	if in.Expect < 0 {
		return out, false, invalid("expect is a number of letters, not %d", in.Expect)
	}
	if in.Patch != nil {
		if err := checkPatch(in.Patch); err != nil {
			return out, false, err
		}
	}
	takes, err := operationIDs(in.TakeOver)
	if err != nil {
		return out, false, err
	}
	pace := operation.Pace{
		Rate:       in.Rate,
		Canary:     in.Canary,
		CanaryWait: (*time.Duration)(in.CanaryWait),
		StopAt:     in.StopAt,
		MaxDepth:   in.MaxDepth,
		Newest:     in.Order == newestFirst,
		Hold:       (*time.Duration)(in.Hold),
	}
	out = operation.Request{
		Action:    action,
		Selection: sel,
		Expect:    in.Expect,
		First:     in.First,
		To:        in.To,
		DueAt:     in.DueAt.Time,
		Reset:     in.Reset,
		Restored:  in.Restored,
		TakesOver: takes,
		Patch:     in.Patch,
		Pace:      pace,
		Reason:    in.Reason,
		Key:       r.Header.Get("Idempotency-Key"),
	}
	return out, in.DryRun, nil
}

// operationIDs parses operation ids.
func operationIDs(texts []string) (ids []deadletter.OperationID, err error) {
	for _, text := range texts {
		id, err := deadletter.ParseOperationID(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// apiStartOperation handles POST /operations. It returns 202 with the operation. For a dry run, it
// returns the plan instead. If a call is repeated with the same Idempotency-Key, it returns the
// same operation.
func (w *Web) apiStartOperation(r *http.Request) (any, error) {
	request, dry, err := w.request(r)
	if err != nil {
		return nil, err
	}
	if dry {
		plan, err := w.Desk.Plan(r.Context(), principal(r), request)
		if err != nil {
			return nil, err
		}
		return apiPlanOf(plan, request.Selection.Query, w.label), nil
	}
	if w.draining() {
		return nil, errStopping
	}
	id, err := w.Desk.Start(r.Context(), principal(r), request)
	if err != nil {
		return nil, err
	}
	o, err := w.operationNow(r, id)
	if err != nil {
		return nil, err
	}
	return accepted{o, "/api/v1/operations/" + id.String()}, nil
}

func apiPlanOf(p operation.Plan, q *query.Query, label func(broker string) string) api.Plan {
	v := api.Plan{
		Action:   p.Action,
		Until:    api.At(p.Until),
		Total:    p.Total,
		Eligible: p.Eligible,
		First:    p.First,
		To:       p.To,
		Pace:     apiPaceOf(p.Pace),
		Queues:   []api.PlanQueue{},
		Warnings: append([]string{}, p.Warnings...),
	}
	if q != nil {
		v.Query = q.Fixed().String()
	}
	for _, q := range p.Queues {
		queue := api.PlanQueue{
			Broker:    q.Broker,
			VHost:     q.VHost,
			Label:     label(q.Broker),
			Queue:     q.Queue,
			Target:    q.Target,
			Letters:   q.Letters,
			CameBack:  q.CameBack,
			Warning:   q.Warning,
			Consumers: knownNumber(q.Facts.Consumers),
			Ready:     knownNumber(q.Facts.Ready),
			MaxLength: knownNumber(q.Facts.MaxLength),
			MaxBytes:  knownNumber(q.Facts.MaxBytes),
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
	v.Skipped = each(p.Skipped, func(s operation.PlanSkip) api.PlanSkip {
		s.Examples = append([]deadletter.ID{}, s.Examples...)
		skip := api.PlanSkip{Reason: s.Reason, Letters: s.Letters, Examples: s.Examples, Halted: s.Halted}
		if s.Operation != 0 {
			skip.Operation = s.Operation.String()
		}
		return skip
	})
	return v
}
