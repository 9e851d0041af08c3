package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/static"
)

// files serves style sheets, scripts and images under the paths that static.URL returns. Browsers
// may cache these files forever. Any other path has the status 404, and folders are not listed.
func files(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	body, kind, ok := static.File(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
