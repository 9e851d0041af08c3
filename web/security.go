package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// csp is the content security policy of every answer: nothing inline, nothing from elsewhere, no
// frame around it.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// bodyCSP is the policy of a downloaded body: should a browser show it after all, it is in a
// sandbox.
const bodyCSP = "default-src 'none'; sandbox; frame-ancestors 'none'"

// headers sets what every answer carries. Nothing that dlo says may be kept by a cache; static
// files say otherwise themselves.
func (w *Web) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(rw, r)
	})
}

// recover turns a panic into a 500 and a log line with the stack; the connection of an aborted
// handler is closed as net/http means it.
func (w *Web) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default:
				w.Log.Error("panic", "method", r.Method, "path", deadletter.Visible(r.URL.Path), "panic", fmt.Sprintf("%.200v", p), "stack", string(debug.Stack()))
				w.fail(rw, r, errors.New("panic"))
			}
		}()
		next.ServeHTTP(rw, r)
	})
}

// Hosts returns the Host allow list for a listen address and the configured values: what is
// configured, else the hosts of listen and public_url. A loopback address answers to all names of
// loopback, with its port.
func Hosts(listen, publicURL string, configured []string) []string {
	if len(configured) > 0 {
		return configured
	}
	var hosts []string
	add := func(h string) {
		if h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	host, port, err := net.SplitHostPort(listen)
	if err == nil && host != "" {
		add(net.JoinHostPort(host, port))
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
				add(net.JoinHostPort(name, port))
			}
		}
	}
	if u, err := url.Parse(publicURL); err == nil {
		add(u.Host)
	}
	return hosts
}

// hostAllowed refuses a Host that is not on the list with 421: a name that an attacker's DNS points
// at this address (DNS rebinding) is not ours. An entry without a port allows every port. The
// liveness probe is exempt, as probes call by address.
func (w *Web) hostAllowed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(w.Hosts) == 0 || r.URL.Path == "/healthz" || allowedHost(w.Hosts, r.Host) {
			next.ServeHTTP(rw, r)
			return
		}
		w.turnAway(rw, r, http.StatusMisdirectedRequest)
	})
}

func allowedHost(hosts []string, host string) bool {
	host = strings.ToLower(host)
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	for _, allowed := range hosts {
		allowed = strings.ToLower(allowed)
		if allowed == host || allowed == name {
			return true
		}
	}
	return false
}

// maxRequest is the largest request body: a selection of 10,000 ids takes 400 KB.
const maxRequest = 1 << 20

// sized caps request bodies, and refuses compressed ones: they would expand past the cap.
func (w *Web) sized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			w.fail(rw, r, statusError(http.StatusUnsupportedMediaType))
			return
		}
		switch {
		case r.URL.Path == importPath: // which reads line by line
		case editURL(r.URL.Path):
			r.Body = http.MaxBytesReader(rw, r.Body, maxEdit)
		case r.URL.Path == typesPath || r.URL.Path == uploadPath:
			r.Body = http.MaxBytesReader(rw, r.Body, maxUpload+maxRequest)
		case r.URL.Path == annotationsPath:
			r.Body = http.MaxBytesReader(rw, r.Body, maxAnnotations)
		case r.URL.Path == matchPath:
			r.Body = http.MaxBytesReader(rw, r.Body, int64(w.maxLine()))
		default:
			r.Body = http.MaxBytesReader(rw, r.Body, maxRequest)
		}
		next.ServeHTTP(rw, r)
	})
}

// sameOrigin refuses what another site's page sends: unsafe requests, the GETs that only our own
// pages and programs may send, which are event streams and what reveals masked values, and every
// GET that is no link which somebody follows. Its page cannot read the answer, but could time it.
func (w *Web) sameOrigin(next http.Handler) http.Handler {
	refuse := func(rw http.ResponseWriter, r *http.Request) { w.turnAway(rw, r, http.StatusForbidden) }
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(refuse))
	return protection.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		own := strings.HasSuffix(r.URL.Path, eventsPath) || r.URL.Query().Get("reveal") == "1"
		if !ownPage(r) && (own || !followed(r)) {
			refuse(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	}))
}

// ownPage says whether a GET that only our own pages and programs may send comes from one of them:
// CrossOriginProtection looks at unsafe methods only.
func ownPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// followed says whether a browser shows the answer in a tab: somebody followed a link.
func followed(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
