package web

import (
	"context"
	"errors"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// addTried adds to the page of an operation what happened to the letter since it was requeued,
// second by second. This is done only for an operation that requeued a single letter. While the
// letter may still be in its queue, addTried asks the broker about the queue.
func (w *Web) addTried(ctx context.Context, p *view.OperationPage) error {
	if op := &p.Operation; op.Total != 1 || op.Action != deadletter.VerbRequeue {
		return nil
	}
	list, _, err := w.operationLetters(w.Store.OperationLetters(ctx, p.Operation.ID, deadletter.Results, "", 1))
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
		l.Origin.Queue = t.Attempt.Queue
		t.Facts = w.Facts(ctx, l.Origin)
	}
	p.Tried = &t
	return nil
}
