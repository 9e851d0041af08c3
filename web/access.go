package web

import (
	"errors"
	"net/http"
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
		Token:     view.NewTokenForm,
	}
	var err error
	if p.Tokens, err = w.Store.Tokens(r.Context()); err != nil || p.UsersOff {
		return p, err
	}
	p.Users, err = w.Users.Users(r.Context())
	return p, err
}

// madeSecret returns the page that shows a new secret. If the form was not valid, the page shows
// the form again with the reason.
func (w *Web) madeSecret(
	r *http.Request, n view.NewSecret, refused func(*view.AccessPage, string), err error,
) (templ.Component, error) {
	if err != nil && !errors.Is(err, deadletter.ErrInvalid) && !errors.Is(err, deadletter.ErrConflict) {
		return nil, err
	}
	p, failed := w.accessPage(r)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		refused(&p, sentence(err, statusOf(err)))
	} else {
		p.Secret = &n
	}
	return view.Access(p), err
}

// accessForm reads the form for a new user or a new token.
func accessForm(r *http.Request) (view.AccessForm, error) {
	if err := r.ParseForm(); err != nil {
		return view.AccessForm{}, formError(err)
	}
	in := r.PostForm
	return view.AccessForm{
		Name:    strings.TrimSpace(in.Get("name")),
		Role:    in.Get("role"),
		Reveal:  in.Get("reveal") != "",
		Purge:   in.Get("purge") != "",
		Queues:  in.Get("queues"),
		VHosts:  in.Get("vhosts"),
		Brokers: in.Get("brokers"),
		Days:    in.Get("days"),
	}, nil
}

func grantOf(f view.AccessForm) api.GrantRequest {
	return api.GrantRequest{
		Role:    f.Role,
		Reveal:  f.Reveal,
		Purge:   f.Purge,
		Queues:  strings.Fields(f.Queues),
		VHosts:  strings.Fields(f.VHosts),
		Brokers: strings.Fields(f.Brokers),
	}
}

// addUserForm handles POST /access/users.
func (w *Web) addUserForm(r *http.Request) (templ.Component, error) {
	f, err := accessForm(r)
	if err != nil {
		return nil, err
	}
	made, err := w.addUser(r.Context(), &struct{ Body api.UserRequest }{
		api.UserRequest{Name: f.Name, GrantRequest: grantOf(f)},
	})
	var link view.NewSecret
	if err == nil {
		link = linkTo(made.Body)
	}
	return w.madeSecret(r, link, func(p *view.AccessPage, why string) {
		f.Error = why
		p.User = f
	}, err)
}

// addTokenForm handles POST /access/tokens.
func (w *Web) addTokenForm(r *http.Request) (templ.Component, error) {
	f, err := accessForm(r)
	if err != nil {
		return nil, err
	}
	in := api.TokenRequest{Name: f.Name, GrantRequest: grantOf(f)}
	if f.Days != "" {
		days, err := strconv.ParseUint(f.Days, 10, 16)
		if err != nil {
			return nil, invalid("days is a number of days, or empty for a token that never expires")
		}
		in.ExpiresAt = w.Now().AddDate(0, 0, int(days))
	}
	made, err := w.addToken(r.Context(), &struct{ Body api.TokenRequest }{in})
	var secret view.NewSecret
	if err == nil {
		secret = view.NewSecret{Name: made.Body.Name, Text: made.Body.Secret}
	}
	return w.madeSecret(r, secret, func(p *view.AccessPage, why string) {
		f.Error = why
		p.Token = f
	}, err)
}

// resetUserForm handles POST /access/users/reset.
func (w *Web) resetUserForm(r *http.Request) (templ.Component, error) {
	f, err := accessForm(r)
	if err != nil {
		return nil, err
	}
	made, err := w.resetUser(r.Context(), &NamePath{f.Name})
	var link view.NewSecret
	if err == nil {
		link = linkTo(made.Body)
	}
	return w.madeSecret(r, link, func(*view.AccessPage, string) {}, err)
}

func linkTo(i api.Invitation) view.NewSecret {
	return view.NewSecret{Link: true, Name: i.Name, Text: i.Link}
}
