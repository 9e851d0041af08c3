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
		if w.draining() {
			return "", errStopping
		}
		return backTo(r, "/"), answer(w.Desk, r.Context(), principal(r))
	}
}

// apiStore handles POST /api/v1/store/accept and POST /api/v1/store/hold.
func (w *Web) apiStore(answer storeAnswer) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if w.draining() {
			return nil, errStopping
		}
		return gone{}, answer(w.Desk, r.Context(), principal(r))
	}
}
