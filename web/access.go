package web

import (
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
func readGrant(r *http.Request, name *string, in *api.GrantRequest) {
	p := globsOf(r)
	*name, in.Queues, in.VHosts, in.Brokers = strings.TrimSpace(*name), p.Queues, p.VHosts, p.Brokers
}

func readUser(r *http.Request, in *struct{ Body api.UserRequest }) error {
	readGrant(r, &in.Body.Name, &in.Body.GrantRequest)
	return nil
}

// readToken reads the form for a new token. If its field "days" is empty, the token never expires.
func (w *Web) readToken(r *http.Request, in *struct{ Body api.TokenRequest }) error {
	readGrant(r, &in.Body.Name, &in.Body.GrantRequest)
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
