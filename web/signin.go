package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

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
	r.Get("/signin", w.signInPage)
	r.Post("/signin", w.signIn)
	r.Get("/welcome", w.welcomePage)
	r.Post("/welcome", w.welcome)
	r.Post("/signout", w.signOut)
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

func (w *Web) browser(r *http.Request) identity.Browser {
	return identity.Browser{Address: w.Address(r), Agent: r.UserAgent()}
}

// keep sets the cookie of a session. If the secret is "", it deletes the cookie. The cookie ends
// when the browser is closed.
func (w *Web) keep(rw http.ResponseWriter, secret string) {
	c := &http.Cookie{
		Name:     identity.CookieName(w.Secure),
		Value:    secret,
		Path:     "/",
		HttpOnly: true,
		Secure:   w.Secure,
		SameSite: http.SameSiteLaxMode,
	}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(rw, c)
}

// signInPage handles GET /signin.
func (w *Web) signInPage(rw http.ResponseWriter, r *http.Request) {
	w.writePage(rw, r, http.StatusOK, view.SignIn(view.SignInPage{Next: localPath(r.URL.Query().Get("next"))}))
}

// signIn handles POST /signin.
func (w *Web) signIn(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.fail(rw, r, formError(err))
		return
	}
	ctx := deadletter.FromAddress(deadletter.Through(r.Context(), deadletter.WayPage), w.Address(r))
	p := view.SignInPage{Name: deadletter.Cut(r.PostForm.Get("name"), 64), Next: localPath(r.PostForm.Get("next"))}
	secret, left, err := w.Users.SignIn(ctx, r.PostForm.Get("name"), r.PostForm.Get("password"), w.browser(r))
	if code := w.refusedSignIn(rw, &p, left, err); code != 0 {
		w.writePage(rw, r, code, view.SignIn(p))
		return
	}
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	w.endReplaced(ctx, r)
	w.keep(rw, secret)
	redirect(rw, p.Next)
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

// refusedSignIn adds to the page the reason why a password was refused, and returns the status of
// the response. If err is nil or has nothing to do with a refusal, it returns 0.
func (w *Web) refusedSignIn(rw http.ResponseWriter, p *view.SignInPage, left int, err error) int {
	var many identity.TooManyTriesError
	switch {
	case errors.As(err, &many):
		p.Error = "Too many attempts failed. Try again at " + many.Again.UTC().Format("15:04 UTC") + "."
		rw.Header().Set("Retry-After", strconv.Itoa(max(1, int(many.Again.Sub(w.Now())/time.Second))))
		return http.StatusTooManyRequests
	case errors.Is(err, deadletter.ErrSignIn):
		p.Error = "That name and password do not match. " + view.Number(left, "try", "tries") + " left."
		return http.StatusUnauthorized
	}
	return 0
}

// welcomePage handles GET /welcome?code=.
func (w *Web) welcomePage(rw http.ResponseWriter, r *http.Request) {
	w.writeWelcome(rw, r, r.URL.Query().Get("code"), "")
}

func (w *Web) writeWelcome(rw http.ResponseWriter, r *http.Request, code, refused string) {
	name, err := w.Users.Invited(r.Context(), code)
	switch {
	case errors.Is(err, deadletter.ErrNotFound):
		w.writePage(rw, r, http.StatusNotFound, view.Welcome(view.SignInPage{}))
	case err != nil:
		w.fail(rw, r, err)
	case refused != "":
		w.writePage(rw, r, http.StatusBadRequest, view.Welcome(view.SignInPage{Name: name, Code: code, Error: refused}))
	default:
		w.writePage(rw, r, http.StatusOK, view.Welcome(view.SignInPage{Name: name, Code: code}))
	}
}

// welcome handles POST /welcome. A person who was invited chooses a password there and is then
// signed in.
func (w *Web) welcome(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.fail(rw, r, formError(err))
		return
	}
	code, password := r.PostForm.Get("code"), r.PostForm.Get("new")
	if password != r.PostForm.Get("repeated") {
		w.writeWelcome(rw, r, code, "The two passwords differ.")
		return
	}
	ctx := deadletter.FromAddress(deadletter.Through(r.Context(), deadletter.WayPage), w.Address(r))
	secret, err := w.Users.Accept(ctx, code, password, w.browser(r))
	switch {
	case errors.Is(err, deadletter.ErrInvalid):
		w.writeWelcome(rw, r, code, sentence(err, http.StatusBadRequest))
	case errors.Is(err, deadletter.ErrNotFound):
		w.writeWelcome(rw, r, code, "")
	case err != nil:
		w.fail(rw, r, err)
	default:
		w.endReplaced(ctx, r)
		w.keep(rw, secret)
		redirect(rw, "/")
	}
}

// signOut handles POST /signout.
func (w *Web) signOut(rw http.ResponseWriter, r *http.Request) {
	ctx := deadletter.FromAddress(deadletter.Through(r.Context(), deadletter.WayPage), w.Address(r))
	if err := w.Users.SignOut(ctx, identity.Secret(r, w.Secure)); err != nil {
		w.fail(rw, r, err)
		return
	}
	w.keep(rw, "")
	redirect(rw, "/signin")
}

// againPage handles GET /signin/again.
func (w *Web) againPage(r *http.Request) (templ.Component, error) {
	return view.SignInAgain(view.SignInPage{Name: principal(r.Context()).Name, Next: localPath(r.URL.Query().Get("next"))}), nil
}

// confirmPassword handles POST /signin/again. If the password is right, the session gets a new
// secret.
func (w *Web) confirmPassword(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.fail(rw, r, formError(err))
		return
	}
	p := view.SignInPage{Name: principal(r.Context()).Name, Next: localPath(r.PostForm.Get("next"))}
	secret, err := w.Users.Confirm(r.Context(), identity.Secret(r, w.Secure), r.PostForm.Get("password"), w.browser(r))
	if code := w.refusedSignIn(rw, &p, w.Users.Left(p.Name, w.Address(r)), err); code != 0 {
		w.writePage(rw, r, code, view.SignInAgain(p))
		return
	}
	switch {
	case errors.Is(err, deadletter.ErrNotFound): // the session has ended
		redirect(rw, "/signin")
	case err != nil:
		w.fail(rw, r, err)
	default:
		w.keep(rw, secret)
		redirect(rw, p.Next)
	}
}

// account handles GET /account.
func (w *Web) account(r *http.Request) (templ.Component, error) { return w.accountPage(r, "") }

func (w *Web) accountPage(r *http.Request, refused string) (templ.Component, error) {
	p := view.AccountPage{Shell: w.shell(r, "Your account", ""), Error: refused, ViewAs: viewAsForm(principal(r.Context()))}
	for _, g := range principal(r.Context()).Grants {
		p.Grants = append(p.Grants, g.Words())
	}
	secret := identity.Secret(r, w.Secure)
	if w.Users == nil || secret == "" {
		return view.Account(p), nil
	}
	list, err := w.Users.Sessions(r.Context(), principal(r.Context()).Name)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		p.Sessions = append(p.Sessions, view.AccountSession{Session: n, This: n.Hash == deadletter.SecretHash(secret)})
	}
	return view.Account(p), nil
}

// changePassword handles POST /account/password.
func (w *Web) changePassword(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.fail(rw, r, formError(err))
		return
	}
	refused := func(code int, text string) {
		page, err := w.accountPage(r, text)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		w.writePage(rw, r, code, page)
	}
	if r.PostForm.Get("new") != r.PostForm.Get("repeated") {
		refused(http.StatusBadRequest, "The two passwords differ.")
		return
	}
	secret, err := w.Users.ChangePassword(
		r.Context(), identity.Secret(r, w.Secure), r.PostForm.Get("old"), r.PostForm.Get("new"), w.browser(r),
	)
	var p view.SignInPage
	if code := w.refusedSignIn(rw, &p, w.Users.Left(principal(r.Context()).Name, w.Address(r)), err); code != 0 {
		refused(code, p.Error)
		return
	}
	switch {
	case errors.Is(err, deadletter.ErrInvalid):
		refused(http.StatusBadRequest, sentence(err, http.StatusBadRequest))
	case errors.Is(err, deadletter.ErrNotFound): // the session has ended
		redirect(rw, "/signin")
	case err != nil:
		w.fail(rw, r, err)
	default:
		w.keep(rw, secret)
		redirect(rw, "/account")
	}
}

// endSession handles POST /account/sessions/{id}/end.
func (w *Web) endSession(r *http.Request) (string, error) {
	return "/account", w.Users.End(r.Context(), principal(r.Context()).Name, chi.URLParam(r, "id"))
}
