package operation

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// take acts on the next n letters of an operation. Those of an edit are edited first, outside of the commit that releases them.
func (d *Desk) take(ctx context.Context, op *deadletter.Operation, n int) (int, error) {
	if op.Action != deadletter.VerbEdit {
		return d.store.Advance(ctx, op.ID, n, d.targets.Allow)
	}
	letters, err := d.store.PendingLetters(ctx, op.ID, n)
	if err != nil {
		return 0, err
	}
	list := make([]deadletter.Edited, 0, len(letters))
	for i := range letters {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		l := &letters[i]
		e := deadletter.Edited{AsOf: l.ChangedAt}
		if e.Revision, err = d.edit(l, op.Patch); err != nil {
			e.Refusal = err.Error()
		}
		e.Letter = l.ID
		list = append(list, e)
	}
	return d.store.Revised(ctx, op.ID, list, d.targets.Allow)
}
