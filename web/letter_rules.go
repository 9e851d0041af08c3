package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// explained reports whether dlo says which of the rules in use apply to a letter. It does not if
// the rules are unknown or do not apply to the letter. Rules name queues, so the principal must be
// allowed to see all queues.
func (w *Web) explained(ctx context.Context, l *deadletter.Letter) bool {
	return !l.Tried() && deadletter.ScopeOf(ctx).Everywhere()
}

// letterSteps tests the rules in use on a letter. It returns every rule in order. The steps never
// contain values of the letter. The caller must pass the letter before its values are masked. The
// result is empty if the letter is not explained.
func (w *Web) letterSteps(ctx context.Context, l *deadletter.Letter) ([]rules.Step, error) {
	if !w.explained(ctx, l) {
		return nil, nil
	}
	f, err := w.facts(ctx, l)
	if err != nil {
		return nil, err
	}
	return w.Rules.Set().Explain(f), nil
}
