package web

import (
	"context"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// applyRules decides again, by the rules in use, about letters that wait for their retry. A changed
// configuration decides by itself about letters only that are not decided yet. This applies it to
// those that wait. Due times count from the death that a letter waits for, and are never in the
// past. Letters whose due time a person chose, and those that an operation has released, are left
// alone. It takes as long as it needs; when the caller goes away, it stops, and what was not
// reached is as it was. One call works at a time, the next waits.
func (w *Web) applyRules(ctx context.Context, r *struct{ Body api.ApplyRequest }) (*reply[rules.Applied], error) {
	in := &r.Body
	q, err := query.Parse(in.Q, w.queryOptions())
	if err != nil {
		return nil, err
	}
	return answer(w.decideAgain(ctx, operation.ApplyRequest{Query: q, DryRun: in.DryRun, Reason: in.Reason}))
}

// decideAgain applies the rules in use to letters that wait for a retry, so that they get a new
// decision. It ends when the caller disconnects or dlo stops.
func (w *Web) decideAgain(ctx context.Context, asked operation.ApplyRequest) (rules.Applied, error) {
	// if the writer does not support deadlines, the server's own deadlines apply
	control := ctx.Value(controlKey{}).(*http.ResponseController)
	control.SetReadDeadline(time.Time{})
	control.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.drained:
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := w.Desk.Apply(ctx, principal(ctx), asked)
	if err == nil {
		control.SetWriteDeadline(time.Now().Add(stalled))
	}
	return a, err
}
