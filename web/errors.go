package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// statusError is an error that has nothing but an HTTP status.
type statusError int

func (e statusError) Error() string { return strings.ToLower(http.StatusText(int(e))) }

// statuses maps errors to status codes. The first error that matches decides.
var statuses = []struct {
	err  error
	code int
}{
	{deadletter.ErrInvalid, http.StatusBadRequest},
	{deadletter.ErrSignIn, http.StatusUnauthorized},
	{deadletter.ErrForbidden, http.StatusForbidden},
	{deadletter.ErrChanged, http.StatusPreconditionFailed},
	{deadletter.ErrTooMany, http.StatusTooManyRequests},
	{deadletter.ErrNotFound, http.StatusNotFound},
	{deadletter.ErrConflict, http.StatusConflict},
	{deadletter.ErrUnavailable, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}

// statusOf returns the status code of an error. For an unexpected error, it returns 500.
func statusOf(err error) int {
	var status statusError
	if errors.As(err, &status) {
		return int(status)
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	return http.StatusInternalServerError
}

// sentence returns the text of an error that people can do something about. For internal errors, it
// returns "", because their details are only for the log.
func sentence(err error, code int) string {
	var status statusError
	if code >= 500 && code != http.StatusServiceUnavailable || errors.As(err, &status) {
		return ""
	}
	text, bare := err.Error(), false
	for _, s := range statuses {
		bare = bare || err.Error() == s.err.Error()
		// the text before it is only for the log
		if _, said, ok := strings.Cut(": "+text, ": "+s.err.Error()+": "); ok {
			text = said
		}
		text = strings.TrimSuffix(text, ": "+s.err.Error())
	}
	if bare {
		return ""
	}
	return text
}

// fail responds to a request with an error. People get a page, and scripts get problem+json. No
// other code logs the errors of requests.
func (w *Web) fail(rw http.ResponseWriter, r *http.Request, err error) {
	code := statusOf(err)
	name := newKey()[:8]
	if errors.Is(r.Context().Err(), context.Canceled) {
		return // nobody reads the response
	}
	if code >= 500 && code != http.StatusServiceUnavailable {
		w.Log.Error(
			"request failed", "request", name, "method", r.Method, "path", deadletter.Visible(r.URL.Path), "err", err,
		)
	} else {
		w.Log.Debug(
			"request refused", "request", name, "method", r.Method, "path", deadletter.Visible(r.URL.Path), "status",
			code, "err", err,
		)
		name = ""
	}
	asksAgain := errors.Is(err, deadletter.ErrAgain) && w.Users != nil && identity.Secret(r, w.Secure) != "" &&
		r.Header.Get("Sec-Fetch-Dest") != "empty"
	if errors.Is(err, deadletter.ErrDenied) || errors.Is(err, deadletter.ErrAgain) && !asksAgain {
		w.auditDenied(r, err)
	}
	if code == http.StatusServiceUnavailable {
		rw.Header().Set("Retry-After", "5")
	}
	if forScripts(r) {
		writeProblem(rw, code, err, name)
		return
	}
	if asksAgain {
		redirect(rw, "/signin/again?next="+url.QueryEscape(cameFrom(r)))
		return
	}
	if !w.open && !principal(r.Context()).May(deadletter.VerbView) { // the request failed before its principal was known
		http.Error(rw, view.ErrorText(code), code)
		return
	}
	shell := w.shell(r, view.ErrorTitle(code), "")
	w.writePage(rw, r, code, view.Error(view.ErrorPage{
		Shell:  shell,
		Status: code,
		Detail: sentence(err, code),
		Name:   name,
	}))
}

// cameFrom returns the path of the page from which a person sent a form. If that page was itself
// the response to a form, a browser cannot open it again. The form on such a page therefore names
// another page in its field "return". For a GET request, cameFrom returns the path of the requested
// page.
func cameFrom(r *http.Request) string {
	if r.Method == http.MethodGet {
		return localPath(r.URL.RequestURI())
	}
	if to := r.PostFormValue("return"); to != "" {
		return localPath(to)
	}
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host && u.Path != "" {
		return localPath(u.RequestURI())
	}
	return "/"
}

// errOtherSite is the error of a request that a page of another site sent.
var errOtherSite = fmt.Errorf("%w: the request came from another site, so dlo rejected it", deadletter.ErrForbidden)

// turnAway responds to a request that is rejected early, because it comes from a foreign host or
// another site. Anybody may have sent the request and may read the response. The response therefore
// contains only the reason. It has no navigation, and it shows neither numbers nor problems.
// turnAway does not read the store.
func (w *Web) turnAway(rw http.ResponseWriter, r *http.Request, err error) {
	code := statusOf(err)
	w.Log.Debug("request refused", "method", r.Method, "path", deadletter.Visible(r.URL.Path), "status", code)
	if forScripts(r) {
		writeProblem(rw, code, err, "")
		return
	}
	http.Error(rw, cmp.Or(sentence(err, code), view.ErrorText(code)), code)
}

func writeProblem(rw http.ResponseWriter, code int, err error, name string) {
	p := api.Problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: sentence(err, code)}
	if name != "" {
		p.Instance = "urn:dlo:request:" + name
	}
	if m, ok := errors.AsType[*payload.EditError](err); ok {
		p.Line, p.Column, p.Path = m.Line, m.Column, m.Path
	}
	var refused deadletter.FieldErrors
	if errors.As(err, &refused) {
		p.Fields = refused
	}
	var mistake *query.Error
	if errors.As(err, &mistake) {
		p.Position = &mistake.Pos
	}
	var written *config.Error
	if errors.As(err, &written) {
		p.Mistakes = written.Mistakes
	}
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(code)
	text, _ := api.Marshal(p)    // these texts and numbers can always be encoded
	rw.Write(append(text, '\n')) // a client that has disconnected needs no report
}

// noSuch returns the error for a URL with an id that belongs to no object.
func noSuch(kind, id string) error {
	return deadletter.NoSuch("%s %s", kind, deadletter.Visible(deadletter.Cut(id, 60)))
}

// noSuchAddress returns the error for a URL that does not exist.
func noSuchAddress(r *http.Request) error {
	if forScripts(r) {
		return noSuch("call", r.Method+" "+r.URL.Path)
	}
	return noSuch("page", r.URL.Path)
}

// invalid returns the error for a request that is not valid. Its text explains the mistake.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", deadletter.ErrInvalid, fmt.Sprintf(format, args...))
}
