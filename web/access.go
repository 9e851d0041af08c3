package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// access handles GET /access.
func (w *Web) access(r *http.Request) (templ.Component, error) {
	p, err := w.accessPage(r)
	if err != nil {
		return nil, err
	}
	return view.Access(p), nil
}

func (w *Web) accessPage(r *http.Request) (view.AccessPage, error) {
	p := view.AccessPage{
		Shell:     w.shell(r, "Users and tokens", ""),
		UsersOff:  w.Users == nil,
		TokensOff: !w.TokensOn,
		Roles:     deadletter.RoleNames(),
		Forms:     map[string]url.Values{"token": {"days": {"90"}}},
		Mistakes:  map[string]string{},
	}
	var err error
	if p.Tokens, err = w.Store.Tokens(r.Context()); err != nil || p.UsersOff {
		return p, err
	}
	p.Users, err = w.Users.Users(r.Context())
	return p, err
}

// accessAgain returns what shows the form for a new user or a new token again, with its mistake.
func (w *Web) accessAgain(kind string) func(*http.Request, error) (templ.Component, error) {
	return func(r *http.Request, err error) (templ.Component, error) {
		p, broken := w.accessPage(r)
		p.Forms[kind], p.Mistakes[kind] = r.PostForm, sentence(err, statusOf(err))
		return view.Access(p), broken
	}
}

// showSecret returns the page that shows a new link or token.
func (w *Web) showSecret(r *http.Request, n view.NewSecret) (templ.Component, error) {
	p, err := w.accessPage(r)
	p.Secret = &n
	return view.Access(p), err
}

func (w *Web) showToken(r *http.Request, made *created[api.NewSecret]) (templ.Component, error) {
	return w.showSecret(r, view.NewSecret{Name: made.Body.Name, Text: made.Body.Secret})
}

func (w *Web) showLink(r *http.Request, made *created[api.Invitation]) (templ.Component, error) {
	return w.showSecret(r, view.NewSecret{Link: true, Name: made.Body.Name, Text: made.Body.Link})
}

func (w *Web) showReset(r *http.Request, made *reply[api.Invitation]) (templ.Component, error) {
	return w.showLink(r, &created[api.Invitation]{Body: made.Body})
}

// globsOf returns the globs of a form, in which spaces separate them.
func globsOf(r *http.Request) deadletter.Places {
	field := func(name string) []string { return strings.Fields(r.PostForm.Get(name)) }
	return deadletter.Places{Queues: field("queues"), VHosts: field("vhosts"), Brokers: field("brokers")}
}

// readGrant reads what the names of the fields do not say.
func readGrant(r *http.Request, in *api.UserRequest) {
	p := globsOf(r)
	in.Name, in.Queues, in.VHosts, in.Brokers = strings.TrimSpace(in.Name), p.Queues, p.VHosts, p.Brokers
}

func readUser(r *http.Request, in *struct{ Body api.UserRequest }) error {
	readGrant(r, &in.Body)
	return nil
}

// readToken reads the form for a new token. If its field "days" is empty, the token never expires.
func (w *Web) readToken(r *http.Request, in *struct{ Body api.TokenRequest }) error {
	readGrant(r, &in.Body.UserRequest)
	text := r.PostForm.Get("days")
	if text == "" {
		return nil
	}
	days, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return invalid("days is a number of days, or empty for a token that never expires")
	}
	in.Body.ExpiresAt = w.Now().AddDate(0, 0, int(days))
	return nil
}

// getMe says who makes the request, and what they may do. It needs no more than any grant. The name
// is the one in the audit.
func (w *Web) getMe(ctx context.Context, _ *struct{}) (*reply[api.Me], error) {
	p := principal(ctx)
	return &reply[api.Me]{api.Me{Name: p.Name, Grants: p.Grants}}, nil
}

// listTokens returns the tokens of the API, by name, without their secrets. It needs the role
// admin.
func (w *Web) listTokens(ctx context.Context, _ *struct{}) (*reply[api.Tokens], error) {
	list, err := w.Store.Tokens(ctx)
	return answer(api.Tokens{Tokens: list}, err)
}

// addToken adds a token. It needs the role admin, and reveal or purge to give them away. The
// response is the only place where the secret is shown. 409 when the name is taken.
func (w *Web) addToken(ctx context.Context, r *struct{ Body api.TokenRequest }) (*created[api.NewSecret], error) {
	in := &r.Body
	g, err := in.Grant()
	if err != nil {
		return nil, err
	}
	t, err := deadletter.NewAPIToken(in.Name, g, in.ExpiresAt, w.Now())
	if err == nil {
		err = w.mayGive(principal(ctx), t.Principal())
	}
	if err != nil {
		return nil, err
	}
	t.CreatedBy = principal(ctx).Name
	secret := deadletter.NewSecret()
	if t, err = w.Store.AddToken(ctx, t, deadletter.SecretHash(secret)); err != nil {
		return nil, err
	}
	return &created[api.NewSecret]{
		"/api/v1/tokens/" + url.PathEscape(t.Name), api.NewSecret{APIToken: t, Secret: secret},
	}, nil
}

// NamePath is a name in the path of a request.
type NamePath struct {
	Name string `path:"name"`
}

// revokeToken revokes a token. It needs the role admin. Requests with the token are refused from
// then on.
func (w *Web) revokeToken(ctx context.Context, in *NamePath) (*none, error) {
	return nil, w.Store.RevokeToken(ctx, in.Name, principal(ctx).Name)
}

// errNoUsers is the error of calls about users if dlo has no local users.
var errNoUsers = deadletter.NoSuch("user: auth.users is not set")

// listUsers returns the users of dlo's own, by name. It needs the role admin. 404 if auth.users is
// not set.
func (w *Web) listUsers(ctx context.Context, _ *struct{}) (*reply[api.Users], error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	list, err := w.Users.Users(ctx)
	return answer(api.Users{Users: list}, err)
}

// addUser adds a user. It needs the role admin, and reveal or purge to give them away. The user
// chooses a password with the link, once and within 72 hours. 409 when the name is taken.
func (w *Web) addUser(ctx context.Context, r *struct{ Body api.UserRequest }) (*created[api.Invitation], error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	g, err := r.Body.Grant()
	if err != nil {
		return nil, err
	}
	u, err := deadletter.NewUser(r.Body.Name, g, principal(ctx).Name)
	if err == nil {
		err = w.mayGive(principal(ctx), deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	}
	if err != nil {
		return nil, err
	}
	code, err := w.Users.Add(ctx, u)
	return &created[api.Invitation]{"/api/v1/users/" + url.PathEscape(u.Name), w.invitation(ctx, u.Name, code)}, err
}

// resetUser takes a user's password and sessions away, and invites the user to choose a password.
// It needs the role admin. Whoever has the link gets the rights of the user, so the caller needs
// these rights too.
func (w *Web) resetUser(ctx context.Context, in *NamePath) (*reply[api.Invitation], error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	by := principal(ctx)
	name, code, err := w.Users.Reset(ctx, in.Name, by.Name, func(u deadletter.User) error {
		return w.mayGive(by, deadletter.Principal{Name: u.Name, Grants: []deadletter.Grant{u.Grant}})
	})
	return answer(w.invitation(ctx, name, code), err)
}

// removeUser removes a user, and ends the user's sessions. It needs the role admin.
func (w *Web) removeUser(ctx context.Context, in *NamePath) (*none, error) {
	if w.Users == nil {
		return nil, errNoUsers
	}
	return nil, w.Users.Remove(ctx, in.Name, principal(ctx).Name)
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
func (w *Web) invitation(ctx context.Context, name, code string) api.Invitation {
	base := w.PublicURL
	if host, _ := ctx.Value(hostKey{}).(string); base == "" {
		base = "http://" + host + w.BasePath
		if w.Secure {
			base = "https://" + host + w.BasePath
		}
	}
	return api.Invitation{Name: name, Link: WelcomeLink(base, code)}
}

// WelcomeLink returns the link at which an invited user chooses a password.
func WelcomeLink(base, code string) string {
	return strings.TrimSuffix(base, "/") + "/welcome?code=" + url.QueryEscape(code)
}
