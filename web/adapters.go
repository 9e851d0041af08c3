package web

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/web/view"
)

// Handlers only return values or errors. The adapters "page" and "json", and the table of calls,
// turn them into responses. No other code handles status codes, errors and logging.

// movedError redirects the reader to another address.
type movedError struct{ to string }

// cookieError sets a cookie for all pages, which scripts cannot read, and redirects the reader to
// another address.
type cookieError struct {
	movedError
	cookie *http.Cookie
}

func (e movedError) Error() string { return "moved to " + e.to }

// page serves a component. If the handler also returns an error, the page has the status of the
// error.
func (w *Web) page(f func(r *http.Request) (templ.Component, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		c, err := f(r)
		var moved movedError
		var set cookieError
		switch {
		case errors.As(err, &set):
			set.cookie.Path, set.cookie.HttpOnly = "/", true
			http.SetCookie(rw, set.cookie)
			redirect(rw, set.to)
		case errors.As(err, &moved):
			redirect(rw, moved.to)
		case err != nil && (c == nil || statusOf(err) == http.StatusInternalServerError):
			w.fail(rw, r, err)
		case err != nil:
			if many, ok := errors.AsType[identity.TooManyTriesError](err); ok {
				rw.Header().Set("Retry-After", strconv.Itoa(max(1, int(many.Again.Sub(w.Now())/time.Second))))
			}
			w.writePage(rw, r, statusOf(err), c)
		default:
			w.writePage(rw, r, http.StatusOK, c)
		}
	}
}

// each calls "convert" for every element of a list, and returns the results. The returned slice is
// never nil, so that its JSON is an empty list instead of null.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, v := range list {
		out = append(out, convert(v))
	}
	return out
}

// json serves a value as JSON.
func (w *Web) json(f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		w.writeJSON(rw, r, http.StatusOK, v)
	}
}

func (w *Web) writeJSON(rw http.ResponseWriter, r *http.Request, code int, v any) {
	text, err := api.Marshal(v)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	rw.Write(append(text, '\n'))
}

// writePage renders the whole page before it writes anything. If rendering fails, the response is
// therefore a status 500 without parts of the page.
func (w *Web) writePage(rw http.ResponseWriter, r *http.Request, code int, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(view.WithReader(r.Context(), principal(r.Context()), w.BasePath), &b); err != nil {
		if r.Context().Err() == nil {
			w.Log.Error("a page could not be rendered", "path", r.URL.Path, "err", err)
		}
		http.Error(
			rw, "The page could not be written. Something broke on our side. Your letters are safe.",
			http.StatusInternalServerError,
		)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(code)
	rw.Write(b.Bytes())
}

func redirect(rw http.ResponseWriter, to string) {
	rw.Header().Set("Location", localPath(to))
	rw.WriteHeader(http.StatusSeeOther)
}

// localPath returns its argument if this is a path on this server. Otherwise, it returns "/". A
// local path contains no scheme, no host, and nothing that a browser would read as one of these.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return u.String()
}
