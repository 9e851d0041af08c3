package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// operationRequest is the body of POST /operations. What is absent has its default.
type operationRequest struct {
	Action     string       `json:"action"`
	Q          *string      `json:"q"`
	IDs        []string     `json:"ids"`
	Except     []string     `json:"except"`
	Until      time.Time    `json:"until"`
	Expect     int          `json:"expect"`
	Reason     string       `json:"reason"`
	DryRun     bool         `json:"dry_run"`
	Rate       *float64     `json:"rate"`
	Canary     *int         `json:"canary"`
	CanaryWait *apiDuration `json:"canary_wait"`
	StopAt     *float64     `json:"stop_at"`
	MaxDepth   *int         `json:"max_depth"`
	Order      string       `json:"order"`
	First      int          `json:"first"`
	To         string       `json:"to"`
	Hold       *apiDuration `json:"hold"`
	DueAt      time.Time    `json:"due_at"`
	Reset      bool         `json:"reset_attempts"`

	Patch json.RawMessage `json:"patch"` // of an edit: RFC 6902, on the decoded body
}

// apiDuration is a duration as JSON has it: a text such as "2m" or "1m30s".
type apiDuration time.Duration

func (d *apiDuration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return invalid("a duration is a text such as \"2m\" or \"10s\", not %s", b)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return invalid("%q is not a duration such as \"2m\" or \"10s\"", text)
	}
	*d = apiDuration(v)
	return nil
}

// request turns the body of a call into what the desk is asked for.
func (w *Web) request(r *http.Request) (operation.Request, bool, error) {
	var in operationRequest
	var out operation.Request
	if err := readJSON(r, &in); err != nil {
		return out, false, err
	}
	action, err := deadletter.ParseVerb(in.Action)
	if err != nil {
		return out, false, err
	}
	sel := query.Selection{Until: in.Until}
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
	pace := operation.Pace{Rate: in.Rate, Canary: in.Canary, CanaryWait: (*time.Duration)(in.CanaryWait), StopAt: in.StopAt, MaxDepth: in.MaxDepth, Newest: in.Order == newestFirst, Hold: (*time.Duration)(in.Hold)}
	out = operation.Request{
		Action: action, Selection: sel, Expect: in.Expect, First: in.First, To: in.To, DueAt: in.DueAt, Reset: in.Reset, Patch: in.Patch, Pace: pace, Reason: in.Reason, Through: through(r), Key: r.Header.Get("Idempotency-Key"),
	}
	return out, in.DryRun, nil
}

// apiStartOperation is POST /operations: 202 and the operation, or with dry_run the plan. The header Idempotency-Key makes a repeated call the same
// operation.
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
		return apiPlanOf(plan, request.Selection.Query), nil
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

// through says by which way a call came: dlo's own command line names itself.
func through(r *http.Request) string {
	if strings.HasPrefix(r.UserAgent(), "dlo/") {
		return "cli"
	}
	return "api"
}

// apiPlan is a dry run. Query and until, sent again with expect, start exactly what the plan shows.
type apiPlan struct {
	Action   deadletter.Verb `json:"action"`
	Query    string          `json:"query"` // with fixed times; "" = chosen ids, or every letter
	Until    time.Time       `json:"until"`
	Total    int             `json:"total"`
	Eligible int             `json:"eligible"`
	First    int             `json:"first"`
	To       string          `json:"to"`
	Pace     apiPace         `json:"pace"`
	Queues   []apiPlanQueue  `json:"queues"`
	Skipped  []apiPlanSkip   `json:"skipped"`
	Warnings []string        `json:"warnings"`
}

type apiPlanQueue struct {
	Broker    string `json:"broker"`
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Target    string `json:"target"`
	Letters   int    `json:"letters"`
	CameBack  int    `json:"came_back"`
	Exists    *bool  `json:"exists"`    // null: unknown
	Consumers *int   `json:"consumers"` // null: unknown
	Ready     *int   `json:"ready"`     // null: unknown

	SingleActive bool    `json:"single_active"` // false also where nobody says
	MaxLength    *int    `json:"max_length"`    // 0: no limit; null: unknown
	MaxBytes     *int    `json:"max_bytes"`     // 0: no limit; null: unknown
	DeadLetters  *string `json:"dead_letters"`  // null: unknown
	Warning      string  `json:"warning"`
}

type apiPlanSkip struct {
	Reason   string          `json:"reason"`
	Letters  int             `json:"letters"`
	Examples []deadletter.ID `json:"examples"`
}

func apiPlanOf(p operation.Plan, q *query.Query) apiPlan {
	v := apiPlan{
		Action: p.Action, Until: p.Until.UTC(), Total: p.Total, Eligible: p.Eligible, First: p.First, To: p.To, Pace: apiPaceOf(p.Pace),
		Queues: []apiPlanQueue{}, Skipped: []apiPlanSkip{}, Warnings: append([]string{}, p.Warnings...),
	}
	if q != nil {
		v.Query = q.Fixed().String()
	}
	for _, q := range p.Queues {
		queue := apiPlanQueue{
			Broker: q.Broker, VHost: q.VHost, Queue: q.Queue, Target: q.Target, Letters: q.Letters, CameBack: q.CameBack, Warning: q.Warning,
			Consumers: knownCount(q.Facts.Consumers), Ready: knownCount(q.Facts.Ready), SingleActive: q.Facts.SingleActive, MaxLength: knownCount(q.Facts.MaxLength), MaxBytes: knownCount(q.Facts.MaxBytes),
		}
		if q.Facts.DeadLetters != "" {
			queue.DeadLetters = &q.Facts.DeadLetters
		}
		if q.Facts.Known {
			queue.Exists = &q.Facts.Exists
		}
		v.Queues = append(v.Queues, queue)
	}
	for _, s := range p.Skipped {
		s.Examples = append([]deadletter.ID{}, s.Examples...)
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
