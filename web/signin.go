package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web/view"
)

// signInRoutes adds the routes of the pages for people who have not signed in. These pages show
// nothing about any letter.
func (w *Web) signInRoutes(r chi.Router) {
	r.Use(w.limitUnknown, limitPasswordForm)
	r.Get("/signin", w.page(w.signInPage))
	r.Post("/signin", w.page(parsed(w.signIn)))
	r.Get("/welcome", w.page(w.welcomePage))
	r.Post("/welcome", w.page(parsed(w.welcome)))
	r.Post("/signout", w.page(w.signOut))
}

// limitUnknown limits how fast requests may come from an address if the caller is not known.
func (w *Web) limitUnknown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := w.tooManyFrom(rw, r); err != nil {
			w.refuseUnknown(rw, r, err)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// maxPasswordForm is the maximum size of a form with passwords, in bytes. Most of it is for the
// path of the page that is shown next.
const maxPasswordForm = 16 << 10

// limitPasswordForm limits the size of request bodies to maxPasswordForm.
func limitPasswordForm(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(rw, r.Body, maxPasswordForm)
		next.ServeHTTP(rw, r)
	})
}

// parsed wraps the handler of a form, so that the form is parsed before.
func parsed(f func(r *http.Request) (templ.Component, error)) func(r *http.Request) (templ.Component, error) {
	return func(r *http.Request) (templ.Component, error) {
		if err := r.ParseForm(); err != nil {
			return nil, formError(err)
		}
		return f(r)
	}
}

func (w *Web) browser(r *http.Request) identity.Browser {
	return identity.Browser{Address: w.Address(r), Agent: r.UserAgent()}
}

// keep redirects the reader, and sets the cookie of a session. If the secret is "", it deletes the
// cookie. The cookie ends when the browser is closed.
func (w *Web) keep(secret, to string) error {
	c := &http.Cookie{
		Name:     identity.CookieName(w.Secure),
		Value:    secret,
		Secure:   w.Secure,
		SameSite: http.SameSiteLaxMode,
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return cookieError{movedError{to}, c}
}

// signInPage handles GET /signin.
func (w *Web) signInPage(r *http.Request) (templ.Component, error) {
	return view.SignIn(view.SignInPage{Next: localPath(r.URL.Query().Get("next"))}), nil
}

// signIn handles POST /signin.
func (w *Web) signIn(r *http.Request) (templ.Component, error) {
	ctx := w.unknownCaller(r)
	p := view.SignInPage{Name: deadletter.Cut(r.PostForm.Get("name"), 64), Next: localPath(r.PostForm.Get("next"))}
	secret, left, err := w.Users.SignIn(ctx, r.PostForm.Get("name"), r.PostForm.Get("password"), w.browser(r))
	if p.Error = refusedSignIn(left, err); p.Error != "" {
		return view.SignIn(p), err
	}
	if err != nil {
		return nil, err
	}
	w.endReplaced(ctx, r)
	return nil, w.keep(secret, p.Next)
}

// unknownCaller returns the context of a request from a person who has not signed in.
func (w *Web) unknownCaller(r *http.Request) context.Context {
	return deadletter.FromAddress(deadletter.Through(r.Context(), deadletter.WayPage), w.Address(r))
}

// endReplaced is called when a person signs in. If the browser still has the cookie of an earlier
// session, endReplaced ends that session, because the browser replaces its cookie with the new one.
func (w *Web) endReplaced(ctx context.Context, r *http.Request) {
	if old := identity.Secret(r, w.Secure); old != "" {
		if err := w.Users.SignOut(ctx, old); err != nil {
			w.Log.Warn("the replaced session could not be ended", "err", err)
		}
	}
}

// refusedSignIn returns the reason why a password was refused. If err is nil or has nothing to do
// with a refusal, it returns "".
func refusedSignIn(left int, err error) string {
	var many identity.TooManyTriesError
	switch {
	case errors.As(err, &many):
		return "Too many attempts failed. Try again at " + many.Again.UTC().Format("15:04 UTC") + "."
	case errors.Is(err, deadletter.ErrSignIn):
		return "That name and password do not match. " + view.Number(left, "try", "tries") + " left."
	}
	return ""
}

// errPasswordsDiffer is the error of a form in which the new password is not the same twice.
var errPasswordsDiffer = invalid("The two passwords differ.")

// welcomePage handles GET /welcome?code=.
func (w *Web) welcomePage(r *http.Request) (templ.Component, error) {
	return w.welcomeAgain(r, r.URL.Query().Get("code"), nil)
}

// welcomeAgain returns the page on which an invited person chooses a password, with the reason why
// one was refused.
func (w *Web) welcomeAgain(r *http.Request, code string, refused error) (templ.Component, error) {
	name, err := w.Users.Invited(r.Context(), code)
	if errors.Is(err, deadletter.ErrNotFound) {
		return view.Welcome(view.SignInPage{}), err
	}
	if err != nil {
		return nil, err
	}
	p := view.SignInPage{Name: name, Code: code}
	if refused != nil {
		p.Error = sentence(refused, http.StatusBadRequest)
	}
	return view.Welcome(p), refused
}

// welcome handles POST /welcome. A person who was invited chooses a password there and is then
// signed in.
func (w *Web) welcome(r *http.Request) (templ.Component, error) {
	code, password := r.PostForm.Get("code"), r.PostForm.Get("new")
	if password != r.PostForm.Get("repeated") {
		return w.welcomeAgain(r, code, errPasswordsDiffer)
	}
	ctx := w.unknownCaller(r)
	secret, err := w.Users.Accept(ctx, code, password, w.browser(r))
	switch {
	case errors.Is(err, deadletter.ErrInvalid), errors.Is(err, deadletter.ErrNotFound):
		return w.welcomeAgain(r, code, err)
	case err != nil:
		return nil, err
	}
	w.endReplaced(ctx, r)
	return nil, w.keep(secret, "/")
}

// signOut handles POST /signout.
func (w *Web) signOut(r *http.Request) (templ.Component, error) {
	if err := w.Users.SignOut(w.unknownCaller(r), identity.Secret(r, w.Secure)); err != nil {
		return nil, err
	}
	return nil, w.keep("", "/signin")
}

// againPage handles GET /signin/again.
func (w *Web) againPage(r *http.Request) (templ.Component, error) {
	return view.SignInAgain(view.SignInPage{Name: principal(r.Context()).Name, Next: localPath(r.URL.Query().Get("next"))}), nil
}

// confirmPassword handles POST /signin/again. If the password is right, the session gets a new
// secret.
func (w *Web) confirmPassword(r *http.Request) (templ.Component, error) {
	p := view.SignInPage{Name: principal(r.Context()).Name, Next: localPath(r.PostForm.Get("next"))}
	secret, err := w.Users.Confirm(r.Context(), identity.Secret(r, w.Secure), r.PostForm.Get("password"), w.browser(r))
	if p.Error = refusedSignIn(w.Users.Left(p.Name, w.Address(r)), err); p.Error != "" {
		return view.SignInAgain(p), err
	}
	if err != nil {
		return nil, sessionEnded(err)
	}
	return nil, w.keep(secret, p.Next)
}

// sessionEnded returns the error of a change to a session. If the session has ended, it leads to
// the page on which the person signs in.
func sessionEnded(err error) error {
	if errors.Is(err, deadletter.ErrNotFound) {
		return movedError{"/signin"}
	}
	return err
}

// account handles GET /account.
func (w *Web) account(r *http.Request) (templ.Component, error) { return w.accountPage(r, "") }

func (w *Web) accountPage(r *http.Request, refused string) (templ.Component, error) {
	by := principal(r.Context())
	p := view.AccountPage{Shell: w.shell(r, "Your account", ""), Error: refused}
	if by.MayEverywhere(deadletter.VerbAccess) {
		p.ViewAs = deadletter.RoleNames()
	}
	for _, g := range by.Grants {
		p.Grants = append(p.Grants, g.Words())
	}
	secret := identity.Secret(r, w.Secure)
	if w.Users == nil || secret == "" {
		return view.Account(p), nil
	}
	var err error
	p.This = deadletter.SecretHash(secret)
	p.Sessions, err = w.Users.Sessions(r.Context(), by.Name)
	return view.Account(p), err
}

// changePassword handles POST /account/password. It ends all other sessions of the person.
func (w *Web) changePassword(r *http.Request) (templ.Component, error) {
	err := errPasswordsDiffer
	var secret string
	if r.PostForm.Get("new") == r.PostForm.Get("repeated") {
		secret, err = w.Users.ChangePassword(
			r.Context(), identity.Secret(r, w.Secure), r.PostForm.Get("old"), r.PostForm.Get("new"), w.browser(r),
		)
	}
	if err == nil {
		return nil, w.keep(secret, "/account")
	}
	text := refusedSignIn(w.Users.Left(principal(r.Context()).Name, w.Address(r)), err)
	if errors.Is(err, deadletter.ErrInvalid) {
		text = sentence(err, http.StatusBadRequest)
	}
	if text == "" {
		return nil, sessionEnded(err)
	}
	page, broken := w.accountPage(r, text)
	return page, cmp.Or(broken, err)
}

// endSession handles POST /account/sessions/{id}/end.
func (w *Web) endSession(r *http.Request) (templ.Component, error) {
	if err := w.Users.End(r.Context(), principal(r.Context()).Name, chi.URLParam(r, "id")); err != nil {
		return nil, err
	}
	return nil, movedError{"/account"}
}
