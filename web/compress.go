package web

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
)

// compress compresses pages for browsers on other machines. A page with a secret is not compressed:
// somebody who chooses a part of the page and sees how long the response is could guess the secret
// (BREACH). New tokens, links and revealed values are shown in responses to forms, by the editor,
// with reveal=1 and in the links of invitations.
func compress(next http.Handler) http.Handler {
	compressed := middleware.Compress(5, "text/html")(next)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		secret := r.Method != http.MethodGet || editURL(r.URL.Path) || r.URL.Query().Has("reveal") ||
			strings.HasPrefix(r.URL.Path, "/welcome") || strings.HasPrefix(r.URL.Path, "/signin")
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if secret || err != nil || from.Addr().Unmap().IsLoopback() { // a Unix socket has no address
			next.ServeHTTP(rw, r)
			return
		}
		compressed.ServeHTTP(rw, r)
	})
}
