package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// storeAnswer is a function that records what a person has answered about the store: it is current,
// or it is an older copy.
type storeAnswer = func(d Desk, ctx context.Context, by deadletter.Principal) error

// storeForm handles POST /store/accept and POST /store/hold.
func (w *Web) storeForm(answer storeAnswer) func(r *http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		if err := r.ParseForm(); err != nil {
			return "", formError(err)
		}
		return backTo(r, "/"), answer(w.Desk, r.Context(), principal(r.Context()))
	}
}

// acceptStore says that the store is current, where nothing is left that shows it. What is due is
// sent again. 409 when nobody asks (the problem store_unproved).
func (w *Web) acceptStore(ctx context.Context, _ *struct{}) (*none, error) {
	return nil, w.Desk.AcceptStore(ctx, principal(ctx))
}

// holdCopy says that the store is an older copy. What may have been sent since the copy was made is
// held. 409 when nobody asks (the problem store_unproved).
func (w *Web) holdCopy(ctx context.Context, _ *struct{}) (*none, error) {
	return nil, w.Desk.HoldCopy(ctx, principal(ctx))
}
