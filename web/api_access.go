package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

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
	g, err := in.Grant()
	if err != nil {
		return nil, err
	}
	t, err := deadletter.NewAPIToken(in.Name, g, in.ExpiresAt.Time, w.Now())
	if err != nil {
		return nil, err
	}
	if err := w.mayGive(principal(r), t.Principal()); err != nil {
		return nil, err
	}
	t.CreatedBy = principal(r).Name
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

// errNoUsers is the error of calls about users if dlo has no users of its own.
var errNoUsers = deadletter.NoSuch("user: auth.users is not set")

// apiUsers handles GET /users.
func (w *Web) apiUsers(r *http.Request) (any, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	list, err := w.Users.Users(r.Context())
	return api.Users{Users: each(list, api.NewUser)}, err
}

// apiAddUser handles POST /users. Nobody gives away more than they have.
func (w *Web) apiAddUser(r *http.Request, in api.UserRequest) (any, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	g, err := in.Grant()
	if err != nil {
		return nil, err
	}
	u, err := deadletter.NewUser(in.Name, g, principal(r).Name)
	if err == nil {
		err = w.mayGive(principal(r), deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	}
	if err != nil {
		return nil, err
	}
	code, err := w.Users.Add(r.Context(), u)
	return created{w.invitation(r, u.Name, code), "/api/v1/users/" + url.PathEscape(u.Name)}, err
}

// apiResetUser handles POST /users/{name}/reset.
func (w *Web) apiResetUser(r *http.Request) (any, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	u, err := w.Users.User(r.Context(), pathName(r))
	if err == nil { // whoever has the link gets the rights of the user
		err = w.mayGive(principal(r), deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	}
	if err != nil {
		return nil, err
	}
	code, err := w.Users.Reset(r.Context(), u.Name, principal(r).Name)
	return w.invitation(r, u.Name, code), err
}

// apiRemoveUser handles DELETE /users/{name}.
func (w *Web) apiRemoveUser(r *http.Request) (any, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	return gone{}, w.Users.Remove(r.Context(), pathName(r), principal(r).Name)
}

// pathName returns the name in the path.
func pathName(r *http.Request) string {
	name := chi.URLParam(r, "name")
	if decoded, err := url.PathUnescape(name); err == nil {
		return decoded
	}
	return name
}

// mayGive returns an error if a new user or token would have the right to see masked data or to
// purge, and the caller lacks that right. The configuration may grant more to a name than the
// request does, so mayGive checks those grants too.
func (w *Web) mayGive(by, to deadletter.Principal) error {
	if w.Granted != nil {
		to.Grants = append(to.Grants, w.Granted(to.Name)...)
	}
	for _, verb := range []deadletter.Verb{deadletter.VerbReveal, deadletter.VerbPurge} {
		if err := deadletter.Allow(by, verb, deadletter.Origin{}); err != nil && to.May(verb) {
			return err
		}
	}
	return nil
}

// invitation returns the link with which a user chooses a password.
func (w *Web) invitation(r *http.Request, name, code string) api.Invitation {
	base := w.PublicURL
	if base == "" {
		base = "http://" + r.Host
		if w.Secure {
			base = "https://" + r.Host
		}
	}
	return api.Invitation{Name: name, Link: WelcomeLink(base, code)}
}

// WelcomeLink returns the link with which an invited user chooses a password.
func WelcomeLink(base, code string) string {
	return strings.TrimSuffix(base, "/") + "/welcome?code=" + url.QueryEscape(code)
}
