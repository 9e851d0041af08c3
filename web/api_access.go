package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Tokens stores the tokens of the API.
type Tokens interface {
	Tokens(ctx context.Context) ([]deadletter.APIToken, error) // by name
	// AddToken fills in the id and the time. It returns ErrConflict if the name is taken.
	AddToken(ctx context.Context, t deadletter.APIToken, hash [32]byte) (deadletter.APIToken, error)
	RevokeToken(ctx context.Context, name, by string) error // ErrNotFound if it does not exist
}

// apiMe handles GET /me.
func (w *Web) apiMe(r *http.Request) (any, error) {
	p := principal(r)
	return api.Me{Name: p.Name, Grants: each(p.Grants, api.NewGrant)}, nil
}

// apiTokens handles GET /tokens.
func (w *Web) apiTokens(r *http.Request) (any, error) {
	list, err := w.Store.Tokens(r.Context())
	return api.Tokens{Tokens: each(list, api.NewToken)}, err
}

// apiAddToken handles POST /tokens. Nobody gives away more than they have.
func (w *Web) apiAddToken(r *http.Request, in api.TokenRequest) (any, error) {
	if w.draining() {
		return nil, errStopping
	}
	t, err := deadletter.NewAPIToken(in.Name, in.Role, in.Reveal, in.Purge, in.ExpiresAt, w.Now())
	if err != nil {
		return nil, err
	}
	by := principal(r)
	for verb, given := range map[deadletter.Verb]bool{deadletter.VerbReveal: in.Reveal, deadletter.VerbPurge: in.Purge} {
		if given && !by.MayEverywhere(verb) {
			return nil, deadletter.Denied(by, verb)
		}
	}
	t.CreatedBy = by.Name
	secret := deadletter.NewSecret()
	if t, err = w.Store.AddToken(r.Context(), t, deadletter.SecretHash(secret)); err != nil {
		return nil, err
	}
	return created{api.NewSecret{Token: api.NewToken(t), Secret: secret}, "/api/v1/tokens/" + t.Name}, nil
}

// apiRevokeToken handles DELETE /tokens/{name}.
func (w *Web) apiRevokeToken(r *http.Request) (any, error) {
	if w.draining() {
		return nil, errStopping
	}
	return gone{}, w.Store.RevokeToken(r.Context(), chi.URLParam(r, "name"), principal(r).Name)
}
