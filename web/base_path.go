package web

import (
	"net/http"
	"strings"
)

// A proxy that also serves other programs can make dlo reachable below a base path, such as /dlo.
// Handlers and pages use paths without the base path. For this, "rebased" removes the base path
// from the paths of requests, the type "rebasing" adds it to the paths in the headers of responses,
// and pages add it to their links. The proxy may also remove the base path from requests itself.

// rebased serves requests whose paths may begin with w.BasePath.
func (w *Web) rebased(rw http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path == w.BasePath {
		http.Redirect(rw, r, w.BasePath+"/", http.StatusPermanentRedirect)
		return
	}
	if strings.HasPrefix(path, w.BasePath+"/") {
		http.StripPrefix(w.BasePath, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			w.router.ServeHTTP(&rebasing{rw, w.BasePath, false}, r)
		})).ServeHTTP(rw, r)
		return
	}
	w.router.ServeHTTP(&rebasing{rw, w.BasePath, false}, r)
}

// rebasing adds the base path to the Location header of a response.
type rebasing struct {
	http.ResponseWriter
	base  string
	wrote bool
}

func (b *rebasing) WriteHeader(code int) {
	if to := b.Header().Get("Location"); !b.wrote && strings.HasPrefix(to, "/") {
		b.Header().Set("Location", b.base+to)
	}
	b.wrote = true
	b.ResponseWriter.WriteHeader(code)
}

func (b *rebasing) Write(p []byte) (int, error) {
	if !b.wrote {
		b.WriteHeader(http.StatusOK)
	}
	return b.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the server's writer.
func (b *rebasing) Unwrap() http.ResponseWriter { return b.ResponseWriter }
