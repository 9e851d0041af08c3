package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

const (
	whatIfQuery = "state:dead,held,scheduled"
	whatIfTime  = 2 * time.Second // after this time, the result gives the number of letters that were not examined
)

// whatIf tries rules on the newest letters that a query selects. The rules need not be in use. If
// the query is empty, it is whatIfQuery. At most "limit" letters are tried, and whatIfTime is the
// time limit. For each letter, whatIf compares two outcomes. One is the decision that the tried
// rules would have made when the letter last died. The other is the real outcome. whatIf changes
// nothing.
func (w *Web) whatIf(
	ctx context.Context, by deadletter.Principal, set *rules.Set, text string, limit int,
) (rules.WhatIf, error) {
	text = cmp.Or(text, whatIfQuery)
	out := rules.WhatIf{Usual: text == whatIfQuery, Most: limit}
	q, err := query.Parse(text, w.queryOptions())
	if err != nil {
		return out, err
	}
	var rows []deadletter.Row
	err = w.list(ctx, by, func(ctx context.Context) (err error) {
		rows, err = w.newest(ctx, q, &out)
		return err
	})
	if err != nil {
		return out, err
	}
	s := sums{set, w.Rules.Set(), map[[2]rules.Outcome][]deadletter.ID{}}
	short, stop := context.WithTimeout(ctx, whatIfTime)
	defer stop()
	for i := range rows {
		l, d, err := w.triedDecision(short, by, set, rows[i].ID)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case short.Err() != nil:
			out.Late = len(rows) - i
			s.fill(&out, q)
			return out, nil
		case errors.Is(err, deadletter.ErrNotFound), errors.Is(err, deadletter.ErrForbidden):
			out.Left++
		case err != nil:
			return out, err
		default:
			out.Looked++
			s.add(&l, d)
		}
	}
	s.fill(&out, q)
	return out, nil
}

// newest reads the letters to examine. It also counts all letters that the query selects.
func (w *Web) newest(ctx context.Context, q query.Query, out *rules.WhatIf) ([]deadletter.Row, error) {
	var err error
	if out.Matching, out.Exact, err = w.Store.Count(ctx, q, countedTo); err != nil {
		return nil, err
	}
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: out.Most, Order: deadletter.OrderReceived})
	out.Matching = max(out.Matching, len(rows)) // the count is too small if a letter arrives between the two reads
	return rows, err
}

// triedDecision returns the decision that rules would make about a letter. It stops when ctx ends.
// It returns an error if the given reader may not see the letter. A letter that has crashed dlo too
// often is dead, whatever the rules are.
func (w *Web) triedDecision(
	ctx context.Context, reader deadletter.Principal, set *rules.Set, id deadletter.ID,
) (deadletter.Letter, rules.Decision, error) {
	var d rules.Decision
	l, err := w.letterFor(ctx, reader, id)
	switch {
	case err != nil:
		return l, d, err
	case l.State == deadletter.StatePurged, l.Tried(): // the letter was purged, or no rule applies to it
		return l, d, deadletter.ErrNotFound
	case l.Undecodable():
		return l, rules.Decision{
			Rule:     set.Default.Name,
			Outcome:  deadletter.RuleDead,
			Severity: set.Default.Severity,
		}, nil
	}
	f, err := w.factsThen(ctx, &l)
	if err != nil {
		return l, d, err
	}
	f.Stop = func() bool { return ctx.Err() != nil }
	return l, set.Decide(f), nil
}

// factsThen returns the facts about a letter as they were when it last died. For example, its age
// is the age at that time. Attempts that were made after this death do not count.
func (w *Web) factsThen(ctx context.Context, l *deadletter.Letter) (rules.Facts, error) {
	f, err := w.facts(ctx, l)
	if err != nil {
		return f, err
	}
	died, open := l.ReceivedAt, 0
	if l.Attempts > 0 {
		attempts, err := w.Store.Attempts(ctx, l.ID)
		if err != nil {
			return f, err
		}
		for _, a := range attempts {
			switch {
			case a.Back != nil:
				died, open = a.Back.At, 0
			case a.Outcome.Used():
				open++
			}
		}
	}
	f.Age, f.Attempts = died.Sub(l.ReceivedAt), max(0, f.Attempts-open)
	return f, nil
}

// facts returns what rules need to know about a stored letter. The facts are not masked. To read
// the body, facts may have to decode it. It then waits for its turn to decode until ctx ends.
func (w *Web) facts(ctx context.Context, l *deadletter.Letter) (rules.Facts, error) {
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return rules.Facts{}, err
	}
	defer done()
	return w.RuleFacts(l), nil
}
