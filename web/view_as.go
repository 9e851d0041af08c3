package web

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
)

// An admin can view the pages with another role and other queues, to see what others see. The
// browser keeps this choice in a cookie for an hour. The cookie needs no signature, because it can
// only take rights away. dlo reads it only from people who may change rights.
const viewAsFor = time.Hour

// viewed is the content of the cookie.
type viewed struct {
	Role string `json:"role"`
	deadletter.Places
}

// viewAsCookie returns the name of the cookie for viewing pages with another role.
func (w *Web) viewAsCookie() string {
	if w.Secure {
		return identity.HostOnly + "dlo-view-as"
	}
	return "dlo-view-as"
}

// viewedAs returns the caller p with the role and the queues that the cookie of the request names.
// It ignores the cookie in requests of scripts and tokens, which have their own rights.
func (w *Web) viewedAs(r *http.Request, p deadletter.Principal) deadletter.Principal {
	c, err := r.Cookie(w.viewAsCookie())
	if err != nil || forScripts(r) || !p.MayEverywhere(deadletter.VerbAccess) {
		return p
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return p
	}
	var in viewed
	if json.Unmarshal(text, &in) != nil {
		return p
	}
	g, err := deadletter.NewGrant(in.Role, false, false, in.Places)
	if err != nil {
		return p
	}
	for _, had := range p.Grants { // if the person has to enter the password again, the other role requires that too
		g.Again = cmp.Or(g.Again, had.Again)
	}
	p.Grants, p.As = []deadletter.Grant{g}, g.Words()
	return p
}

// viewAs handles POST /view-as. The form contains a role, and globs of queues, vhosts and brokers.
// Globs are separated by spaces.
func (w *Web) viewAs(r *http.Request) (templ.Component, error) {
	if err := r.ParseForm(); err != nil {
		return nil, formError(err)
	}
	places, role := globsOf(r), r.PostForm.Get("role")
	if _, err := deadletter.NewGrant(role, false, false, places); err != nil {
		return nil, err
	}
	text, _ := json.Marshal(viewed{role, places}) // these texts can always be encoded
	if len(text) > 2000 {
		return nil, invalid("the globs have at most 2,000 bytes together")
	}
	return nil, w.setViewAs("/", base64.RawURLEncoding.EncodeToString(text), viewAsFor)
}

// stopViewAs handles POST /view-as/stop.
func (w *Web) stopViewAs(*http.Request) (templ.Component, error) {
	return nil, w.setViewAs("/account", "", -time.Second)
}

// setViewAs sets the cookie, and redirects the reader.
func (w *Web) setViewAs(to, value string, age time.Duration) error {
	return cookieError{movedError{to}, &http.Cookie{
		Name:     w.viewAsCookie(),
		Value:    value,
		MaxAge:   int(age.Seconds()),
		Secure:   w.Secure,
		SameSite: http.SameSiteStrictMode,
	}}
}
