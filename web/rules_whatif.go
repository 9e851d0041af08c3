package web

import (
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	whatIfQuery = "state:dead,held,scheduled"
	whatIfTime  = 2 * time.Second // and then what was not looked at is said
)

// whatIf asks the rules about the newest letters of a query, at most most of them and for at most
// whatIfTime.
func (w *Web) whatIf(ctx context.Context, by deadletter.Principal, set *rules.Set, text string, most int) (view.WhatIf, error) {
	out := view.WhatIf{Query: text, Most: most, Counts: make([]view.RuleCount, len(set.Rules)+1)}
	q, err := query.Parse(text, w.queryOptions())
	if err != nil {
		return out, err
	}
	if out.Matching, out.Exact, err = w.Store.Count(ctx, q, countedTo); err != nil {
		return out, err
	}
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: most, Order: deadletter.OrderReceived})
	if err != nil {
		return out, err
	}
	out.Matching = max(out.Matching, len(rows)) // one came in between
	at := map[string]int{set.Default.Name: len(set.Rules)}
	for i := len(set.Rules) - 1; i >= 0; i-- {
		at[set.Rules[i].Name] = i
	}
	short, stop := context.WithTimeout(ctx, whatIfTime)
	defer stop()
	for i := range rows {
		f, err := w.factsOf(short, by, rows[i].ID)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case short.Err() != nil:
			out.Late = len(rows) - i
			return out, nil
		case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, deadletter.ErrForbidden):
			out.Left++
			continue
		case err != nil:
			return out, err
		}
		out.Looked++
		d := set.Decide(f)
		n := &out.Counts[at[d.Rule]]
		n.Letters++
		if n.Become == nil {
			n.Become = map[deadletter.RuleOutcome]int{}
		}
		n.Become[d.Outcome]++
	}
	return out, nil
}
