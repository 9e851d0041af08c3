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
	Tokens(ctx context.Context) ([]deadletter.APIToken, error) // sorted by name
	// AddToken sets the id and the time of the token. It returns ErrConflict if the name is in use.
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

// apiAddToken handles POST /tokens.
func (w *Web) apiAddToken(r *http.Request, in api.TokenRequest) (any, error) {
	t, err := w.addToken(r, in)
	return created{t, "/api/v1/tokens/" + t.Name}, err
}

// addToken adds a token. A token cannot get a right that the principal of the request lacks.
func (w *Web) addToken(r *http.Request, in api.TokenRequest) (api.NewSecret, error) {
	if w.draining() {
		return api.NewSecret{}, errStopping
	}
	g, err := in.Grant()
	if err != nil {
		return api.NewSecret{}, err
	}
	t, err := deadletter.NewAPIToken(in.Name, g, in.ExpiresAt.Time, w.Now())
	if err == nil {
		err = w.mayGive(principal(r), t.Principal())
	}
	if err != nil {
		return api.NewSecret{}, err
	}
	t.CreatedBy = principal(r).Name
	secret := deadletter.NewSecret()
	t, err = w.Store.AddToken(r.Context(), t, deadletter.SecretHash(secret))
	return api.NewSecret{Token: api.NewToken(t), Secret: secret}, err
}

// apiRevokeToken handles DELETE /tokens/{name}.
func (w *Web) apiRevokeToken(r *http.Request) (any, error) {
	return gone{}, w.revokeToken(r, pathName(r, "name"))
}

func (w *Web) revokeToken(r *http.Request, name string) error {
	if w.draining() {
		return errStopping
	}
	return w.Store.RevokeToken(r.Context(), name, principal(r).Name)
}

// errNoUsers is the error of calls about users if dlo has no local users.
var errNoUsers = deadletter.NoSuch("user: auth.users is not set")

// apiUsers handles GET /users.
func (w *Web) apiUsers(r *http.Request) (any, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	list, err := w.Users.Users(r.Context())
	return api.Users{Users: each(list, api.NewUser)}, err
}

// apiAddUser handles POST /users.
func (w *Web) apiAddUser(r *http.Request, in api.UserRequest) (any, error) {
	i, err := w.addUser(r, in)
	return created{i, "/api/v1/users/" + url.PathEscape(i.Name)}, err
}

// addUser invites a user. A user cannot get a right that the principal of the request lacks.
func (w *Web) addUser(r *http.Request, in api.UserRequest) (api.Invitation, error) {
	if w.Users == nil {
		return api.Invitation{}, errNoUsers
	}
	g, err := in.Grant()
	if err != nil {
		return api.Invitation{}, err
	}
	u, err := deadletter.NewUser(in.Name, g, principal(r).Name)
	if err == nil {
		err = w.mayGive(principal(r), deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	}
	if err != nil {
		return api.Invitation{}, err
	}
	code, err := w.Users.Add(r.Context(), u)
	return w.invitation(r, u.Name, code), err
}

// apiResetUser handles POST /users/{name}/reset.
func (w *Web) apiResetUser(r *http.Request) (any, error) { return w.resetUser(r, pathName(r, "name")) }

// resetUser takes a user's password away and makes a new link. Whoever has the link gets the rights
// of the user, so the principal of the request needs these rights too.
func (w *Web) resetUser(r *http.Request, name string) (api.Invitation, error) {
	if w.Users == nil {
		return api.Invitation{}, errNoUsers
	}
	by := principal(r)
	name, code, err := w.Users.Reset(r.Context(), name, by.Name, func(u deadletter.User) error {
		return w.mayGive(by, deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	})
	return w.invitation(r, name, code), err
}

// apiRemoveUser handles DELETE /users/{name}.
func (w *Web) apiRemoveUser(r *http.Request) (any, error) {
	return gone{}, w.removeUser(r, pathName(r, "name"))
}

func (w *Web) removeUser(r *http.Request, name string) error {
	if w.Users == nil {
		return errNoUsers
	}
	return w.Users.Remove(r.Context(), name, principal(r).Name)
}

// pathName returns a name in the path of a request, without escapes such as %2F. The router takes
// the name from RawPath if there is one, and then pathName has to remove the escapes. Otherwise the
// path has no escapes, and a percent sign belongs to the name.
func pathName(r *http.Request, parameter string) string {
	name := chi.URLParam(r, parameter)
	if r.URL.RawPath == "" {
		return name
	}
	if decoded, err := url.PathUnescape(name); err == nil {
		return decoded
	}
	return name
}

// mayGive prevents a caller from giving away a right that the caller lacks. It returns an error if
// a new user or token would have the right to see masked data, but the caller does not have this
// right. The same applies to the right to purge. Because the configuration may give further grants
// to the name of the user, mayGive also checks those grants.
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

// invitation returns the response with the link at which a user chooses a password.
func (w *Web) invitation(r *http.Request, name, code string) api.Invitation {
	base := w.PublicURL
	if base == "" {
		base = "http://" + r.Host + w.BasePath
		if w.Secure {
			base = "https://" + r.Host + w.BasePath
		}
	}
	return api.Invitation{Name: name, Link: WelcomeLink(base, code)}
}

// WelcomeLink returns the link at which an invited user chooses a password.
func WelcomeLink(base, code string) string {
	return strings.TrimSuffix(base, "/") + "/welcome?code=" + url.QueryEscape(code)
}
