package web

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// csp is the content security policy of every response. It allows nothing inline, nothing from
// other origins, and no framing.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// bodyCSP is the content security policy of a downloaded body. If a browser displays the body after
// all, it is sandboxed.
const bodyCSP = "default-src 'none'; sandbox; frame-ancestors 'none'"

// setHeaders sets the headers of every response. By default, responses must not be cached. Static
// files replace this default.
func (w *Web) setHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store")
		if w.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(rw, r)
	})
}

// recover turns a panic of a handler into a response with the status 500, and logs the stack. If a
// handler panics with http.ErrAbortHandler, net/http closes the connection as usual.
func (w *Web) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); {
			case p == nil:
			case p == http.ErrAbortHandler:
				panic(p)
			default:
				w.Log.Error(
					"panic", "method", r.Method, "path", deadletter.Visible(r.URL.Path), "panic",
					fmt.Sprintf("%.200v", p), "stack", string(debug.Stack()),
				)
				w.fail(rw, r, errors.New("panic"))
			}
		}()
		next.ServeHTTP(rw, r)
	})
}

// Hosts returns the values of the Host header that are allowed. They are the configured values. If
// none are configured, they are the hosts in "listen" and "publicURL". If one of these hosts is a
// loopback address, all loopback names with its port are allowed.
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

// hostAllowed rejects a request with the status 421 if its Host header is not allowed. Without this
// check, an attacker could let a DNS name of his own resolve to the address of dlo (DNS rebinding).
// An allowed host without a port allows every port. The liveness probe is exempt, because probes
// use an IP address.
func (w *Web) hostAllowed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(w.Hosts) == 0 || r.URL.Path == "/healthz" || allowedHost(w.Hosts, r.Host) {
			next.ServeHTTP(rw, r)
			return
		}
		w.turnAway(rw, r, statusError(http.StatusMisdirectedRequest))
	})
}

func allowedHost(hosts []string, host string) bool {
	name := strings.Trim(hostOf(host), "[]")
	return slices.ContainsFunc(hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, name)
	})
}

// hostOf returns an address without its port, if it has one.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// maxRequest is the maximum size of a request body in bytes. A selection of 10,000 ids takes 400
// KB.
const maxRequest = 1 << 20

// limitBody limits the size of request bodies. It rejects compressed bodies, because they could
// expand beyond the limit.
func (w *Web) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			w.fail(rw, r, statusError(http.StatusUnsupportedMediaType))
			return
		}
		switch {
		case r.URL.Path == importPath: // the import has no limit, because it reads line by line
		case editURL(r.URL.Path):
			r.Body = http.MaxBytesReader(rw, r.Body, maxEdit)
		case r.URL.Path == typesPath || r.URL.Path == uploadPath:
			slow := io.NopCloser(patient{r.Body, http.NewResponseController(rw)})
			r.Body = http.MaxBytesReader(rw, slow, maxUpload+maxRequest)
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

// sameOrigin rejects requests that come from pages of other sites. It rejects all unsafe requests
// from such pages. It also rejects two kinds of GET requests from them: requests for event streams,
// and requests that show masked values. Only dlo's own pages, and programs other than browsers, may
// send these.
//
// Any other GET request from another site is accepted only if somebody followed a link. A page of
// the other site could not read the response, but it could measure how long the response takes.
func (w *Web) sameOrigin(next http.Handler) http.Handler {
	refuse := func(rw http.ResponseWriter, r *http.Request) { w.turnAway(rw, r, errOtherSite) }
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(refuse))
	return protection.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		own := strings.HasSuffix(r.URL.Path, eventsPath) || r.URL.Query().Get("reveal") == "1"
		if !ownPage(r) && (own || !isFromLink(r)) {
			refuse(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	}))
}

// ownPage reports whether a page of dlo or a program may have sent a GET request. It returns false
// for requests of other sites. The check is necessary because CrossOriginProtection of net/http
// accepts every GET request.
func ownPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// isFromLink reports whether the request comes from a link that somebody followed. In that case,
// the browser shows the response in a tab.
func isFromLink(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
